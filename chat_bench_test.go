package gateway_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway"
)

// The floor of each pair is the least that a program needs of the document, with plain members, as json/v2 has it.

type floorUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
}

type floorCall struct {
	Index    int64  `json:"index,omitzero"`
	ID       string `json:"id,omitzero"`
	Function struct {
		Name      string `json:"name,omitzero"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type floorMessage struct {
	Role      string      `json:"role,omitzero"`
	Content   string      `json:"content"`
	ToolCalls []floorCall `json:"tool_calls,omitzero"`
}

type floorChunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index        int64        `json:"index"`
		Delta        floorMessage `json:"delta"`
		FinishReason *string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *floorUsage `json:"usage"`
}

type floorResponse struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index        int64        `json:"index"`
		Message      floorMessage `json:"message"`
		FinishReason string       `json:"finish_reason"`
	} `json:"choices"`
	Usage *floorUsage `json:"usage"`
}

type floorRequest struct {
	Model               string         `json:"model"`
	Messages            []floorMessage `json:"messages"`
	MaxCompletionTokens *int64         `json:"max_completion_tokens,omitzero"`
	Temperature         *float64       `json:"temperature,omitzero"`
	Stream              bool           `json:"stream,omitzero"`
}

const (
	smallChunk    = `{"id":"chatcmpl-C1a2B3c4D5e6F7g8H9i0","object":"chat.completion.chunk","created":1764587000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_560af6e559","choices":[{"index":0,"delta":{"content":" world"},"logprobs":null,"finish_reason":null}],"usage":null}`
	smallResponse = `{"id":"chatcmpl-C1a2B3c4D5e6F7g8H9i0","object":"chat.completion","created":1764587000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"The capital of France is Paris.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":24,"completion_tokens":8,"total_tokens":32,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_560af6e559"}`
	smallRequest  = `{"model":"chat-smart","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"What is the capital of France?"}],"max_completion_tokens":100,"temperature":0.7,"stream":true}`
)

func BenchmarkDecodeChunk(b *testing.B) {
	b.Run("typed", func(b *testing.B) { benchmarkDecode[gateway.ChatChunk](b, smallChunk) })
	b.Run("floor", func(b *testing.B) { benchmarkDecode[floorChunk](b, smallChunk) })
}

func BenchmarkDecodeResponse(b *testing.B) {
	b.Run("typed", func(b *testing.B) { benchmarkDecode[gateway.ChatResponse](b, smallResponse) })
	b.Run("floor", func(b *testing.B) { benchmarkDecode[floorResponse](b, smallResponse) })
}

func BenchmarkDecodeRequest(b *testing.B) {
	b.Run("typed", func(b *testing.B) { benchmarkDecode[gateway.ChatRequest](b, smallRequest) })
	b.Run("floor", func(b *testing.B) { benchmarkDecode[floorRequest](b, smallRequest) })
}

func BenchmarkEncodeResponse(b *testing.B) {
	b.Run("typed", func(b *testing.B) { benchmarkEncode[gateway.ChatResponse](b, smallResponse) })
	b.Run("direct", func(b *testing.B) { benchmarkDirect[gateway.ChatResponse](b, smallResponse) })
	b.Run("floor", func(b *testing.B) { benchmarkEncode[floorResponse](b, smallResponse) })
}

func BenchmarkEncodeRequest(b *testing.B) {
	b.Run("typed", func(b *testing.B) { benchmarkEncode[gateway.ChatRequest](b, smallRequest) })
	b.Run("direct", func(b *testing.B) { benchmarkDirect[gateway.ChatRequest](b, smallRequest) })
	b.Run("floor", func(b *testing.B) { benchmarkEncode[floorRequest](b, smallRequest) })
}

func benchmarkDecode[T any](b *testing.B, text string) {
	b.Helper()
	b.ReportAllocs()
	document := []byte(text)
	for b.Loop() {
		var value T
		if err := json.Unmarshal(document, &value); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkEncode[T any](b *testing.B, text string) {
	b.Helper()
	b.ReportAllocs()
	value := new(T)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := json.Marshal(value); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkDirect leaves out json's second look at what the value has encoded.
func benchmarkDirect[T json.Marshaler](b *testing.B, text string) {
	b.Helper()
	b.ReportAllocs()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := value.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}
