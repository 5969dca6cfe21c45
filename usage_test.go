package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
)

func TestOneRefusalThenSuccess(t *testing.T) {
	usage := gateway.Usage{Input: 100, Output: 50}
	for _, body := range []string{chatBody, streamBody, usageBody} {
		synctest.Test(t, func(t *testing.T) {
			u := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(429).WithRetryAfter("2"), gatewaytest.Answer("hi").WithUsage(usage))
			client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u)), gateway.WithAlias(alias(candidate("cloud"))))
			began := time.Now()
			res, err := run(t.Context(), client, newRequest(t, body))
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited < 2*time.Second || waited > 2100*time.Millisecond {
				t.Errorf("answered after %v, want 2 s and a little", waited)
			}
			if u.Count() != 2 {
				t.Errorf("the upstream saw %d requests, want 2", u.Count())
			}
			for _, r := range u.Requests() {
				got, err := gateway.NewRequest(gateway.APIChat, r.Body)
				if err != nil || got.Model != "real-model" {
					t.Errorf("request: %v, %s", err, r.Body)
				}
			}
			r := res.Record
			if r.CostUSD == nil || !r.CostUSD.Equal(decimal.RequireFromString("0.0006")) || r.Usage != usage ||
				r.UsageSource != gateway.UsageReported || r.RetryCount != 1 {
				t.Errorf("record: %+v", r)
			}
			stats := client.Stats().Aliases["chat-smart"]
			if stats.Requests != 1 || stats.Success != 1 || stats.Retries != 1 || stats.CostUSD != "0.000600" ||
				stats.PromptTokens != 100 || stats.CompletionTokens != 50 {
				t.Errorf("stats: %+v", stats)
			}
		})
	}
}

// ledger is a Limiter that notes what calls reserve and give back.
type ledger struct {
	refuse  *gateway.Error
	claims  []gateway.Claim
	settled []gateway.Actual
}

func (l *ledger) Acquire(_ context.Context, c gateway.Claim) (gateway.Permit, error) {
	if l.refuse != nil {
		e := *l.refuse
		return nil, &e
	}
	l.claims = append(l.claims, c)
	return permit{l}, nil
}

type permit struct{ *ledger }

func (p permit) Settle(a gateway.Actual) { p.settled = append(p.settled, a) }

func TestFailedAttemptsAreNotBilled(t *testing.T) {
	usage := gateway.Usage{Input: 100, Output: 50}
	synctest.Test(t, func(t *testing.T) {
		u := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(429), gatewaytest.Status(503), gatewaytest.Answer("hi").WithUsage(usage))
		var budget ledger
		client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u)), gateway.WithAlias(alias(candidate("cloud"))),
			gateway.WithLimiter(&budget))
		res, err := client.Do(t.Context(), newRequest(t, chatBody))
		if err != nil {
			t.Fatal(err)
		}
		costs := make([]string, len(res.Record.Attempts))
		for i, a := range res.Record.Attempts {
			costs[i] = fmt.Sprint(a.Outcome, " ", a.CostUSD, " ", a.AtRisk)
		}
		if diff := cmp.Diff([]string{"refused 0 false", "refused 0 false", "success 0.0006 false"}, costs); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if got := res.Record.CostUSD.StringFixed(6); got != "0.000600" {
			t.Errorf("cost %s, want 0.000600", got)
		}
		want := []gateway.Actual{{Usage: usage, Source: gateway.UsageReported, USD: gateway.USD("0.0006")}}
		if diff := cmp.Diff(want, budget.settled); diff != "" {
			t.Errorf("settled (-want +got):\n%s", diff)
		}
	})
}

// What a call gives back of its reservation: all of it when nothing can have run, nothing that is unknown.
func TestReservationsAreSettled(t *testing.T) {
	usage := gateway.Usage{Input: 100, Output: 50}
	known := func(u gateway.Usage, usd string) gateway.Actual {
		return gateway.Actual{Usage: u, Source: gateway.UsageReported, USD: gateway.USD(usd)}
	}
	answer := gatewaytest.Stream("12345678").WithUsage(usage)
	for _, test := range []struct {
		name  string
		body  string
		steps []gateway.Handler
		want  gateway.Actual
	}{
		{"success", chatBody, []gateway.Handler{answer}, known(usage, "0.0006")},
		{"stream", streamBody, []gateway.Handler{answer}, known(usage, "0.0006")},
		{"refused to the end", chatBody, []gateway.Handler{gatewaytest.Status(500)}, known(gateway.Usage{}, "0")},
		{"refused to the end on a stream", streamBody, []gateway.Handler{gatewaytest.Status(500)}, known(gateway.Usage{}, "0")},
		{"rejected", chatBody, []gateway.Handler{gatewaytest.Status(400)}, known(gateway.Usage{}, "0")},
		{"not sent", chatBody, []gateway.Handler{gatewaytest.FailWith(gateway.OutcomeNotSent)}, known(gateway.Usage{}, "0")},
		{"a failure that reports usage", chatBody, []gateway.Handler{gatewaytest.Fail(&gateway.Error{
			Kind: gateway.ErrUpstream, Status: 400, Outcome: gateway.OutcomeRejected, Usage: &usage,
		})}, known(usage, "0.0006")},
		{"success without usage", chatBody, []gateway.Handler{gatewaytest.Answer("hi")}, gateway.Actual{Source: gateway.UsageMissing}},
		{"result unknown", chatBody, []gateway.Handler{gatewaytest.FailWith(gateway.OutcomeUnknown)},
			gateway.Actual{Usage: gateway.Usage{Input: 6}, Source: gateway.UsageEstimated}},
		{"panic", chatBody, []gateway.Handler{gatewaytest.Panic("boom")},
			gateway.Actual{Usage: gateway.Usage{Input: 6}, Source: gateway.UsageEstimated}},
		{"interrupted", streamBody, []gateway.Handler{answer.ThenFail(&gateway.Error{Outcome: gateway.OutcomeInterrupted})},
			gateway.Actual{Usage: gateway.Usage{Input: 6, Output: 2}, Source: gateway.UsageEstimated}},
		{"unknown, then success, where that is allowed", chatBody, []gateway.Handler{gatewaytest.FailWith(gateway.OutcomeUnknown), answer},
			gateway.Actual{Usage: gateway.Usage{Input: 106, Output: 50}, Source: gateway.UsageEstimated}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var budget ledger
			a := alias(candidate("cloud"))
			a.Retry = gateway.DefaultRetryPolicy{MaxRetries: 1, RetryUnknown: len(test.steps) > 1}
			client := newClient(t, gateway.WithProvider(gatewaytest.NewProvider("cloud", test.steps...)), gateway.WithAlias(a),
				gateway.WithLimiter(&budget))
			_, _ = run(t.Context(), client, newRequest(t, test.body))
			decimals := cmp.Comparer(func(a, b decimal.NullDecimal) bool {
				return a.Valid == b.Valid && (!a.Valid || a.Decimal.Equal(b.Decimal))
			})
			if diff := cmp.Diff([]gateway.Actual{test.want}, budget.settled, decimals); diff != "" {
				t.Errorf("%s: settled (-want +got):\n%s", test.name, diff)
			}
		})
	}
}

// Reports as upstreams write them, and what they cost exactly, in a document and on a stream.
func TestReportedUsageIsCostedExactly(t *testing.T) {
	price := func(input, cacheRead, output string) gateway.Price {
		p := gateway.Price{Input: gateway.USD(input), Output: gateway.USD(output)}
		if cacheRead != "" {
			p.CacheRead = gateway.USD(cacheRead)
		}
		return p
	}
	for _, test := range []struct {
		name       string
		usage      string
		price      gateway.Price
		cost       string
		prompt     int64
		completion int64
	}{
		{"cached tokens once, at their own price",
			`{"prompt_tokens":262960,"completion_tokens":1744,"total_tokens":264704,"prompt_tokens_details":{"cached_tokens":257955}}`,
			price("1.25", "0.625", "10"), "0.184918125", 262960, 1744},
		{"cached tokens without a price of their own",
			`{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010,"prompt_tokens_details":{"cached_tokens":900}}`,
			price("2", "", "8"), "0.00208", 1000, 10},
		{"reasoning is part of the output",
			`{"prompt_tokens":0,"completion_tokens":1000,"total_tokens":1000,"completion_tokens_details":{"reasoning_tokens":900}}`,
			price("2", "", "8"), "0.008", 0, 1000},
		{"a tenth of a dollar", `{"prompt_tokens":1,"completion_tokens":0,"total_tokens":1}`, price("100000", "", "0"), "0.1", 1, 0},
		{"a reported zero", `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, price("2", "", "8"), "0", 0, 0},
	} {
		c := candidate("cloud")
		c.Price = &test.price
		document := gatewaytest.AnswerJSON(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":` +
			`{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":` + test.usage + `}`)
		stream := gatewaytest.Sequence(gatewaytest.Opening(), gatewaytest.Events(2), gatewaytest.Finish("stop"),
			gatewaytest.Data(`{"choices":[],"usage":`+test.usage+`}`), gatewaytest.Done())
		cumulative := gatewaytest.Sequence(gatewaytest.Opening(),
			gatewaytest.Data(`{"choices":[{"index":0,"delta":{"content":"h"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
				`{"choices":[{"index":0,"delta":{"content":"i"},"finish_reason":"stop"}],"usage":`+test.usage+`}`), gatewaytest.Done())
		steps := map[string]http.Handler{"document": document, "stream": stream}
		if test.completion > 0 { // running totals: the last counts
			steps["running totals"] = cumulative
		}
		for form, step := range steps {
			u := gatewaytest.NewUpstream(t, step)
			client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(alias(c)))
			body := streamBody
			if form == "document" {
				body = chatBody
			}
			for range 10 {
				res, err := run(t.Context(), client, newRequest(t, body))
				if err != nil {
					t.Fatalf("%s, %s: %v", test.name, form, err)
				}
				r := res.Record
				if r.CostUSD == nil || !r.CostUSD.Equal(decimal.RequireFromString(test.cost)) ||
					r.Usage.PromptTokens() != test.prompt || r.Usage.CompletionTokens() != test.completion {
					t.Errorf("%s, %s: cost %v for %+v, want %s", test.name, form, r.CostUSD, r.Usage, test.cost)
				}
			}
			sum := decimal.RequireFromString(test.cost).Mul(decimal.NewFromInt(10)).StringFixed(6)
			if got := client.Stats().Aliases["chat-smart"].CostUSD; got != sum {
				t.Errorf("%s, %s: ten calls cost %s, want %s", test.name, form, got, sum)
			}
		}
	}
}

// The gateway asks for a stream's usage on its own behalf, and shows it only to a caller who asked as well.
func TestUsageIsAskedForOnStreams(t *testing.T) {
	usage := gateway.Usage{Input: 100, Output: 50}
	for _, test := range []struct {
		member string // of the caller's document
		sent   string // stream_options as the upstream gets it
		events int    // that the caller gets
	}{
		{`"stream":true`, `{"include_usage":true}`, 3},
		{`"stream":true,"stream_options":null`, `{"include_usage":true}`, 3},
		{`"stream":true,"stream_options":{}`, `{"include_usage":true}`, 3},
		{`"stream":true,"stream_options":{"include_usage":false}`, `{"include_usage":true}`, 3},
		{`"stream":true,"stream_options":{"include_obfuscation":false}`, `{"include_obfuscation":false,"include_usage":true}`, 3},
		{`"stream":true,"stream_options":{"include_usage":true}`, `{"include_usage":true}`, 4},
		{`"stream":false`, ``, 0},
	} {
		u := gatewaytest.NewUpstream(t, gatewaytest.Answer("hi").WithUsage(usage))
		client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(alias(candidate("cloud"))))
		res, err := client.Do(t.Context(), newRequest(t, `{"model":"chat-smart","messages":[],`+test.member+`}`))
		if err != nil {
			t.Fatalf("%s: %v", test.member, err)
		}
		events := 0
		if res.Stream != nil {
			if _, events, err = read(res.Stream); err != nil {
				t.Errorf("%s: %v", test.member, err)
			}
		}
		sent, err := gateway.NewRequest(gateway.APIChat, u.Requests()[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		options, _ := sent.Member("stream_options")
		if events != test.events || !sameJSON(t, string(options), test.sent) || res.Record.Usage != usage {
			t.Errorf("%s: the upstream got %s, the caller %d events, the record %+v; want %s, %d, %+v",
				test.member, options, events, res.Record.Usage, test.sent, test.events, usage)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	if a == "" || b == "" {
		return a == b
	}
	return compact(t, []byte(a)) == compact(t, []byte(b))
}
