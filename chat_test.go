package gateway_test

import (
	stdjson "encoding/json"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
)

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%T does not decode %s: %v", value, text, err)
	}
	return value
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%T does not encode: %v", value, err)
	}
	return string(text)
}

func TestValuesOfAProgram(t *testing.T) {
	tests := []struct {
		name  string
		value any
		want  string
	}{
		{
			"a plain request",
			gateway.ChatRequest{Model: "m", Messages: []gateway.Message{
				gateway.SystemMessage("Be <brief> & \"kind\"."), gateway.UserMessage("Hello"), gateway.AssistantMessage("Hi"),
			}},
			`{"model":"m","messages":[{"role":"system","content":"Be <brief> & \"kind\"."},{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]}`,
		},
		{
			"parameters",
			gateway.ChatRequest{
				Model: "m", Messages: []gateway.Message{}, MaxCompletionTokens: gateway.Int(100), Temperature: gateway.Float(0),
				TopP: gateway.Float(1e-7), N: gateway.Int(2), Stop: []string{"\n", "END"}, Seed: gateway.Int(-9007199254740993),
				Logprobs: gateway.Bool(false), ReasoningEffort: "low", Modalities: []string{"text"},
				ResponseFormat: gateway.JSONFormat(), Metadata: map[string]string{"b": "2", "a": "1"},
				LogitBias:     jsontext.Value(`{"50256":-100}`),
				StreamOptions: &gateway.StreamOptions{IncludeUsage: gateway.Bool(true)},
				Extra:         jsontext.Value(`{"top_k":40}`),
			},
			`{"model":"m","messages":[],"max_completion_tokens":100,"temperature":0,"top_p":1e-7,"n":2,"stop":["\n","END"],"seed":-9007199254740993,"logit_bias":{"50256":-100},"logprobs":false,"response_format":{"type":"json_object"},"reasoning_effort":"low","modalities":["text"],"metadata":{"a":"1","b":"2"},"stream_options":{"include_usage":true},"top_k":40}`,
		},
		{"nothing at all", gateway.ChatRequest{}, `{"model":"","messages":[]}`},
		{"empty lists and objects", gateway.ChatRequest{Tools: []gateway.Tool{}, Metadata: map[string]string{}, Extra: jsontext.Value(" { } ")}, `{"model":"","messages":[],"tools":[],"metadata":{}}`},
		{
			"tools",
			gateway.ChatRequest{
				Tools: []gateway.Tool{
					gateway.FunctionTool("f", "d", jsontext.Value(`{"type":"object"}`)), gateway.CustomTool("g", ""),
				},
				ToolChoice: gateway.ToolMode("required"), FunctionCall: &gateway.ToolChoice{Name: "f"},
			},
			`{"model":"","messages":[],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},{"type":"custom","custom":{"name":"g"}}],"tool_choice":"required","function_call":{"name":"f"}}`,
		},
		{"a schema", gateway.SchemaFormat("s", jsontext.Value(`{}`)), `{"type":"json_schema","json_schema":{"name":"s","schema":{},"strict":true}}`},
		{"the choice of a mode", gateway.ToolMode("none"), `"none"`},
		{"the choice of a function", gateway.ToolNamed(`f"1`), `{"type":"function","function":{"name":"f\"1"}}`},
		{"the choice of a custom tool", gateway.CustomToolNamed("g"), `{"type":"custom","custom":{"name":"g"}}`},
		{
			"the choice among some tools",
			gateway.ToolsAllowed("auto", gateway.Tool{Type: "function", Function: &gateway.FunctionDefinition{Name: "f"}}),
			`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`,
		},
		{"a tool's result", gateway.ToolMessage("c1", ""), `{"role":"tool","content":"","tool_call_id":"c1"}`},
		{
			"tool calls",
			gateway.Message{Role: gateway.RoleAssistant, Content: gateway.NullContent(), ToolCalls: []gateway.ToolCall{
				{ID: "c1", Type: "function", Function: gateway.FunctionCall{Name: "f"}},
				{ID: "c2", Type: "custom", Custom: &gateway.CustomCall{Name: "g", Input: "i"}},
			}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":""}},{"id":"c2","type":"custom","custom":{"name":"g","input":"i"}}]}`,
		},
		{
			"parts",
			gateway.UserMessage("look", gateway.ImagePart("https://example.com/a.png"), gateway.AudioPart("AA", "wav"), gateway.FilePart("f", "data:x"), gateway.TextPart("")),
			`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},{"type":"file","file":{"filename":"f","file_data":"data:x"}},{"type":"text","text":""}]}`,
		},
		{
			"a response",
			gateway.ChatResponse{ID: "i", Object: "chat.completion", Choices: []gateway.ChatChoice{{Message: gateway.AssistantMessage("a"), FinishReason: gateway.FinishStop}}, Usage: &gateway.ChatUsage{}},
			`{"id":"i","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`,
		},
		{
			"a chunk",
			gateway.ChatChunk{Choices: []gateway.ChunkChoice{{Index: 1}, {Delta: gateway.Delta{ToolCalls: []gateway.ToolCallDelta{{Index: gateway.Int(0), Function: gateway.FunctionCallDelta{Arguments: "{"}}}}}}},
			`{"id":"","object":"","created":0,"model":"","choices":[{"index":1,"delta":{},"finish_reason":null},{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]},"finish_reason":null}]}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, encode(t, test.value)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponseIsAtHand(t *testing.T) {
	r := decode[gateway.ChatResponse](t, `{"id":"i","object":"chat.completion","created":1764587000,"model":"m","choices":[
		{"index":0,"message":{"role":"assistant","content":"hi","refusal":null,"reasoning_content":"hm","vendor":{"a":1},
			"annotations":[{"type":"url_citation","url_citation":{"start_index":1,"end_index":2,"url":"u","title":"t"}}],
			"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
		 "logprobs":{"content":[{"token":"hi","logprob":-0.5,"bytes":[104,105],"top_logprobs":[{"token":"ho","logprob":-1.5,"bytes":null}]}],"refusal":null},
		 "finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":null},
		"provider":"p"}`)
	choice := r.Choices[0]
	got := []any{
		r.ID, r.Created, r.Text(), r.ToolCalls()[0].Function.Name, r.ToolCalls()[0].Function.Arguments, string(r.Extra),
		choice.FinishReason, choice.Message.Refusal, choice.Message.ReasoningContent, string(choice.Message.Extra),
		choice.Message.Annotations[0].URLCitation.EndIndex, choice.Logprobs.Content[0].Logprob,
		choice.Logprobs.Content[0].TopLogprobs[0].Token, r.Usage.PromptTokensDetails.CachedTokens,
		r.Usage.CompletionTokensDetails.ReasoningTokens,
	}
	want := []any{
		"i", int64(1764587000), "hi", "f", "{}", `{"provider":"p"}`,
		"tool_calls", "", "hm", `{"vendor":{"a":1}}`,
		int64(2), -0.5, "ho", int64(4), int64(0),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	var none gateway.ChatResponse
	if none.Text() != "" || none.ToolCalls() != nil {
		t.Error("a response without choices has text or tool calls")
	}
}

func TestRequestIsAtHand(t *testing.T) {
	r := decode[gateway.ChatRequest](t, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u","detail":"low"}},{"type":"text","text":"b"},{"type":"video_url","video_url":{"url":"v"}}]}],
		"stop":"s","temperature":1.0,"n":1,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}},
		"function_call":"auto","functions":[{"name":"f","parameters":{"type":"object"}}],"prediction":{"type":"content","content":[{"type":"text","text":"p"}]},
		"audio":{"voice":"alloy","format":"wav"},"modalities":["text","audio"],"metadata":{"k":"v"},"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}}`)
	parts := r.Messages[0].Content.Parts()
	got := []any{
		r.Messages[0].Content.Text(), parts[1].ImageURL.Detail, parts[3].Type, string(parts[3].Extra), r.Stop, *r.Temperature, *r.N,
		r.ToolChoice.AllowedTools.Tools[0].Function.Name, r.FunctionCall.Mode, string(r.Functions[0].Parameters),
		r.Prediction.Content.Text(), r.Audio.Voice, r.Modalities, r.Metadata["k"], string(r.ResponseFormat.JSONSchema.Schema),
	}
	want := []any{
		"ab", "low", "video_url", `{"video_url":{"url":"v"}}`, []string{"s"}, 1.0, int64(1),
		"f", "auto", `{"type":"object"}`, "p", "alloy", []string{"text", "audio"}, "v", `{}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestOddValuesAreReadAsFarAsTheyGo(t *testing.T) {
	r := decode[gateway.ChatResponse](t, `{"id":5,"created":1764587000.9,"choices":[null,{"index":"0","message":{"content":8,"tool_calls":[{"id":null,"function":{"name":"f","arguments":{"a": 1}}}]},"finish_reason":""}],"usage":{"prompt_tokens":12.0,"completion_tokens":1e2,"total_tokens":1e400}}`)
	call := r.Choices[1].Message.ToolCalls[0]
	got := []any{r.ID, r.Created, len(r.Choices), r.Choices[1].Message.Content.Text(), call.ID, call.Function.Arguments, r.Usage.PromptTokens, r.Usage.CompletionTokens, r.Usage.TotalTokens}
	want := []any{"", int64(1764587000), 2, "", "", `{"a": 1}`, int64(12), int64(100), int64(0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	c := decode[gateway.ChatChunk](t, `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"}],"tool_calls":[{"index":null},{"index":3}]}}]}`)
	if c.Text() != "a" || c.Choices[0].Delta.ToolCalls[0].Index != nil || *c.Choices[0].Delta.ToolCalls[1].Index != 3 {
		t.Errorf("chunk %+v", c)
	}
}

// What a decoded value remembers of its text yields to what a program sets, and nothing else changes.
func TestChangedValues(t *testing.T) {
	const document = `{"model":"a","messages":[{"role":"user","content":8,"name":5},{"role":"user","content":"two","z":null},{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}],"temperature":1.0,"stop":"s","seed":1e3,"tool_choice":"auto","user":"","store":null,"x":{"y":1e400}}`
	tests := []struct {
		name   string
		change func(*gateway.ChatRequest)
		want   string
	}{
		{
			"nothing", func(*gateway.ChatRequest) {},
			document,
		},
		{
			"the first message goes", func(r *gateway.ChatRequest) { r.Messages = r.Messages[1:] },
			`{"model":"a","messages":[{"role":"user","content":"two","z":null},{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}],"temperature":1.0,"stop":"s","seed":1e3,"tool_choice":"auto","user":"","store":null,"x":{"y":1e400}}`,
		},
		{
			"odd members are set",
			func(r *gateway.ChatRequest) {
				r.Messages = r.Messages[:1]
				r.Messages[0].Content, r.Messages[0].Name = gateway.TextContent("one"), "n"
				r.Temperature, r.Stop, r.Seed = gateway.Float(2), []string{"t"}, gateway.Int(7)
				r.ToolChoice, r.User, r.Store = gateway.ToolMode("none"), "u", gateway.Bool(true)
			},
			`{"model":"a","messages":[{"role":"user","content":"one","name":"n"}],"temperature":2,"stop":["t"],"seed":7,"tool_choice":"none","user":"u","store":true,"x":{"y":1e400}}`,
		},
		{
			"odd members are removed",
			func(r *gateway.ChatRequest) {
				r.Messages = nil
				r.Temperature, r.Stop, r.Seed, r.ToolChoice, r.Extra = nil, nil, nil, nil, nil
			},
			`{"model":"a","messages":[],"user":"","store":null}`,
		},
		{
			"arguments are set",
			func(r *gateway.ChatRequest) {
				r.Messages = r.Messages[2:]
				r.Messages[0].ToolCalls[0].Function.Arguments = `{"a":2}`
			},
			`{"model":"a","messages":[{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":2}"}}]}],"temperature":1.0,"stop":"s","seed":1e3,"tool_choice":"auto","user":"","store":null,"x":{"y":1e400}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := decode[gateway.ChatRequest](t, document)
			test.change(&r)
			if diff := cmp.Diff(meaning(t, []byte(test.want)), meaning(t, []byte(encode(t, r)))); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessageMovesToAnotherDocument(t *testing.T) {
	answer := decode[gateway.ChatResponse](t, `{"choices":[{"message":{"role":"assistant","content":null,"refusal":null,"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{"a":1.0}},"extra_content":{"google":{"thought_signature":"s"}}}]}}]}`)
	next := gateway.ChatRequest{Model: "m", Messages: []gateway.Message{answer.Choices[0].Message, gateway.ToolMessage("c", "r")}}
	want := `{"model":"m","messages":[{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{"a":1.0}},"extra_content":{"google":{"thought_signature":"s"}}}],"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]},{"role":"tool","content":"r","tool_call_id":"c"}]}`
	if diff := cmp.Diff(want, encode(t, next)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

func TestContentForms(t *testing.T) {
	tests := []struct {
		content gateway.Content
		json    string
		text    string
		parts   int
	}{
		{gateway.Content{}, `null`, "", 0},
		{gateway.NullContent(), `null`, "", 0},
		{gateway.TextContent("a<b"), `"a<b"`, "a<b", 1},
		{gateway.TextContent(""), `""`, "", 1},
		{gateway.PartsContent(), `[]`, "", 0},
		{gateway.PartsContent(gateway.TextPart("a")), `[{"type":"text","text":"a"}]`, "a", 1},
		{gateway.PartsContent(gateway.TextPart("a"), gateway.ImagePart("u"), gateway.TextPart("b")), `[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"b"}]`, "ab", 3},
		{decode[gateway.Content](t, ` {"a": 1} `), `{"a":1}`, "", 0},
		{decode[gateway.Content](t, `[5,{"type":"text","text":"a"}]`), `[5,{"type":"text","text":"a"}]`, "a", 2},
	}
	for _, test := range tests {
		if got := encode(t, test.content); got != test.json {
			t.Errorf("%s, want %s", got, test.json)
		}
		if test.content.Text() != test.text || len(test.content.Parts()) != test.parts {
			t.Errorf("%s: text %q and %d parts", test.json, test.content.Text(), len(test.content.Parts()))
		}
		if again := decode[gateway.Content](t, test.json); again.Text() != test.text || encode(t, again) != test.json {
			t.Errorf("%s decodes as %q", test.json, again.Text())
		}
	}
}

func TestValuesThatCannotBeEncoded(t *testing.T) {
	inf := 1e308
	inf *= 10
	for name, value := range map[string]any{
		"a number that is not finite": gateway.ChatRequest{Temperature: &inf},
		"invalid UTF-8":               gateway.UserMessage("\xff"),
		"Extra that is no object":     gateway.ChatRequest{Extra: jsontext.Value(`[1]`)},
		"Extra that is malformed":     gateway.ChatRequest{Extra: jsontext.Value(`{"a":}`)},
		"Extra with a member twice":   gateway.ChatRequest{Model: "m", Extra: jsontext.Value(`{"model":"n"}`)},
		"a raw value that is none":    gateway.ChatRequest{LogitBias: jsontext.Value(`{`)},
	} {
		if text, err := json.Marshal(value); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestDocumentsThatCannotBeDecoded(t *testing.T) {
	for _, text := range []string{``, ` `, `null`, `5`, `"text"`, `[]`, `[{}]`, `{`, `{"model":"a","model":"b"}`, `{"model":"` + "\xff" + `"}`, `{} {}`} {
		var r gateway.ChatRequest
		if err := json.Unmarshal([]byte(text), &r); err == nil {
			t.Errorf("%q decodes as %+v", text, r)
		}
	}
}

// Programs that store conversations mostly use encoding/json.
func TestStandardEncoding(t *testing.T) {
	const text = `{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":\"\u003c\"}"}}],"x":1.0}`
	var m gateway.Message
	if err := stdjson.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	got, err := stdjson.Marshal(map[string]any{"m": m, "c": m.Content, "t": gateway.ToolMode("auto")})
	want := `{"c":null,"m":` + text + `,"t":"auto"}`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("document (-want +got):\n%s(%v)", diff, err)
	}
}

func TestDecodingForgetsWhatWasThere(t *testing.T) {
	r := decode[gateway.ChatRequest](t, `{"model":"a","stop":"s","x":1,"user":null}`)
	if err := json.Unmarshal([]byte(`{"n":1}`), &r); err != nil {
		t.Fatal(err)
	}
	if got := encode(t, r); got != `{"n":1}` {
		t.Errorf("document %s", got)
	}
}
