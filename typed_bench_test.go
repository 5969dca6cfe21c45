package gateway_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway"
)

// What decoding into the typed view costs beside decoding into structs that have only what is used.
func BenchmarkDecode(b *testing.B) {
	type call struct {
		Index    *int64 `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	type message struct {
		Role      string `json:"role"`
		Content   string `json:"content"`
		ToolCalls []call `json:"tool_calls"`
	}
	type usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
		TotalTokens      int64 `json:"total_tokens"`
	}
	type document struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		Model   string `json:"model"`
		Choices []struct {
			Index        int64   `json:"index"`
			Message      message `json:"message"`
			Delta        message `json:"delta"`
			FinishReason string  `json:"finish_reason"`
		} `json:"choices"`
		Usage *usage `json:"usage"`
	}
	chunk := []byte(`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" hello world"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	response := []byte(`{"id":"chatcmpl-123","object":"chat.completion","created":1700000000,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"Hello! How can I help you today?","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_1"}`)
	run := func(name string, text []byte, into func() any) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := json.Unmarshal(text, into()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("chunk/floor", chunk, func() any { return new(document) })
	run("chunk/typed", chunk, func() any { return new(gateway.ChatChunk) })
	run("response/floor", response, func() any { return new(document) })
	run("response/typed", response, func() any { return new(gateway.ChatResponse) })
}
