package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
)

func TestLogRecorderWritesOneLine(t *testing.T) {
	usage := gateway.Usage{Input: 100, Output: 50}
	canceled := func(context.Context, *gateway.Request) (*gateway.Response, error) { return nil, context.Canceled }
	rejected := func(context.Context, *gateway.Request) (*gateway.Response, error) {
		return nil, &gateway.Error{
			Kind: gateway.ErrInvalidRequest, Status: 400, Code: "bad", Message: "no\nsuch thing", Outcome: gateway.OutcomeRejected,
		}
	}
	tests := []struct {
		name string
		step step
		want string
	}{
		{
			"success", plain(&usage), `level=INFO msg=call trace_id=t1 api=chat model=chat-smart status=200 outcome=success ms=0 ` +
				`stream=false key=key-1 provider=one upstream_model=real-model usage=reported prompt_tokens=100 ` +
				`completion_tokens=50 cost_usd=0.0006`,
		},
		{
			"caller left", canceled, `level=INFO msg=call trace_id=t1 api=chat model=chat-smart status=499 outcome=canceled ms=0 ` +
				`stream=false key=key-1 usage=estimated prompt_tokens=6 completion_tokens=0 no_cost=usage_missing ` +
				`error="gateway: one/real-model: the caller went away: context canceled" code=canceled`,
		},
		{
			"caller's mistake", rejected, `level=INFO msg=call trace_id=t1 api=chat model=chat-smart status=400 outcome=rejected ms=0 ` +
				`stream=false key=key-1 usage=missing prompt_tokens=0 completion_tokens=0 cost_usd=0 ` +
				`error="gateway: one/real-model: no\nsuch thing" code=bad`,
		},
		{
			"upstream's fault", refuse(500, 0), `level=WARN msg=call trace_id=t1 api=chat model=chat-smart status=502 outcome=refused ms=0 ` +
				`stream=false key=key-1 usage=missing prompt_tokens=0 completion_tokens=0 cost_usd=0 ` +
				`error="gateway: one/real-model: refused (upstream status 500)" code=upstream_error`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
				ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				},
			}))
			a := alias(candidate("one"))
			a.Retry = gateway.DefaultRetryPolicy{}
			client := newClient(t, gateway.WithProvider(answers("one", test.step)), gateway.WithAlias(a),
				gateway.WithRecorder(gateway.LogRecorder(logger)))
			req := newRequest(t, chatBody)
			req.TraceID, req.Caller.KeyID = "t1", "key-1"
			_, _ = client.Do(t.Context(), req)
			if diff := cmp.Diff(test.want, strings.TrimSpace(out.String())); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecorderThatPanicsHurtsNobody(t *testing.T) {
	var rec recorder
	bad := gateway.RecorderFunc(func(context.Context, *gateway.Record) { panic("recorder") })
	client := newClient(t, gateway.WithProvider(answers("one", plain(nil))), gateway.WithAlias(alias(candidate("one"))),
		gateway.WithRecorder(bad, &rec))
	if _, err := client.Do(t.Context(), newRequest(t, chatBody)); err != nil {
		t.Errorf("Do: %v", err)
	}
	if len(rec.all()) != 1 {
		t.Errorf("%d records for the recorder behind it, want 1", len(rec.all()))
	}
}

func TestExplain(t *testing.T) {
	called := false
	p := provider{"one", func(context.Context, *gateway.Request) (*gateway.Response, error) {
		called = true
		return nil, errors.New("called")
	}}
	a := alias(candidate("one"), gateway.Candidate{Provider: "one", Model: "unpriced", MaxOutput: 1000})
	a.MaxConcurrency = 7
	client := newClient(t, gateway.WithProvider(p), gateway.WithAlias(a), gateway.WithUnpriced(gateway.UnpricedRefuse))
	e, err := client.Explain(t.Context(), newRequest(t, `{"model":"chat-smart","max_tokens":1000,"messages":[{"role":"user","content":"twelve chars"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if called {
		t.Error("Explain called the provider")
	}
	cost := e.Candidates[0].WorstCostUSD
	if cost == nil || cost.String() != "0.008016" { // 8 tokens at 2 and 1000 at 8 USD per million
		t.Errorf("worst cost %v, want 0.008016", cost)
	}
	e.Candidates[0].WorstCostUSD = nil
	want := &gateway.Explanation{
		Model: "chat-smart", PromptTokens: 8, MaxOutputTokens: 1000, MaxConcurrency: 7, MaxAttempts: 6,
		Candidates: []gateway.ExplainedCandidate{
			{Provider: "one", Model: "real-model", Usable: true, Reason: "ready"},
			{Provider: "one", Model: "unpriced", Reason: "no price is configured, and calls without a price are refused"},
		},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	if _, err := client.Explain(t.Context(), newRequest(t, `{"model":"other"}`)); gateway.AsError(err).Code != "model_not_found" {
		t.Errorf("unknown model: %v", err)
	}
}
