package gateway_test

import (
	"testing"

	"github.com/go-json-experiment/json"
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
			`{"id":"i","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello","reasoning_content":"because"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
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
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":""}]}`,
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
			`{"id":"","object":"chat.completion","created":0,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"h","arguments":"1"}},{"id":"d","type":"function","function":{"name":"i","arguments":"2"}}]},"finish_reason":""}]}`,
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
