package gateway_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
)

// number is the text of a JSON number.
type number string

// meaning returns a value of a JSON text in which the text of numbers counts and the order of members does not.
func meaning(t *testing.T, text []byte) any {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(text))
	value, err := readMeaning(d)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func readMeaning(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		object := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if object[key], err = readMeaning(d); err != nil {
				return nil, err
			}
		}
		_, err = d.ReadToken()
		return object, err
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			element, err := readMeaning(d)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err = d.ReadToken()
		return list, err
	case '0':
		return number(token.String()), nil
	case '"':
		return token.String(), nil
	default:
		return token.Kind(), nil
	}
}

// roundTrip decodes text into a T and encodes it again.
func roundTrip[T any](t *testing.T, text []byte) {
	t.Helper()
	var value T
	if err := jsonv2.Unmarshal(text, &value); err != nil {
		t.Errorf("%T does not decode %s: %v", value, text, err)
		return
	}
	out, err := jsonv2.Marshal(value)
	if err != nil {
		t.Errorf("%T does not encode what it decoded from %s: %v", value, text, err)
		return
	}
	if diff := cmp.Diff(meaning(t, text), meaning(t, out)); diff != "" {
		t.Errorf("%T changes the document (-before +after):\n%s\n%s\n%s", value, diff, text, out)
	}
}

// The documents of each kind that say the most, and odd ones.
var (
	requests = []string{
		`{"model":"a","messages":[
 {"role":"system","content":"s","x_vendor":1},{"role":"developer","content":[{"type":"text","text":"d","x":null}]},
 {"role":"user","name":"n","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA","detail":"low","x":1}},
  {"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},{"type":"file","file":{"file_id":"f"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA"}},{"type":"video_url","video_url":{"url":"u"}},{"type":"text"},{"text":""},"bare",null,{}]},
 {"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}","x":[]},"extra_content":{"google":{"thought_signature":"sig"}}},{"id":"c2","type":"custom","custom":{"name":"g","input":"i"}},{"function":{}},{"function":[]},{"function":null}]},
 {"role":"tool","tool_call_id":"c1","content":"r"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"r2"}]},
 {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}],"reasoning_content":"because","audio":{"id":"au"},"annotations":[{"type":"url_citation","url_citation":{"url":"u"}}]},
 {"role":"assistant","content":"","function_call":{"name":"f","arguments":""}},{"role":"function","name":"f","content":"r"}],
 "max_tokens":5,"max_completion_tokens":9007199254740993,"temperature":1.0,"top_p":0.1e-2,"n":2,"stop":["a","b"],"seed":-9007199254740993,
 "presence_penalty":-0,"frequency_penalty":0,"logit_bias":{"50256":-100},"logprobs":true,"top_logprobs":3,
 "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"integer","maximum":12345678901234567890123}}},"strict":true}},{"type":"custom","custom":{"name":"g","format":{"type":"grammar"}}},{"type":"web_search"}],
 "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}},"parallel_tool_calls":false,
 "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"$ref":"#/x"},"strict":null,"description":"d"}},
 "reasoning_effort":"high","verbosity":"low","modalities":["text","audio"],"audio":{"voice":"v","format":"wav"},
 "prediction":{"type":"content","content":"p"},"service_tier":"auto","metadata":{"k":"v"},"user":"u","safety_identifier":"s","prompt_cache_key":"k","store":false,
 "functions":[{"name":"f"}],"function_call":"auto","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false},
 "extra_body":{"google":{"cached_content":"c1"}},"x":[1,{"y":null}],"huge":1e400,"html":"<a>&\u2028","\u0065scaped\"":"\ud83d\ude00"}`,
		`{}`, `{"model":null}`, `{"messages":[]}`, `{"messages":null,"tools":[],"tool_choice":null,"stop":null,"stream":null,"stream_options":null}`,
		`{"mod\u0065l":"m","\u006dessages":[{"r\u006fle":"user"}]}`, ` { "model" : "m" , "messages" : [ { } , { "role" : "user" } ] , "x" : 1 } `,
		`{"stop":"one"}`, `{"stop":[]}`, `{"stop":["one"]}`, `{"stop":["one",2]}`, `{"tool_choice":"required"}`, `{"tool_choice":""}`,
		`{"tool_choice":{"type":"function","function":{"name":"f"}}}`, `{"tool_choice":{"type":"custom","custom":{"name":"g"}}}`,
		`{"functions":[],"function_call":{"name":"f"}}`, `{"metadata":{}}`, `{"metadata":{"a":1}}`, `{"metadata":null}`,
		`{"model":5,"messages":"text","temperature":"hot","n":1.5,"max_tokens":1e400,"tools":{"a":1},"stop":7,"store":"yes","modalities":"text"}`,
		`{"messages":["text",5,null,{"role":7,"content":8},{"content":{"a":1}},{"role":"user","content":[{"type":"text","text":5},"bare"]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":null},{"role":"assistant","tool_calls":[{"function":{"arguments":{"a":1}}},{"function":{"arguments":null}},{"function":null},{}]}]}`,
	}
	responses = []string{
		`{"id":"i","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"c","refusal":null,"annotations":[]},"logprobs":{"content":[{"token":"a","logprob":-0.1234567890123,"bytes":null,"top_logprobs":[{"token":"b","logprob":-1.0,"bytes":[98]}]}],"refusal":null},"finish_reason":"stop","native_finish_reason":"eos"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0,"text_tokens":null},"completion_tokens_details":null,"cost":0.00001234},"service_tier":null,"system_fingerprint":null,"x_groq":{"id":"g"}}`,
		`{}`, `{"id":"","created":0,"model":"","choices":null}`, `{"choices":[{}]}`, `{"choices":[{"finish_reason":null,"message":null}]}`,
		`{"choices":[{"message":{}},{"message":[]},{"message":"text"}],"usage":{}}`,
		`{"choices":[{"message":{"audio":{"id":"a","data":"AA","transcript":"t","expires_at":5},"function_call":{"name":"","arguments":""}}}]}`,
		`{"choices":[{"index":null,"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}]},"finish_reason":""}]}`,
		`{"usage":{"prompt_tokens":12.0,"completion_tokens":-0,"total_tokens":"3","prompt_tokens_details":{},"completion_tokens_details":{"reasoning_tokens":0}}}`,
		`{"error":{"message":"m","code":429}}`,
	}
	chunks = []string{
		`{"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}`,
		`{"choices":[]}`, `{"usage":{"prompt_tokens":1}}`, `{"choices":[{"delta":{"tool_calls":[{"index":null,"id":"","type":null,"function":{"name":null,"arguments":null}},{"id":"c"},{"custom":{"input":"i"}}]},"finish_reason":""}]}`,
		`{"choices":[{"index":0,"delta":{"content":null,"reasoning":"r","reasoning_details":[{"type":"reasoning.text"}]}}]}`,
		`{"choices":[{"index":"0","delta":[],"finish_reason":5}],"created":1.5}`, `{"choices":[{"delta":{"content":[{"type":"text","text":""}],"tool_calls":[]}}]}`,
	}
	embeddingRequests = []string{
		`{"model":"m","input":"t"}`, `{"input":["a","b"]}`, `{"input":[1,2]}`, `{"input":[[1],[2,3]]}`, `{"input":[]}`, `{"input":null}`,
		`{"input":["a",1]}`, `{"input":{"a":1},"dimensions":256,"encoding_format":"base64","user":"u","x":{}}`, `{}`, `{"input":[[1],["a"]]}`,
		`{"input":[9007199254740993,1.0]}`, `{"dimensions":256.0}`,
	}
	embeddingResponses = []string{
		`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1,1e-7,1.00]},{"embedding":"AAAAPw==","index":1}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`,
		`{"data":null}`, `{"data":[{"embedding":null}]}`, `{"data":[5]}`, `{"usage":null}`, `{}`,
	}
)

func TestDocumentsAreLossless(t *testing.T) {
	roundTrips[gateway.ChatRequest](t, requests)
	roundTrips[gateway.ChatResponse](t, responses)
	roundTrips[gateway.ChatChunk](t, chunks)
	roundTrips[gateway.EmbeddingRequest](t, embeddingRequests)
	roundTrips[gateway.EmbeddingResponse](t, embeddingResponses)
}

func roundTrips[T any](t *testing.T, texts []string) {
	t.Helper()
	for _, text := range texts {
		roundTrip[T](t, []byte(text))
	}
}

// Every recorded document of OpenAI's form goes through the typed values unchanged.
func TestRecordedDocumentsAreLossless(t *testing.T) {
	cases, _ := filepath.Glob(filepath.Join("..", "shared", "wire", "recorded", "*", "*", "case.json"))
	if len(cases) == 0 {
		t.Skip("SKIPPED: the shared recordings are not here")
	}
	seen := 0
	for _, path := range cases {
		folder := filepath.Dir(path)
		name := filepath.Base(folder)
		chat, embeddings := strings.Contains(name, "-chat-"), strings.Contains(name, "-embeddings-")
		if !chat && !embeddings || strings.HasPrefix(name, "cohere") || strings.Contains(name, "native") {
			continue
		}
		for _, document := range recordedDocuments(folder) {
			seen++
			switch isRequest := document.file == "request.json"; {
			case embeddings && isRequest:
				roundTrip[gateway.EmbeddingRequest](t, document.text)
			case embeddings:
				roundTrip[gateway.EmbeddingResponse](t, document.text)
			case isRequest:
				roundTrip[gateway.ChatRequest](t, document.text)
			case document.file == "response.json":
				roundTrip[gateway.ChatResponse](t, document.text)
			default:
				roundTrip[gateway.ChatChunk](t, document.text)
			}
		}
	}
	t.Logf("%d documents", seen)
	if seen < 1000 {
		t.Errorf("only %d documents were seen", seen)
	}
}

type recordedDocument struct {
	file string
	text []byte
}

// recordedDocuments returns the JSON objects of a recorded exchange.
func recordedDocuments(folder string) []recordedDocument {
	var documents []recordedDocument
	for _, file := range []string{"request.json", "response.json"} {
		if text, err := os.ReadFile(filepath.Join(folder, file)); err == nil && jsontext.Value(text).Kind() == '{' {
			documents = append(documents, recordedDocument{file, text})
		}
	}
	stream, _ := os.ReadFile(filepath.Join(folder, "response.sse"))
	for line := range strings.Lines(string(stream)) {
		data, ok := strings.CutPrefix(line, "data:")
		if text := []byte(strings.TrimSpace(data)); ok && jsontext.Value(text).Kind() == '{' {
			documents = append(documents, recordedDocument{"response.sse", text})
		}
	}
	return documents
}

// Any member of any document may be of any type, missing, or unknown.
func TestMutatedDocumentsAreLossless(t *testing.T) {
	mutate[gateway.ChatRequest](t, requests)
	mutate[gateway.ChatResponse](t, responses)
	mutate[gateway.ChatChunk](t, chunks)
	mutate[gateway.EmbeddingRequest](t, embeddingRequests)
	mutate[gateway.EmbeddingResponse](t, embeddingResponses)
}

func mutate[T any](t *testing.T, texts []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		value := meaning(t, []byte(texts[random.IntN(len(texts))]))
		for range 1 + random.IntN(8) {
			object, _ := value.(map[string]any)
			mutateObject(random, object)
		}
		text, err := json.Marshal(asGo(value))
		if err != nil {
			t.Fatal(err)
		}
		roundTrip[T](t, text)
		if t.Failed() {
			return
		}
	}
}

// asGo returns a value of meaning as encoding/json encodes it.
func asGo(value any) any {
	switch v := value.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, member := range v {
			object[name] = asGo(member)
		}
		return object
	case []any:
		list := []any{}
		for _, element := range v {
			list = append(list, asGo(element))
		}
		return list
	case number:
		return json.RawMessage(v)
	case jsontext.Kind:
		return map[jsontext.Kind]any{'n': nil, 't': true, 'f': false}[v]
	default:
		return v
	}
}

// mutateObject changes one value somewhere in the object.
func mutateObject(random *rand.Rand, object map[string]any) {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 || random.IntN(8) == 0 {
		object[[]string{"x", "content", "function", "index", "type"}[random.IntN(5)]] = anyValue(random)
		return
	}
	name := names[random.IntN(len(names))]
	switch v := object[name].(type) {
	case map[string]any:
		if random.IntN(4) > 0 {
			mutateObject(random, v)
			return
		}
	case []any:
		if len(v) > 0 && random.IntN(4) > 0 {
			i := random.IntN(len(v))
			if element, ok := v[i].(map[string]any); ok && random.IntN(4) > 0 {
				mutateObject(random, element)
			} else {
				v[i] = anyValue(random)
			}
			return
		}
	}
	if random.IntN(4) == 0 {
		delete(object, name)
	} else {
		object[name] = anyValue(random)
	}
}

func anyValue(random *rand.Rand) any {
	values := []any{
		jsontext.Kind('n'), jsontext.Kind('t'), jsontext.Kind('f'), number("0"), number("-0"), number("1"), number("1.0"), number("0.5"),
		number("9007199254740993"), number("9223372036854775808"), number("-1e400"), number("1E2"), number("1e21"), number("1e-7"),
		"", "text", "auto", "<\u2028>", []any{}, []any{"a"}, []any{number("1")}, []any{map[string]any{}}, []any{jsontext.Kind('n')},
		map[string]any{}, map[string]any{"x": "y"}, map[string]any{"name": number("1"), "type": "text", "arguments": map[string]any{}},
	}
	return values[random.IntN(len(values))]
}

// randomValue writes a JSON value of any type.
func randomValue(random *rand.Rand, depth int) string {
	scalars := []string{`null`, `true`, `false`, `0`, `-0`, `1.0`, `9007199254740993`, `1e400`, `""`, `"text"`, `"<\u2028>"`, `[]`, `{}`}
	if depth == 0 || random.IntN(3) == 0 {
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
	for range 5000 {
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

// The tag of each field is the name that the codec knows the member by.
func TestTagsAreTheNamesOfMembers(t *testing.T) {
	types := []any{
		gateway.ChatRequest{}, gateway.StreamOptions{}, gateway.AudioOutput{}, gateway.Prediction{}, gateway.ResponseFormat{},
		gateway.JSONSchema{}, gateway.ChatResponse{}, gateway.ChatChoice{}, gateway.ChatChunk{}, gateway.ChunkChoice{}, gateway.Delta{},
		gateway.ChatUsage{}, gateway.PromptTokensDetails{}, gateway.CompletionTokensDetails{}, gateway.Logprobs{}, gateway.TokenLogprob{},
		gateway.TopLogprob{}, gateway.Message{}, gateway.ContentPart{}, gateway.ImageURL{}, gateway.InputAudio{}, gateway.File{},
		gateway.MessageAudio{}, gateway.Annotation{}, gateway.URLCitation{}, gateway.Tool{}, gateway.FunctionDefinition{},
		gateway.CustomDefinition{}, gateway.ToolChoice{}, gateway.ToolName{}, gateway.AllowedTools{}, gateway.ToolCall{},
		gateway.FunctionCall{}, gateway.CustomCall{}, gateway.ToolCallDelta{}, gateway.FunctionCallDelta{}, gateway.CustomCallDelta{},
		gateway.EmbeddingRequest{}, gateway.EmbeddingResponse{}, gateway.EmbeddingUsage{}, gateway.Embedding{},
	}
	for _, value := range types {
		typ := reflect.TypeOf(value)
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !slices.ContainsFunc([]string{`"x"`, `1`, `true`, `[]`, `{"x":"x"}`}, func(sample string) bool {
				decoded := reflect.New(typ)
				err := jsonv2.Unmarshal([]byte(`{"`+name+`":`+sample+`}`), decoded.Interface())
				return err == nil && !decoded.Elem().Field(i).IsZero() && decoded.Elem().FieldByName("Extra").IsZero()
			}) {
				t.Errorf("%v.%s: no value of the member %q gets there", typ, field.Name, name)
			}
		}
	}
}
