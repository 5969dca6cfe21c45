package clients_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	sashabaranov "github.com/sashabaranov/go-openai"
)

const text = "Hello from 日本, <world> & more"

func official(apiKey string) openai.Client {
	return openai.NewClient(option.WithBaseURL(base), option.WithAPIKey(apiKey), option.WithMaxRetries(0))
}

func params(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	}
}

func TestOpenAIGo(t *testing.T) {
	client := official(key)
	answer, err := client.Chat.Completions.New(t.Context(), params("chat"))
	if err != nil || answer.Choices[0].Message.Content != text || answer.Usage.TotalTokens != 150 {
		t.Errorf("chat: %+v (%v)", answer, err)
	}

	for model, want := range map[string]string{"chat": text, "tools": ""} {
		stream := client.Chat.Completions.NewStreaming(t.Context(), params(model))
		var sum openai.ChatCompletionAccumulator
		for stream.Next() {
			if !sum.AddChunk(stream.Current()) {
				t.Errorf("%s: a chunk is refused", model)
			}
		}
		if err := stream.Err(); err != nil || sum.Choices[0].Message.Content != want {
			t.Errorf("%s: stream %+v (%v)", model, sum.ChatCompletion, err)
		}
		if model == "tools" {
			var calls []string
			for _, c := range sum.Choices[0].Message.ToolCalls {
				calls = append(calls, c.ID+" "+c.Function.Name+" "+c.Function.Arguments)
			}
			if want := []string{`call_1 weather {"city":"Paris"}`, `call_2 time {}`}; !slices.Equal(calls, want) {
				t.Errorf("tool calls %q, want %q", calls, want)
			}
		}
	}

	embeddings, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: "embed", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("hello")},
	})
	if err != nil || !slices.Equal(embeddings.Data[0].Embedding, []float64{0.5, -1, 0.25, 2}) {
		t.Errorf("embeddings: %+v (%v)", embeddings, err)
	}

	model, err := client.Models.Get(t.Context(), "org/chat:7b")
	if err != nil || model.ID != "org/chat:7b" {
		t.Errorf("models: %+v (%v)", model, err)
	}
}

func TestOpenAIGoErrors(t *testing.T) {
	for _, test := range []struct {
		model, key, code string
		status           int
	}{
		{"nothing", key, "model_not_found", 404},
		{"chat", "wrong", "invalid_api_key", 401},
		{"limited", key, "upstream_rate_limited", 429},
		{"failing", key, "upstream_error", 502},
	} {
		client := official(test.key)
		_, err := client.Chat.Completions.New(t.Context(), params(test.model))
		var failure *openai.Error
		if !errors.As(err, &failure) || failure.StatusCode != test.status || failure.Code != test.code || failure.Message == "" {
			t.Errorf("%s: %v, want %d %s", test.model, err, test.status, test.code)
		}
	}
	client := official(key)
	stream := client.Chat.Completions.NewStreaming(t.Context(), params("cut"))
	got := ""
	for stream.Next() {
		if choices := stream.Current().Choices; len(choices) > 0 {
			got += choices[0].Delta.Content
		}
	}
	if stream.Err() == nil || got != "half an " {
		t.Errorf("a cut stream: %q (%v), want an error", got, stream.Err())
	}
}

func TestGoOpenAI(t *testing.T) {
	config := sashabaranov.DefaultConfig(key)
	config.BaseURL = base
	client := sashabaranov.NewClientWithConfig(config)
	request := func(model string) sashabaranov.ChatCompletionRequest {
		return sashabaranov.ChatCompletionRequest{
			Model: model, Messages: []sashabaranov.ChatCompletionMessage{{Role: "user", Content: "hello"}},
		}
	}
	answer, err := client.CreateChatCompletion(t.Context(), request("chat"))
	if err != nil || answer.Choices[0].Message.Content != text {
		t.Errorf("chat: %+v (%v)", answer, err)
	}
	for model, want := range map[string]struct {
		text string
		err  bool
	}{"chat": {text, false}, "cut": {"half an ", true}} {
		stream, err := client.CreateChatCompletionStream(t.Context(), request(model))
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		got := ""
		for {
			var chunk sashabaranov.ChatCompletionStreamResponse
			if chunk, err = stream.Recv(); err != nil {
				break
			}
			if len(chunk.Choices) > 0 {
				got += chunk.Choices[0].Delta.Content
			}
		}
		stream.Close()
		if got != want.text || errors.Is(err, io.EOF) == want.err {
			t.Errorf("%s: stream %q ended with %v", model, got, err)
		}
	}
	embeddings, err := client.CreateEmbeddings(t.Context(), sashabaranov.EmbeddingRequest{Model: "embed", Input: "hello"})
	if err != nil || !slices.Equal(embeddings.Data[0].Embedding, []float32{0.5, -1, 0.25, 2}) {
		t.Errorf("embeddings: %+v (%v)", embeddings, err)
	}
	_, err = client.CreateChatCompletion(t.Context(), request("limited"))
	var failure *sashabaranov.APIError
	if !errors.As(err, &failure) || failure.HTTPStatusCode != 429 || failure.Code != "upstream_rate_limited" {
		t.Errorf("limited: %v", err)
	}
}

// What only shows on the wire.
func TestRaw(t *testing.T) {
	res := ask(t, t.Context(), `{"model":"chat","stream":true,"messages":[]}`)
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || strings.Count(string(body), "data: [DONE]\n\n") != 1 || !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
		t.Errorf("a stream: %s (%v)", body, err)
	}
	if res.Trailer.Get("X-Gateway-Cost-USD") != "0.000600" {
		t.Errorf("trailer %v", res.Trailer)
	}
	res = ask(t, t.Context(), `{"model":"chat","messages":[{"role":"user","content":"`+strings.Repeat("x", 40<<20)+`"}]}`)
	body, err = io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), "request_too_large") {
		t.Errorf("too large: %d %s (%v)", res.StatusCode, body, err)
	}
}
