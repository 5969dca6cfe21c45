package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
	"github.com/gatewright/gateway/providers/openai"
)

// pipeCloud returns a provider that calls an upstream without a socket, for synctest.
func pipeCloud(t *testing.T, name string, u *gatewaytest.Upstream, changes ...func(*openai.Config)) gateway.Provider {
	t.Helper()
	return openCloud(t, name, u.URL(), append([]func(*openai.Config){func(c *openai.Config) { c.Transport = u.Transport() }}, changes...)...)
}

// refuseAt returns a step that answers 429 with headers that depend on the time.
func refuseAt(headers func(now time.Time) []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := gatewaytest.Status(http.StatusTooManyRequests)
		for h := headers(time.Now()); len(h) > 0; h = h[2:] {
			reply = reply.WithHeader(h[0], h[1])
		}
		reply.ServeHTTP(w, r)
	})
}

func TestRetryAfterInEachForm(t *testing.T) {
	value := func(values ...string) func(time.Time) []string {
		return func(time.Time) []string { return values }
	}
	date := func(layout string, ahead time.Duration) func(time.Time) []string {
		return func(now time.Time) []string {
			return []string{"Retry-After", now.Add(ahead).UTC().Format(layout)}
		}
	}
	const rfc850 = "Monday, 02-Jan-06 15:04:05 GMT"
	backoff := [2]time.Duration{500 * time.Millisecond, 1500 * time.Millisecond}
	around := func(d time.Duration) [2]time.Duration {
		return [2]time.Duration{d, d + min(d/20, 250*time.Millisecond)}
	}
	for _, test := range []struct {
		name    string
		headers func(now time.Time) []string
		wait    [2]time.Duration // from, to
	}{
		{"seconds", value("Retry-After", "2"), around(2 * time.Second)},
		{"fraction", value("Retry-After", "0.5"), around(500 * time.Millisecond)},
		{"IMF-fixdate", date(http.TimeFormat, 2*time.Second), around(2 * time.Second)},
		{"RFC 850 date", date(rfc850, 2*time.Second), around(2 * time.Second)},
		{"asctime date", date(time.ANSIC, 2*time.Second), around(2 * time.Second)},
		{"milliseconds win", value("Retry-After", "2", "retry-after-ms", "1500"), around(1500 * time.Millisecond)},
		{"milliseconds alone", value("retry-after-ms", "250.5"), around(250500 * time.Microsecond)},
		{"date in the past", date(http.TimeFormat, -time.Hour), around(0)},
		{"zero", value("Retry-After", "0"), around(0)},
		{"negative", value("Retry-After", "-3"), around(0)},
		{"just the cap", value("Retry-After", "20"), [2]time.Duration{20 * time.Second, 20 * time.Second}},
		{"malformed", value("Retry-After", "soon"), backoff},
		{"malformed milliseconds", value("retry-after-ms", "0x10", "Retry-After", "2"), around(2 * time.Second)},
		{"empty", value("Retry-After", ""), backoff},
		{"not a number", value("Retry-After", "NaN"), backoff},
		{"two values", value("Retry-After", "1, 2"), backoff},
		{"none", value(), backoff},
	} {
		synctest.Test(t, func(t *testing.T) {
			u := gatewaytest.NewPipeUpstream(t, refuseAt(test.headers), gatewaytest.Answer("hi"))
			a := alias(candidate("cloud"))
			a.Retry = gateway.DefaultRetryPolicy{MaxRetries: 2, Jitter: 0.5, MaxDelay: 20 * time.Second}
			// Without a key none is put to rest: it is the wait of the policy that is looked at.
			client := newClient(t, gateway.WithAlias(a),
				gateway.WithProvider(pipeCloud(t, "cloud", u, func(c *openai.Config) { c.Keys = nil })))
			began := time.Now()
			if _, err := client.Do(t.Context(), newRequest(t, chatBody)); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if waited := time.Since(began); waited < test.wait[0] || waited > test.wait[1] {
				t.Errorf("%s: waited %v, want %v to %v", test.name, waited, test.wait[0], test.wait[1])
			}
			if u.Count() != 2 {
				t.Errorf("%s: the upstream saw %d requests, want 2", test.name, u.Count())
			}
		})
	}
}

func TestRetryAfterAboveTheCap(t *testing.T) {
	for _, value := range []string{"300", "99999999999999999999", "1e300", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		synctest.Test(t, func(t *testing.T) {
			u := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(429).WithRetryAfter(value), gatewaytest.Answer("hi"))
			client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u)), gateway.WithAlias(alias(candidate("cloud"))))
			began := time.Now()
			for i := range 3 {
				_, err := client.Do(t.Context(), newRequest(t, chatBody))
				if value == "1e300" { // not a number of seconds: the policy's own backoff
					if err != nil || u.Count() != 2+i {
						t.Errorf("%s: %v after %d requests", value, err, u.Count())
					}
					continue
				}
				e := gateway.AsError(err)
				if !errors.Is(err, gateway.ErrUpstreamLimit) || e.Status != 429 || e.RetryAfter < 299*time.Second {
					t.Errorf("%s: call %d: %+v", value, i, e)
				}
				if u.Count() != 1 || time.Since(began) != 0 {
					t.Errorf("%s: call %d: the upstream saw %d requests in %v, want 1 at once", value, i, u.Count(), time.Since(began))
				}
			}
			if value != "300" {
				return
			}
			<-time.After(301 * time.Second)
			if _, err := client.Do(t.Context(), newRequest(t, chatBody)); err != nil || u.Count() != 2 {
				t.Errorf("after its rest: %v; the upstream saw %d requests", err, u.Count())
			}
		})
	}
}

// keyed answers as an account does whose keys are limited each by itself.
func keyed(limited ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if slices.Contains(limited, key) {
			gatewaytest.Status(429).WithRetryAfter("300").ServeHTTP(w, r)
			return
		}
		gatewaytest.Answer("hi").ServeHTTP(w, r)
	})
}

func twoKeys(c *openai.Config) {
	c.Keys = []gateway.Secret{gateway.NewSecret("sk-first"), gateway.NewSecret("sk-second")}
}

func TestAnotherKeyIsUsedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := gatewaytest.NewPipeUpstream(t, keyed("sk-first"))
		client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u, twoKeys)), gateway.WithAlias(alias(candidate("cloud"))))
		began := time.Now()
		for i := range 200 {
			if _, err := client.Do(t.Context(), newRequest(t, chatBody)); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		var first int
		for _, r := range u.Requests() {
			if r.Header.Get("Authorization") == "Bearer sk-first" {
				first++
			}
		}
		if waited := time.Since(began); waited != 0 || first != 1 || u.Count() != 201 {
			t.Errorf("%d requests, %d of them with the key that is limited, in %v", u.Count(), first, waited)
		}
	})
}

// One budget holds for retries, keys and candidates: they never multiply.
func TestLayersOfRetriesDoNotMultiply(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			one := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(status))
			two := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(status).WithRetryAfter("1"))
			client := newClient(t, gateway.WithAlias(alias(candidate("one"), candidate("two"))),
				gateway.WithProvider(pipeCloud(t, "one", one, twoKeys), pipeCloud(t, "two", two, twoKeys)))
			req := newRequest(t, chatBody)
			plan, err := client.Explain(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Do(t.Context(), req)
			e := gateway.AsError(err)
			if one.Count() != 3 || two.Count() > 3 || len(e.Attempts) != one.Count()+two.Count() || len(e.Attempts) > plan.MaxAttempts {
				t.Errorf("%d: the upstreams saw %d and %d requests; %d attempts noted, at most %d announced",
					status, one.Count(), two.Count(), len(e.Attempts), plan.MaxAttempts)
			}
		})
	}
}

// When the wait cannot fit, the answer comes now.
func TestRetriesNeverOutliveTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(503).WithRetryAfter("5"))
		client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u)), gateway.WithAlias(alias(candidate("cloud"))))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := client.Do(ctx, newRequest(t, chatBody))
		if e := gateway.AsError(err); time.Since(began) != 0 || u.Count() != 1 || e.Status != 503 || e.RetryAfter != 5*time.Second {
			t.Errorf("deadline of 1 s: after %v and %d requests: %+v", time.Since(began), u.Count(), e)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		u := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(503).WithRetryAfter("12"))
		client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u)), gateway.WithAlias(alias(candidate("cloud"))))
		began := time.Now()
		_, err := client.Do(t.Context(), newRequest(t, chatBody))
		// 12 s and 24 s are within the default budget of 30 s; a third wait would end at 36 s, were there a third retry.
		if e := gateway.AsError(err); u.Count() != 3 || time.Since(began) > 30*time.Second || e.RetryAfter != 12*time.Second {
			t.Errorf("budget of 30 s: after %v and %d requests: %+v", time.Since(began), u.Count(), e)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		u := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(503).WithRetryAfter("40"))
		client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u)), gateway.WithAlias(alias(candidate("cloud"))))
		began := time.Now()
		if _, err := client.Do(t.Context(), newRequest(t, chatBody)); u.Count() != 1 || time.Since(began) != 0 {
			t.Errorf("a wait above the budget: after %v and %d requests: %v", time.Since(began), u.Count(), err)
		}
	})
}

func TestCancelWhileWaitingForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := gatewaytest.NewPipeUpstream(t, gatewaytest.Status(503).WithRetryAfter("10"))
		client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u)), gateway.WithAlias(alias(candidate("cloud"))))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := client.Do(ctx, newRequest(t, chatBody))
		if !errors.Is(err, gateway.ErrCanceled) || time.Since(began) != time.Second || u.Count() != 1 {
			t.Errorf("after %v and %d requests: %v", time.Since(began), u.Count(), err)
		}
	})
}

func TestBackoffIsSpread(t *testing.T) {
	refused := &gateway.Error{Outcome: gateway.OutcomeRefused, UpstreamStatus: 503}
	policy := gateway.NewRetryPolicy()
	const calls = 1000
	waits := func(attempt int, err *gateway.Error) []float64 {
		delays := make([]float64, calls)
		for i := range delays {
			decision := policy.Next(gateway.Attempt{Number: attempt, Err: err})
			if decision.Action != gateway.Retry {
				t.Fatalf("attempt %d: %v, want a retry", attempt, decision)
			}
			delays[i] = decision.Delay.Seconds()
		}
		return delays
	}

	first := waits(1, refused)
	var sum, squares float64
	buckets := make(map[int]int)
	for _, d := range first {
		sum, squares = sum+d, squares+d*d
		buckets[int(d/0.05)]++
	}
	mean := sum / calls
	deviation := math.Sqrt(squares/calls - mean*mean)
	if low, high := slices.Min(first), slices.Max(first); low < 0.5 || high > 1.5 {
		t.Errorf("first waits from %v s to %v s, want 0.5 to 1.5", low, high)
	}
	if deviation < 0.2 || mean < 0.95 || mean > 1.05 {
		t.Errorf("first waits: mean %v s, standard deviation %v s", mean, deviation)
	}
	for b, n := range buckets {
		if n > calls/10 {
			t.Errorf("%d of %d calls come back within the 50 ms after %d ms", n, calls, b*50)
		}
	}
	if second := waits(2, refused); slices.Min(second) < 1 || slices.Max(second) > 3 {
		t.Errorf("second waits from %v s to %v s, want 1 to 3", slices.Min(second), slices.Max(second))
	}

	// What the upstream asks for is a lower bound, spread upward a little.
	asked := waits(1, &gateway.Error{Outcome: gateway.OutcomeRefused, UpstreamStatus: 429, RetryAfter: 2 * time.Second})
	if low, high := slices.Min(asked), slices.Max(asked); low < 2 || high > 2.25 || high-low < 0.05 {
		t.Errorf("waits from %v s to %v s after a Retry-After of 2 s", low, high)
	}

	// The cap holds, also for the spread, and nothing overflows.
	policy.MaxRetries, policy.Budget = math.MaxInt, 0
	for _, attempt := range []int{7, 100, math.MaxInt} {
		if d := waits(attempt, refused); slices.Max(d) > 60 || slices.Min(d) < 30 {
			t.Errorf("attempt %d: waits from %v s to %v s", attempt, slices.Min(d), slices.Max(d))
		}
	}
	capped := waits(1, &gateway.Error{Outcome: gateway.OutcomeRefused, UpstreamStatus: 429, RetryAfter: time.Minute})
	if slices.Min(capped) < 60 || slices.Max(capped) > 60 {
		t.Errorf("waits from %v s to %v s after a Retry-After of just the cap", slices.Min(capped), slices.Max(capped))
	}
}

// An event-source client reconnects by itself; only its parser is used here.
func TestABrokenStreamIsNotConnectedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		step  http.Handler
		fails bool
	}{
		"reset after 3 events":  {gatewaytest.Sequence(gatewaytest.Events(3), gatewaytest.Reset()), true},
		"closed after 3 events": {gatewaytest.Sequence(gatewaytest.Events(3), gatewaytest.HangUp()), true},
		"an empty body":         {gatewaytest.Headers(200, "Content-Type", "text/event-stream"), true},
		"a retry field": {gatewaytest.Sequence(gatewaytest.Text("retry: 1\n\n"), gatewaytest.Events(3),
			gatewaytest.Text("retry: 1\n\n"), gatewaytest.HangUp()), true},
		"a retry field and a good end": {gatewaytest.Sequence(gatewaytest.Text("retry: 1\n\n"), gatewaytest.Events(3),
			gatewaytest.Finish("stop"), gatewaytest.Done()), false},
		"400": {gatewaytest.Status(400), true},
	} {
		u := gatewaytest.NewUpstream(t, test.step)
		client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(eagerAlias(candidate("cloud"))))
		began := time.Now()
		if _, err := run(t.Context(), client, newRequest(t, streamBody)); (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: ended after %v", name, took)
		}
		if u.Count() != 1 {
			t.Errorf("%s: the upstream saw %d requests, want 1", name, u.Count())
		}
	}
}

// A stream that fails after its opening is replaced by another candidate's, of which the caller sees all and only that.
func TestStreamIsReplacedBeforeItsFirstOutput(t *testing.T) {
	t.Parallel()
	const soon = 250 * time.Millisecond
	opening := gatewaytest.Opening()
	for name, step := range map[string]http.Handler{
		"error event": gatewaytest.Sequence(opening, gatewaytest.ErrorEvent("overloaded", "overloaded")),
		"reset":       gatewaytest.Sequence(opening, gatewaytest.Reset()),
		"closed":      gatewaytest.Sequence(opening, gatewaytest.HangUp()),
		"clean end":   opening,
		"silence":     gatewaytest.Sequence(opening, gatewaytest.Hang()),
		"keep-alives, then an error": gatewaytest.Sequence(opening, gatewaytest.Text("data:\n\n", "data: : wait\n\n", ": x\n\n"),
			gatewaytest.ErrorEvent("overloaded", "overloaded")),
		"a refusal": gatewaytest.Status(503),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := gatewaytest.NewUpstream(t, step), gatewaytest.NewUpstream(t, gatewaytest.Stream("a", "b").WithID("chatcmpl-two"))
			a := alias(candidate("one"), candidate("two"))
			a.Retry = gateway.DefaultRetryPolicy{}
			client := newClient(t, gateway.WithAlias(a),
				gateway.WithProvider(openCloud(t, "one", one.URL(), timeouts(soon, soon)), openCloud(t, "two", two.URL())))
			res, err := client.Do(t.Context(), newRequest(t, streamBody))
			if err != nil {
				t.Fatal(err)
			}
			var roles int
			var got []string
			for event, err := range res.Stream.All() {
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(event.Data, `"id":"chatcmpl-two"`) {
					t.Errorf("an event of another answer: %s", event.Data)
				}
				roles += strings.Count(event.Data, `"role"`)
				got = append(got, fmt.Sprint(event.OutputBytes, event.Finished))
			}
			if diff := cmp.Diff([]string{"0 false", "1 false", "1 false", "0 true"}, got); diff != "" || roles != 1 {
				t.Errorf("%d roles; events (-want +got):\n%s", roles, diff)
			}
			if one.Count() != 1 || two.Count() != 1 || res.Record.Provider != "two" || len(res.Record.Attempts) != 2 {
				t.Errorf("%d and %d requests; record %+v", one.Count(), two.Count(), res.Record)
			}
		})
	}
}

// Once output has been handed out, nothing is replaced any more.
func TestStreamIsNotReplacedAfterItsFirstOutput(t *testing.T) {
	one, two := gatewaytest.NewUpstream(t, gatewaytest.Sequence(gatewaytest.Opening(), gatewaytest.Events(1), gatewaytest.Reset())), gatewaytest.NewUpstream(t)
	a := alias(candidate("one"), candidate("two"))
	a.Retry = gateway.DefaultRetryPolicy{MaxRetries: 3, RetryUnknown: true}
	client := newClient(t, gateway.WithAlias(a), gateway.WithProvider(openCloud(t, "one", one.URL()), openCloud(t, "two", two.URL())))
	res, err := client.Do(t.Context(), newRequest(t, streamBody))
	if err != nil {
		t.Fatal(err)
	}
	text, events, err := read(res.Stream)
	if !errors.Is(err, gateway.ErrInterrupted) || text != "1 " || events != 2 || one.Count() != 1 || two.Count() != 0 {
		t.Errorf("%q in %d events, %v; %d and %d requests", text, events, err, one.Count(), two.Count())
	}
}
