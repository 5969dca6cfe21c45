package gateway_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
)

func TestChatAccumulator(t *testing.T) {
	tests := []struct {
		name   string
		chunks []string
		want   string
	}{
		{
			"text, reasoning and usage",
			[]string{
				`{"id":"i","model":"m","created":7,"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null}}]}`,
				`{"id":"other","choices":[{"index":0,"delta":{"reasoning_content":"be","reasoning":"be"}}]}`,
				`{"choices":[{"index":0,"delta":{"reasoning":"cause"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
				`{"choices":[{"index":0,"delta":{"content":"he"}}],"usage":null}`,
				`{"choices":[{"index":0,"delta":{"content":"llo"},"finish_reason":"stop"}]}`,
				`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
			},
			`{"id":"i","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello","reasoning_content":"be","reasoning":"because"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
		},
		{
			"interleaved choices with tool calls",
			[]string{
				`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}},{"index":1,"delta":{"content":"x"}}]}`,
				`{"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"h","arguments":"{}"}}]}},{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{"}},{"index":0,"function":{"arguments":"{\"a\""}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"},{"index":1,"delta":{},"finish_reason":"tool_calls"}]}`,
			},
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"},{"index":1,"message":{"role":"assistant","content":"x","tool_calls":[{"id":"c","type":"function","function":{"name":"h","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		},
		{
			"ids and names repeated, emptied, nulled",
			[]string{
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":""}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":null,"arguments":":1}"}}]}}]}`,
			},
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}]}`,
		},
		{
			"no index, or the same one for all calls",
			[]string{
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":null,"function":{"arguments":"}"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"h","arguments":"1"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"d","function":{"name":"i","arguments":"2"}}]}}]}`,
			},
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"h","arguments":"1"}},{"id":"d","type":"function","function":{"name":"i","arguments":"2"}}]},"finish_reason":null}]}`,
		},
		{
			"whole calls without ids, several in one chunk",
			[]string{
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":{"a":1}}},{"index":0,"function":{"name":"g"}},{"index":0,"function":{"name":"h"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"late","function":{"arguments":"1"}}]}}]}`,
			},
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"","type":"function","function":{"name":"g","arguments":""}},{"id":"late","type":"function","function":{"name":"h","arguments":"1"}}]},"finish_reason":null}]}`,
		},
		{
			"a custom tool, a deprecated function, a refusal, logprobs and audio",
			[]string{
				`{"choices":[{"index":1,"delta":{"refusal":"I "},"logprobs":{"content":null,"refusal":[{"token":"I","logprob":-1}]}},{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"custom","custom":{"name":"g","input":"a"}}]}}]}`,
				`{"choices":[{"index":1,"delta":{"refusal":"can't"},"logprobs":{"refusal":[{"token":"can't","logprob":-2}]},"finish_reason":"stop"},{"index":0,"delta":{"tool_calls":[{"index":0,"custom":{"input":"b"}}]}}]}`,
				`{"choices":[{"index":2,"delta":{"function_call":{"name":"f","arguments":""},"audio":{"id":"a","data":"AA"}}},{"index":2,"delta":{"function_call":{"arguments":"{}"},"audio":{"data":"BB","expires_at":5}}},{"index":3,"delta":{"function_call":{"name":"","arguments":""}}}]}`,
			},
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"g","input":"ab"}}]},"finish_reason":null},{"index":1,"message":{"role":"assistant","content":null,"refusal":"I can't"},"logprobs":{"refusal":[{"token":"I","logprob":-1},{"token":"can't","logprob":-2}]},"finish_reason":"stop"},{"index":2,"message":{"role":"assistant","content":null,"audio":{"id":"a","data":"AABB","expires_at":5},"function_call":{"name":"f","arguments":"{}"}},"finish_reason":null},{"index":3,"message":{"role":"assistant","content":null},"finish_reason":null}]}`,
		},
		{
			"content in parts",
			[]string{
				`{"choices":[{"index":0,"delta":{"content":""}}]}`,
				`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]}]}}]}`,
				`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"}],"closed":true}]}}]}`,
				`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"b"}]}}]}`,
			},
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}],"closed":true},{"type":"text","text":"ab"}]},"finish_reason":null}]}`,
		},
		{
			"members that the types do not name",
			[]string{
				`{"obfuscation":"x","citations":["a"],"choices":[{"index":0,"delta":{"content":"t","reasoning_details":[ ],"channel":"analysis","tool_calls":[{"index":0,"id":"c","function":{"name":"f"},"extra_content":{"google":{"thought_signature":"s"}}}]}}]}`,
				`{"citations":[ "b" ,"c"],"cost":1.0,"choices":[{"index":0,"delta":{"reasoning_details":[{"text":"r"}],"channel":null},"native_finish_reason":"STOP"}]}`,
			},
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":"t","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""},"extra_content":{"google":{"thought_signature":"s"}}}],"reasoning_details":[{"text":"r"}],"channel":"analysis"},"finish_reason":null,"native_finish_reason":"STOP"}],"citations":["a","b","c"],"cost":1.0}`,
		},
		{"nothing", nil, `{"id":"","object":"chat.completion","created":0,"model":"","choices":[]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var sum gateway.ChatAccumulator
			for _, text := range test.chunks {
				var chunk gateway.ChatChunk
				if err := json.Unmarshal([]byte(text), &chunk); err != nil {
					t.Fatal(err)
				}
				sum.Add(&chunk)
			}
			got, err := json.Marshal(sum.Response())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

// The accumulated answers of the recorded streams say what their chunks say.
func TestChatAccumulatorOnRecordedStreams(t *testing.T) {
	folders, _ := filepath.Glob(filepath.Join("..", "shared", "wire", "recorded", "*", "*-chat-stream-*"))
	if len(folders) == 0 {
		t.Skip("SKIPPED: the shared recordings are not here")
	}
	for _, folder := range folders {
		if strings.Contains(folder, "cohere") {
			continue
		}
		var sum gateway.ChatAccumulator
		var text, arguments strings.Builder
		for _, document := range recordedDocuments(folder) {
			if document.file != "response.sse" {
				continue
			}
			chunk := decode[gateway.ChatChunk](t, string(document.text))
			text.WriteString(chunk.Text())
			for _, choice := range chunk.Choices {
				for _, call := range choice.Delta.ToolCalls {
					arguments.WriteString(call.Function.Arguments)
				}
			}
			sum.Add(&chunk)
		}
		r := sum.Response()
		if r.Text() != text.String() {
			t.Errorf("%s: text %q, want %q", folder, r.Text(), text.String())
		}
		length := 0
		for _, choice := range r.Choices {
			for _, call := range choice.Message.ToolCalls {
				length += len(call.Function.Arguments)
				if call.Function.Name == "" || call.Function.Arguments != "" && !jsontext.Value(call.Function.Arguments).IsValid() {
					t.Errorf("%s: tool call %+v", folder, call)
				}
			}
		}
		if length != arguments.Len() {
			t.Errorf("%s: %d bytes of arguments, want %d", folder, length, arguments.Len())
		}
		roundTrip[gateway.ChatResponse](t, []byte(encode(t, r)))
	}
}

func TestChatAccumulatorResponseStays(t *testing.T) {
	var sum gateway.ChatAccumulator
	chunk := decode[gateway.ChatChunk](t, `{"x":["a"],"choices":[{"index":0,"delta":{"content":"a","annotations":[{"type":"t"}],"audio":{"data":"A"},"tool_calls":[{"index":0,"id":"c","function":{"arguments":"1"}}]},"logprobs":{"content":[{"token":"a","logprob":0}]}}]}`)
	sum.Add(&chunk)
	first := sum.Response()
	before := encode(t, first)
	for range 5 {
		sum.Add(&chunk)
	}
	if diff := cmp.Diff(before, encode(t, first)); diff != "" {
		t.Errorf("the response changes with later chunks:\n%s", diff)
	}
}
