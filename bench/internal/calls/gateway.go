package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/bench/internal/wire"
	"github.com/gatewright/gateway/providers/openai"
)

// viaGateway is this project's library, with a price, slots and a recorder, as a program would use it.
func viaGateway(transport *Transport) (Contender, error) {
	provider, err := openai.New(openai.Config{
		Name: "mock", BaseURL: baseURL, Keys: []gateway.Secret{gateway.NewSecret(apiKey)}, MaxConcurrency: 64,
		Transport: transport,
	})
	if err != nil {
		return Contender{}, fmt.Errorf("gateway: %w", err)
	}
	client, err := gateway.New(
		gateway.WithProvider(provider),
		gateway.WithAlias(gateway.Alias{
			Name: wire.Alias, MaxConcurrency: 64,
			Candidates: []gateway.Candidate{{
				Provider: "mock", Model: wire.Model, MaxConcurrency: 64,
				Price: &gateway.Price{Input: gateway.USD("0.15"), Output: gateway.USD("0.60")},
			}},
		}),
		gateway.WithRecorder(gateway.RecorderFunc(func(context.Context, *gateway.Record) {})),
		gateway.WithLogger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return Contender{}, fmt.Errorf("gateway: %w", err)
	}
	warm, most, yes := temperature, int64(maxTokens), true
	question := func() gateway.ChatRequest {
		return gateway.ChatRequest{
			Model: wire.Alias, Temperature: &warm, MaxTokens: &most,
			Messages: []gateway.Message{gateway.SystemMessage(system), gateway.UserMessage(wire.Question)},
		}
	}
	return Contender{
		Name: "gateway",
		Chat: func(ctx context.Context) (string, int64, error) {
			a, err := client.Chat(ctx, question())
			if err != nil {
				return "", 0, fmt.Errorf("gateway: %w", err)
			}
			return a.Text(), a.Usage.CompletionTokens, nil
		},
		Stream: func(ctx context.Context) (chunks, text int, tokens int64, err error) {
			q := question()
			q.StreamOptions = &gateway.StreamOptions{IncludeUsage: &yes}
			stream, err := client.ChatStream(ctx, q)
			if err != nil {
				return 0, 0, 0, fmt.Errorf("gateway: %w", err)
			}
			defer stream.Close()
			for {
				c, err := stream.Next()
				if errors.Is(err, io.EOF) {
					return chunks, text, tokens, nil
				}
				if err != nil {
					return 0, 0, 0, fmt.Errorf("gateway: %w", err)
				}
				chunks++
				text += len(c.Text())
				if c.Usage != nil {
					tokens = c.Usage.CompletionTokens
				}
			}
		},
	}, nil
}
