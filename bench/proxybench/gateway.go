package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/bench/internal/wire"
	"github.com/gatewright/gateway/examples/openaihttp"
	"github.com/gatewright/gateway/providers/openai"
)

// throughGateway is the server's handler with everything on that a call passes: key check, routing, slots of the
// provider, of the alias and of the candidate, retries, timeouts, statistics, cost and a record.
func throughGateway(target *url.URL) (http.Handler, *gateway.Client, *ledger, error) {
	const slots = 4096
	provider, err := openai.New(openai.Config{
		Name: "mock", BaseURL: target.String() + "/v1", Keys: []gateway.Secret{gateway.NewSecret("sk-upstream")},
		MaxConcurrency: slots,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	records := &ledger{}
	client, err := gateway.New(
		gateway.WithProvider(provider),
		gateway.WithAlias(gateway.Alias{
			Name: wire.Alias, MaxConcurrency: slots,
			Candidates: []gateway.Candidate{{
				Provider: "mock", Model: wire.Model, MaxConcurrency: slots,
				Price: &gateway.Price{Input: gateway.USD("0.15"), CacheRead: gateway.USD("0.075"), Output: gateway.USD("0.60")},
			}},
		}),
		gateway.WithRecorder(records),
		gateway.WithLogger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return nil, nil, nil, err
	}
	handler := openaihttp.New(client, openaihttp.WithKeys(
		openaihttp.Key{Name: "bench", Hash: openaihttp.HashKey(gatewayKey), App: "bench", Models: []string{"chat-*"}},
		openaihttp.Key{Name: "other", Hash: openaihttp.HashKey("gw-other")},
	))
	return handler, client, records, nil
}

// ledger is the one recorder: it adds up what the records say.
type ledger struct {
	records, tokens, unpriced atomic.Int64
}

// Record implements [gateway.Recorder].
func (l *ledger) Record(_ context.Context, r *gateway.Record) {
	l.records.Add(1)
	l.tokens.Add(r.Usage.PromptTokens() + r.Usage.CompletionTokens())
	if r.CostUSD == nil {
		l.unpriced.Add(1)
	}
}
