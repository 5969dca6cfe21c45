package gateway_test

import (
	"bytes"
	"encoding/base64"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
)

// meaning returns a value of a JSON text in which numbers are exact and the order of members does not count.
func meaning(t *testing.T, text []byte) any {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(text))
	var read func() any
	read = func() any {
		token, err := d.ReadToken()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		switch token.Kind() {
		case '{':
			object := map[string]any{}
			for d.PeekKind() != '}' {
				name, err := d.ReadToken()
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				key := name.String()
				object[key] = read()
			}
			_, _ = d.ReadToken()
			return object
		case '[':
			list := []any{}
			for d.PeekKind() != ']' {
				list = append(list, read())
			}
			_, _ = d.ReadToken()
			return list
		case '0':
			literal := token.String()
			if strings.ContainsAny(literal, "eE") {
				mantissa, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
				if len(strings.TrimLeft(exponent, "+-0")) > 4 {
					return mantissa + "e" + exponent // too large to write out
				}
			}
			if r, ok := new(big.Rat).SetString(literal); ok {
				return r.RatString()
			}
			return literal
		case '"':
			return "text " + token.String()
		default:
			return token.Kind()
		}
	}
	return read()
}

// roundTrip decodes text into a T and encodes it again.
func roundTrip[T any](t *testing.T, text []byte) {
	t.Helper()
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		t.Errorf("%T does not decode %s: %v", value, text, err)
		return
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Errorf("%T does not encode what it decoded from %s: %v", value, text, err)
		return
	}
	if diff := cmp.Diff(meaning(t, text), meaning(t, out)); diff != "" {
		t.Errorf("%T changes the document (-before +after):\n%s", value, diff)
	}
}

const everyMember = `{"model":"a","messages":[
 {"role":"system","content":"s","x_vendor":1},{"role":"developer","content":[{"type":"text","text":"d","x":null}]},
 {"role":"user","name":"n","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA","detail":"low","x":1}},
  {"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},{"type":"file","file":{"file_id":"f"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA"}},{"type":"video_url","video_url":{"url":"u"}}]},
 {"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}","x":[]},"extra_content":{"google":{"thought_signature":"sig"}}},{"id":"c2","type":"custom","custom":{"name":"g","input":"i"}}]},
 {"role":"tool","tool_call_id":"c1","content":"r"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"r2"}]},
 {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}],"reasoning_content":"because","audio":{"id":"au"},"annotations":[{"type":"url_citation","url_citation":{"url":"u"}}]},
 {"role":"assistant","content":"","function_call":{"name":"f","arguments":""}},{"role":"function","name":"f","content":"r"}],
 "max_tokens":5,"max_completion_tokens":9007199254740993,"temperature":1.0,"top_p":0.1e-2,"n":2,"stop":["a","b"],"seed":-9007199254740993,
 "presence_penalty":-0,"frequency_penalty":0,"logit_bias":{"50256":-100},"logprobs":true,"top_logprobs":3,
 "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"integer","maximum":12345678901234567890123}}},"strict":true}},{"type":"custom","custom":{"name":"g","format":{"type":"grammar"}}},{"type":"web_search"}],
 "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}},"parallel_tool_calls":false,
 "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"$ref":"#/x"},"strict":null,"description":"d"}},
 "reasoning_effort":"high","verbosity":"low","modalities":["text","audio"],"audio":{"voice":"v","format":"wav"},
 "prediction":{"type":"content","content":"p"},"service_tier":"auto","metadata":{"k":"v"},"user":"u","prompt_cache_key":"k","store":false,
 "functions":[],"function_call":"auto","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false},
 "extra_body":{"google":{"cached_content":"c1"}},"x":[1,{"y":null}],"huge":1e400,"html":"<a>&\u2028"}`

func TestChatValuesAreLossless(t *testing.T) {
	requests := []string{
		everyMember, `{}`, `{"model":null}`, `{"messages":[]}`, `{"messages":null,"tools":[],"tool_choice":null,"stop":null,"stream":null,"stream_options":null}`,
		`{"stop":"one"}`, `{"stop":[]}`, `{"stop":["one"]}`, `{"tool_choice":"required"}`, `{"tool_choice":{"type":"function","function":{"name":"f"}}}`,
		`{"model":5,"messages":"text","temperature":"hot","n":1.5,"max_tokens":1e400,"tools":{"a":1},"stop":7}`,
		`{"messages":["text",5,null,{"role":7,"content":8},{"content":{"a":1}},{"role":"user","content":[{"type":"text","text":5},"bare"]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":null},{"role":"assistant","tool_calls":[{"function":{"arguments":{"a":1}}},{"function":null},{}]}]}`,
	}
	for _, text := range requests {
		roundTrip[gateway.ChatRequest](t, []byte(text))
	}
	responses := []string{
		`{"id":"i","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"c","refusal":null,"annotations":[]},"logprobs":{"content":[{"token":"a","logprob":-0.1234567890123,"bytes":null}],"refusal":null},"finish_reason":"stop","native_finish_reason":"eos"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0,"text_tokens":null},"completion_tokens_details":null,"cost":0.00001234},"service_tier":null,"system_fingerprint":null,"x_groq":{"id":"g"}}`,
		`{}`, `{"id":"","created":0,"model":"","choices":null}`, `{"choices":[{}]}`, `{"choices":[{"finish_reason":null,"message":null}]}`,
		`{"choices":[{"index":null,"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}]},"finish_reason":""}]}`,
		`{"error":{"message":"m","code":429}}`,
	}
	for _, text := range responses {
		roundTrip[gateway.ChatResponse](t, []byte(text))
	}
	chunks := []string{
		`{"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}`,
		`{"choices":[]}`, `{"usage":{"prompt_tokens":1}}`, `{"choices":[{"delta":{"tool_calls":[{"index":null,"id":"","type":null,"function":{"name":null,"arguments":null}},{"id":"c"}]},"finish_reason":""}]}`,
		`{"choices":[{"index":0,"delta":{"content":null,"reasoning":"r","reasoning_details":[{"type":"reasoning.text"}]}}]}`,
		`{"choices":[{"index":"0","delta":[],"finish_reason":5}],"created":1.5}`,
	}
	for _, text := range chunks {
		roundTrip[gateway.ChatChunk](t, []byte(text))
	}
	for _, text := range []string{
		`{"model":"m","input":"t"}`, `{"input":["a","b"]}`, `{"input":[1,2]}`, `{"input":[[1],[2,3]]}`, `{"input":[]}`, `{"input":null}`,
		`{"input":["a",1]}`, `{"input":{"a":1},"dimensions":256,"encoding_format":"base64","user":"u","x":{}}`, `{}`, `{"input":[[1],["a"]]}`,
	} {
		roundTrip[gateway.EmbeddingRequest](t, []byte(text))
	}
	for _, text := range []string{
		`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1,1e-7]},{"embedding":"AAAAPw==","index":1}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`,
		`{"data":null}`, `{"data":[{"embedding":null}]}`, `{"data":[5]}`,
	} {
		roundTrip[gateway.EmbeddingResponse](t, []byte(text))
	}
}

func TestChangedDocumentKeepsTheRest(t *testing.T) {
	var r gateway.ChatRequest
	before := `{"model":"a","seed":9007199254740993,"x":{"y":1e400},"temperature":1.0,"messages":[{"role":"user","content":"one","z":null},{"role":"assistant","content":null,"refusal":null}],"tool_choice":null,"stop":"s","user":"u"}`
	if err := json.Unmarshal([]byte(before), &r); err != nil {
		t.Fatal(err)
	}
	r.Model, r.User = "b", ""
	r.Messages[0].Content = gateway.TextContent("two")
	r.Messages = append(r.Messages, gateway.UserMessage("three"))
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"b","seed":9007199254740993,"x":{"y":1e400},"temperature":1.0,"messages":[{"role":"user","content":"two","z":null},{"role":"assistant","content":null,"refusal":null},{"role":"user","content":"three"}],"tool_choice":null,"stop":"s"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

func TestUnknownMembersAreAtHand(t *testing.T) {
	var r gateway.ChatResponse
	if err := json.Unmarshal([]byte(`{"choices":[{"message":{"role":"assistant","content":"hi","vendor":{"a":1}}}],"provider":"p"}`), &r); err != nil {
		t.Fatal(err)
	}
	if got := string(r.Choices[0].Message.Extra); got != `{"vendor":{"a":1}}` {
		t.Errorf("the message's extra members: %s", got)
	}
	if got := string(r.Extra); got != `{"provider":"p"}` {
		t.Errorf("the response's extra members: %s", got)
	}
	if r.Text() != "hi" {
		t.Errorf("text %q", r.Text())
	}
}

func TestContentForms(t *testing.T) {
	image := gateway.UserMessage("look", gateway.ImagePart("https://example.com/a.png"))
	tests := []struct {
		content gateway.Content
		json    string
		text    string
		parts   int
	}{
		{gateway.TextContent("a<b"), `"a<b"`, "a<b", 1},
		{gateway.TextContent(""), `""`, "", 1},
		{gateway.NullContent(), `null`, "", 0},
		{image.Content, `[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]`, "look", 2},
		{gateway.PartsContent(gateway.TextPart("a"), gateway.AudioPart("AA", "wav"), gateway.TextPart("b"), gateway.FilePart("f", "data:x")), `[{"type":"text","text":"a"},{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},{"type":"text","text":"b"},{"type":"file","file":{"filename":"f","file_data":"data:x"}}]`, "ab", 4},
	}
	for _, test := range tests {
		got, err := json.Marshal(test.content)
		if err != nil || string(got) != test.json {
			t.Errorf("%s (%v), want %s", got, err, test.json)
		}
		if test.content.Text() != test.text || len(test.content.Parts()) != test.parts {
			t.Errorf("%s: text %q and %d parts", got, test.content.Text(), len(test.content.Parts()))
		}
		var again gateway.Content
		if err := json.Unmarshal(got, &again); err != nil || again.Text() != test.text {
			t.Errorf("%s decodes as %q (%v)", got, again.Text(), err)
		}
	}
	message, err := json.Marshal(gateway.Message{Role: gateway.RoleAssistant, ToolCalls: []gateway.ToolCall{}})
	if err != nil || string(message) != `{"role":"assistant","tool_calls":[]}` {
		t.Errorf("a message without content: %s (%v)", message, err)
	}
}

func TestToolAndStopForms(t *testing.T) {
	r := gateway.ChatRequest{
		Model: "m", Messages: []gateway.Message{gateway.ToolMessage("c1", "r")},
		Tools:      []gateway.Tool{gateway.FunctionTool("f", "d", jsontext.Value(`{"type":"object"}`))},
		ToolChoice: gateway.ToolNamed(`f"1`), Stop: gateway.StopAt("x"),
	}
	got, err := json.Marshal(r)
	want := `{"model":"m","messages":[{"role":"tool","content":"r","tool_call_id":"c1"}],"stop":"x","tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":"f\"1"}}}`
	if err != nil || string(got) != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
	r.ToolChoice, r.Stop = gateway.ToolMode("none"), gateway.StopAt("x", "y")
	if got, _ := json.Marshal(r); !strings.Contains(string(got), `"stop":["x","y"]`) || !strings.Contains(string(got), `"tool_choice":"none"`) {
		t.Errorf("%s", got)
	}
}

func TestVector(t *testing.T) {
	want := []float32{0.5, -1, 0.25, 2}
	if got := gateway.EncodeVector(want); got != "AAAAPwAAgL8AAIA+AAAAQA==" {
		t.Errorf("base64 %s", got)
	}
	for _, form := range []string{`[0.5,-1,0.25,2]`, `"AAAAPwAAgL8AAIA+AAAAQA=="`} {
		e := gateway.Embedding{Embedding: jsontext.Value(form)}
		if got, err := e.Vector(); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v (%v)", form, got, err)
		}
	}
	for _, form := range []string{`"!"`, `"` + base64.StdEncoding.EncodeToString([]byte("abc")) + `"`, `null`, ``, `["a"]`} {
		e := gateway.Embedding{Embedding: jsontext.Value(form)}
		if got, err := e.Vector(); err == nil {
			t.Errorf("%s: %v", form, got)
		}
	}
}

// Every recorded document of OpenAI's form goes through the typed view unchanged.
func TestRecordedDocumentsAreLossless(t *testing.T) {
	root := filepath.Join("..", "shared", "wire", "recorded")
	cases, _ := filepath.Glob(filepath.Join(root, "*", "*", "case.json"))
	if len(cases) == 0 {
		t.Skip("SKIPPED: the shared recordings are not here")
	}
	seen := 0
	for _, path := range cases {
		folder := filepath.Dir(path)
		name := filepath.Base(folder)
		if !strings.Contains(name, "-chat-") && !strings.Contains(name, "-embeddings-") || strings.HasPrefix(name, "cohere") || strings.Contains(name, "native") {
			continue
		}
		embeddings := strings.Contains(name, "-embeddings-")
		if text, err := os.ReadFile(filepath.Join(folder, "request.json")); err == nil && jsontext.Value(text).Kind() == '{' {
			seen++
			if embeddings {
				roundTrip[gateway.EmbeddingRequest](t, text)
			} else {
				roundTrip[gateway.ChatRequest](t, text)
			}
		}
		if text, err := os.ReadFile(filepath.Join(folder, "response.json")); err == nil && jsontext.Value(text).Kind() == '{' {
			seen++
			if embeddings {
				roundTrip[gateway.EmbeddingResponse](t, text)
			} else {
				roundTrip[gateway.ChatResponse](t, text)
			}
		}
		if text, err := os.ReadFile(filepath.Join(folder, "response.sse")); err == nil {
			for line := range strings.Lines(string(text)) {
				data := strings.TrimSpace(strings.TrimPrefix(line, "data:"))
				if strings.HasPrefix(line, "data:") && strings.HasPrefix(data, "{") {
					seen++
					roundTrip[gateway.ChatChunk](t, []byte(data))
				}
			}
		}
	}
	if seen < 1000 {
		t.Errorf("only %d documents were seen", seen)
	}
}

// randomValue writes a JSON value of any type.
func randomValue(random *rand.Rand, depth int) string {
	scalars := []string{`null`, `true`, `false`, `0`, `-0`, `1.0`, `9007199254740993`, `1e400`, `""`, `"text"`, `"<\u2028>"`, `[]`, `{}`}
	if depth == 0 || random.IntN(3) > 0 {
		return scalars[random.IntN(len(scalars))]
	}
	names := []string{
		"model", "messages", "role", "content", "tool_calls", "function", "arguments", "choices", "delta", "message", "usage",
		"index", "id", "type", "stop", "tools", "input", "data", "embedding", "x", "finish_reason", "prompt_tokens", "text",
	}
	var b strings.Builder
	if random.IntN(2) == 0 {
		b.WriteByte('[')
		for i := range random.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(randomValue(random, depth-1))
		}
		return b.String() + "]"
	}
	b.WriteByte('{')
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i, name := range names[:random.IntN(6)] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + name + `":` + randomValue(random, depth-1))
	}
	return b.String() + "}"
}

func TestAnyObjectIsLossless(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		text := randomValue(random, 6)
		if text[0] != '{' {
			continue
		}
		roundTrip[gateway.ChatRequest](t, []byte(text))
		roundTrip[gateway.ChatResponse](t, []byte(text))
		roundTrip[gateway.ChatChunk](t, []byte(text))
		roundTrip[gateway.EmbeddingRequest](t, []byte(text))
		roundTrip[gateway.EmbeddingResponse](t, []byte(text))
	}
}

func FuzzTypedValues(f *testing.F) {
	f.Add([]byte(everyMember))
	random := rand.New(rand.NewPCG(7, 8))
	for range 30 {
		f.Add([]byte(`{"messages":` + randomValue(random, 5) + `,"choices":` + randomValue(random, 5) + `,"input":` + randomValue(random, 3) + `}`))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if v := jsontext.Value(text); !v.IsValid() || v.Kind() != '{' {
			return
		}
		roundTrip[gateway.ChatRequest](t, text)
		roundTrip[gateway.ChatResponse](t, text)
		roundTrip[gateway.ChatChunk](t, text)
		roundTrip[gateway.EmbeddingRequest](t, text)
		roundTrip[gateway.EmbeddingResponse](t, text)
	})
}
