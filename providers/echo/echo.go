// Package echo answers without any upstream: the same words come back. It is for trying a gateway out and for tests.
package echo

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway"
)

// Provider answers every call itself. Make one with [New].
type Provider struct{ name string }

// New returns a provider with the given name.
func New(name string) *Provider { return &Provider{name: name} }

// Name implements [gateway.Provider].
func (p *Provider) Name() string { return p.name }

// Do implements [gateway.Handler].
func (p *Provider) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var in struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(req.Body, &in); err != nil {
		return nil, err
	}
	said := ""
	for _, m := range in.Messages {
		if text, ok := m.Content.(string); ok && m.Role == "user" {
			said = text
		}
	}
	words := int64(len(strings.Fields(said)))
	usage := &gateway.Usage{Input: words, Output: words}
	quoted, _ := json.Marshal(said)
	model, _ := json.Marshal(req.Model)
	report := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, words, words, 2*words)
	if !req.Stream {
		return &gateway.Response{Usage: usage, OutputBytes: len(said), Body: fmt.Appendf(nil,
			`{"id":"chatcmpl-echo","object":"chat.completion","created":0,"model":%s,"choices":[{"index":0,"message":{"role":"assistant","content":%s,"refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":%s}`,
			model, quoted, report)}, nil
	}
	chunk := func(choices, tail string) string {
		return fmt.Sprintf(`{"id":"chatcmpl-echo","object":"chat.completion.chunk","created":0,"model":%s,"choices":%s%s}`, model, choices, tail)
	}
	return &gateway.Response{Stream: gateway.NewStream(gateway.EventSlice(
		gateway.Event{Data: chunk(`[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`, "")},
		gateway.Event{Data: chunk(`[{"index":0,"delta":{"content":`+string(quoted)+`},"finish_reason":null}]`, ""), Output: true, OutputBytes: len(said)},
		gateway.Event{Data: chunk(`[{"index":0,"delta":{},"finish_reason":"stop"}]`, ""), Finished: true},
		gateway.Event{Data: chunk(`[]`, `,"usage":`+report), Usage: usage, Hidden: true},
	))}, nil
}
