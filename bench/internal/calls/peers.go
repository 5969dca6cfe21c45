package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mozilla-ai/any-llm-go/config"
	"github.com/mozilla-ai/any-llm-go/providers"
	anyopenai "github.com/mozilla-ai/any-llm-go/providers/openai"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	goopenai "github.com/sashabaranov/go-openai"

	"github.com/gatewright/gateway/bench/internal/wire"
)

const (
	baseURL = "http://llm.example/v1"
	apiKey  = "sk-upstream"
)

// openAIGo is github.com/openai/openai-go, OpenAI's own SDK.
func openAIGo(transport *Transport) (Contender, error) {
	client := openai.NewClient(option.WithBaseURL(baseURL), option.WithAPIKey(apiKey), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: transport}))
	params := func() openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{
			Model:       wire.Model,
			Messages:    []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage(wire.Question)},
			Temperature: openai.Float(temperature), MaxTokens: openai.Int(maxTokens),
		}
	}
	return Contender{
		Name: "openai-go",
		Chat: func(ctx context.Context) (string, int64, error) {
			a, err := client.Chat.Completions.New(ctx, params())
			if err != nil {
				return "", 0, fmt.Errorf("openai-go: %w", err)
			}
			return a.Choices[0].Message.Content, a.Usage.CompletionTokens, nil
		},
		Stream: func(ctx context.Context) (chunks, text int, tokens int64, err error) {
			p := params()
			p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
			stream := client.Chat.Completions.NewStreaming(ctx, p)
			defer stream.Close()
			for stream.Next() {
				c := stream.Current()
				chunks++
				for i := range c.Choices {
					text += len(c.Choices[i].Delta.Content)
				}
				tokens = max(tokens, c.Usage.CompletionTokens)
			}
			return chunks, text, tokens, stream.Err()
		},
	}, nil
}

// goOpenAI is github.com/sashabaranov/go-openai.
func goOpenAI(transport *Transport) (Contender, error) {
	settings := goopenai.DefaultConfig(apiKey)
	settings.BaseURL, settings.HTTPClient = baseURL, &http.Client{Transport: transport}
	client := goopenai.NewClientWithConfig(settings)
	question := func() goopenai.ChatCompletionRequest {
		return goopenai.ChatCompletionRequest{
			Model: wire.Model, Temperature: temperature, MaxTokens: maxTokens, //nolint:staticcheck // as the other clients send it
			Messages: []goopenai.ChatCompletionMessage{
				{Role: goopenai.ChatMessageRoleSystem, Content: system}, {Role: goopenai.ChatMessageRoleUser, Content: wire.Question},
			},
		}
	}
	return Contender{
		Name: "go-openai",
		Chat: func(ctx context.Context) (string, int64, error) {
			a, err := client.CreateChatCompletion(ctx, question())
			if err != nil {
				return "", 0, fmt.Errorf("go-openai: %w", err)
			}
			return a.Choices[0].Message.Content, int64(a.Usage.CompletionTokens), nil
		},
		Stream: func(ctx context.Context) (chunks, text int, tokens int64, err error) {
			q := question()
			q.StreamOptions = &goopenai.StreamOptions{IncludeUsage: true}
			stream, err := client.CreateChatCompletionStream(ctx, q)
			if err != nil {
				return 0, 0, 0, fmt.Errorf("go-openai: %w", err)
			}
			defer stream.Close()
			for {
				c, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					return chunks, text, tokens, nil
				}
				if err != nil {
					return 0, 0, 0, fmt.Errorf("go-openai: %w", err)
				}
				chunks++
				for i := range c.Choices {
					text += len(c.Choices[i].Delta.Content)
				}
				if c.Usage != nil {
					tokens = int64(c.Usage.CompletionTokens)
				}
			}
		},
	}, nil
}

// anyLLM is github.com/mozilla-ai/any-llm-go, the library closest in purpose.
func anyLLM(transport *Transport) (Contender, error) {
	provider, err := anyopenai.New(config.WithBaseURL(baseURL), config.WithAPIKey(apiKey),
		config.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return Contender{}, fmt.Errorf("any-llm-go: %w", err)
	}
	warm, most := temperature, maxTokens
	params := func() providers.CompletionParams {
		return providers.CompletionParams{
			Model: wire.Model, Temperature: &warm, MaxTokens: &most,
			Messages: []providers.Message{
				{Role: providers.RoleSystem, Content: system}, {Role: providers.RoleUser, Content: wire.Question},
			},
		}
	}
	return Contender{
		Name: "any-llm-go",
		Chat: func(ctx context.Context) (string, int64, error) {
			a, err := provider.Completion(ctx, params())
			if err != nil {
				return "", 0, fmt.Errorf("any-llm-go: %w", err)
			}
			return a.Choices[0].Message.ContentString(), int64(a.Usage.CompletionTokens), nil
		},
		Stream: func(ctx context.Context) (chunks, text int, tokens int64, err error) {
			p := params()
			p.Stream, p.StreamOptions = true, &providers.StreamOptions{IncludeUsage: true}
			stream, failed := provider.CompletionStream(ctx, p)
			for c := range stream {
				chunks++
				for i := range c.Choices {
					text += len(c.Choices[i].Delta.Content)
				}
				if c.Usage != nil {
					tokens = int64(c.Usage.CompletionTokens)
				}
			}
			return chunks, text, tokens, <-failed
		},
	}, nil
}
