package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
)

// idle fails the test unless nothing is in flight or waiting.
func idle(t *testing.T, client *gateway.Client) {
	t.Helper()
	stats := client.Stats()
	if stats.InFlight != 0 {
		t.Errorf("%d calls in flight, want 0", stats.InFlight)
	}
	for name, a := range stats.Aliases {
		if a.InFlight != 0 || a.Waiting != 0 {
			t.Errorf("%s: %d calls in flight, %d waiting; want 0", name, a.InFlight, a.Waiting)
		}
		for _, c := range a.Candidates {
			if c.InFlight != 0 || c.Waiting != 0 {
				t.Errorf("%s: %s: %d attempts in flight, %d waiting; want 0", name, c.Provider, c.InFlight, c.Waiting)
			}
		}
	}
}

// together makes n calls at once, and fails the test unless all of them succeed, each while all others are running.
type together struct {
	n       int
	on      atomic.Bool
	started atomic.Int64
	release chan struct{}
}

func newTogether(n int) *together { return &together{n: n, release: make(chan struct{})} }

func (b *together) middleware(next gateway.Handler) gateway.Handler {
	return gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
		if !b.on.Load() {
			return next.Do(ctx, req)
		}
		if b.started.Add(1) == int64(b.n) {
			close(b.release)
		}
		return gatewaytest.Answer("together").After(b.release).Do(ctx, req)
	})
}

func (b *together) wrap(p gateway.Provider) gateway.Provider { return rewired{p, b.middleware(p)} }

// rewired is a provider some of whose calls go elsewhere.
type rewired struct {
	gateway.Provider

	handler gateway.Handler
}

func (r rewired) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	return r.handler.Do(ctx, req)
}

func (r rewired) MaxConcurrency() int {
	if b, ok := r.Provider.(gateway.Bounded); ok {
		return b.MaxConcurrency()
	}
	return 0
}

func (b *together) check(t *testing.T, client *gateway.Client) {
	t.Helper()
	b.on.Store(true)
	defer b.on.Store(false)
	var calls sync.WaitGroup
	for range b.n {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := client.Do(ctx, newRequest(t, chatBody)); err != nil {
				t.Errorf("one of %d parallel calls: %v", b.n, err)
			}
		})
	}
	calls.Wait()
}

// Ten thousand calls of every kind, with every kind of end. Afterwards all slots are back, of the alias, the providers
// and the candidates, and each call has exactly one record.
func TestTenThousandCallsGiveEverythingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			callers, each = 50, 200
			bound         = 5 // of provider one
			spare         = 3 // of the candidate at provider two
		)
		effect := func(o gateway.Outcome) gateway.Middleware { return gatewaytest.Instead(gatewaytest.FailWith(o)) }
		answer := gatewaytest.Stream("a", "b", "c").WithUsage(gateway.Usage{Input: 10, Output: 3})
		pace := gatewaytest.Rate(0.7, 1, gatewaytest.Delay(20*time.Millisecond))
		faults := func(seed uint64) []gatewaytest.Fault {
			return []gatewaytest.Fault{
				pace,
				gatewaytest.Rate(0.05, seed+1, effect(gateway.OutcomeRefused)),
				gatewaytest.Rate(0.05, seed+2, effect(gateway.OutcomeNotSent)),
				gatewaytest.Rate(0.03, seed+3, effect(gateway.OutcomeUnknown)),
				gatewaytest.Rate(0.03, seed+4, effect(gateway.OutcomeRejected)),
				gatewaytest.Rate(0.03, seed+5, gatewaytest.Instead(gatewaytest.Panic("provider"))),
				gatewaytest.Rate(0.01, seed+6, gatewaytest.Instead(gatewaytest.Hang())),
				gatewaytest.Rate(0.04, seed+7, gatewaytest.Cut(0, gateway.OutcomeUnknown)),
				gatewaytest.Rate(0.04, seed+8, gatewaytest.Cut(2, gateway.OutcomeInterrupted)),
				gatewaytest.Rate(0.03, seed+9, gatewaytest.PanicAfter(0, "stream")),
				gatewaytest.Rate(0.03, seed+10, gatewaytest.PanicAfter(3, "stream")),
				gatewaytest.Rate(0.02, seed+11, gatewaytest.Stall(1)),
				gatewaytest.Rate(0.02, seed+12, gatewaytest.Stall(3)),
				gatewaytest.Rate(0.02, seed+13, func(gateway.Handler) gateway.Handler { // neither an answer nor an error
					return gateway.HandlerFunc(func(context.Context, *gateway.Request) (*gateway.Response, error) { return nil, nil })
				}),
				gatewaytest.Rate(0.02, seed+14, panickingClose),
			}
		}
		one := gatewaytest.NewProvider("one", answer).Bound(bound)
		two := gatewaytest.NewProvider("two", answer)
		barrier := newTogether(bound + spare)
		var rec recorder
		a := gateway.Alias{
			Name: "chat-smart", MaxConcurrency: bound + spare,
			Candidates: []gateway.Candidate{candidate("one"), candidate("two")},
			Retry:      gateway.DefaultRetryPolicy{MaxRetries: 1, Base: 10 * time.Millisecond, Jitter: 0.5},
		}
		a.Candidates[1].MaxConcurrency = spare
		client := newClient(t, gateway.WithAlias(a), gateway.WithRecorder(&rec), gateway.WithQueue(300*time.Millisecond, 40),
			gateway.WithProvider(barrier.wrap(gatewaytest.Inject(one, faults(100)...)), barrier.wrap(gatewaytest.Inject(two, faults(200)...))),
			gateway.WithMiddleware(panics("before", 0.02, true), panics("after", 0.02, false)))

		var running sync.WaitGroup
		for caller := range callers {
			running.Go(func() {
				random := rand.New(rand.NewPCG(42, uint64(caller)))
				for i := range each {
					callAsSomeoneDoes(t, client, random, fmt.Sprintf("%d/%d", caller, i))
				}
			})
		}
		running.Wait()
		synctest.Wait()

		idle(t, client)
		for _, p := range []*gatewaytest.Provider{one, two} {
			if p.Running() != 0 {
				t.Errorf("%s: %d calls are running", p.Name(), p.Running())
			}
		}
		if one.Peak() > bound || two.Peak() > spare {
			t.Errorf("%d and %d attempts at once, want at most %d and %d", one.Peak(), two.Peak(), bound, spare)
		}
		seen, outcomes := make(map[string]int), make(map[string]int)
		for _, r := range rec.all() {
			seen[r.TraceID]++
			outcomes[r.Outcome.String()+" "+r.ErrorCode]++
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("call %s has %d records", id, n)
			}
		}
		if len(seen) != callers*each {
			t.Errorf("%d calls have a record, want %d", len(seen), callers*each)
		}
		stats := client.Stats().Aliases["chat-smart"]
		if stats.Requests != callers*each || stats.Success+stats.Failed+stats.Canceled != stats.Requests {
			t.Errorf("%d calls counted: %d + %d + %d", stats.Requests, stats.Success, stats.Failed, stats.Canceled)
		}
		for _, outcome := range []string{ // the calls are as mixed as they are meant to be
			"success ", "canceled canceled", "interrupted stream_interrupted", "canceled deadline_exceeded",
			"interrupted internal_error", "not_sent gateway_overloaded", "refused upstream_error", "rejected invalid_request",
			"unknown internal_error", "unknown upstream_timeout",
		} {
			if outcomes[outcome] < 3 {
				t.Errorf("only %d calls ended as %q, of %v", outcomes[outcome], outcome, outcomes)
			}
		}
		t.Log(outcomes)
		barrier.check(t, client)
		idle(t, client)
	})
}

// panics is a middleware that panics for a share of the calls, before the call is made or after.
func panics(name string, share float64, before bool) gateway.Middleware {
	fault := func(req *gateway.Request) bool {
		var seed uint64
		for _, c := range name + req.TraceID {
			seed = seed*31 + uint64(c)
		}
		return rand.New(rand.NewPCG(seed, 0)).Float64() < share
	}
	return func(next gateway.Handler) gateway.Handler {
		return gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			if before && req.TraceID != "" && fault(req) {
				panic(name)
			}
			res, err := next.Do(ctx, req)
			if !before && req.TraceID != "" && fault(req) {
				panic(name)
			}
			return res, err
		})
	}
}

// panickingClose is the fault of a stream that panics when it is closed.
func panickingClose(next gateway.Handler) gateway.Handler {
	return gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
		res, err := next.Do(ctx, req)
		if err != nil || res == nil || res.Stream == nil {
			return res, err
		}
		out := *res
		out.Stream = gateway.NewStream(closePanics{res.Stream})
		return &out, nil
	})
}

type closePanics struct{ *gateway.Stream }

func (s closePanics) Close() error {
	_ = s.Stream.Close()
	panic("close")
}

func TestPanicInCloseIsNotedLikeAnyFailure(t *testing.T) {
	var rec recorder
	broken := panickingClose(gatewaytest.Stream().ThenFail(&gateway.Error{Kind: gateway.ErrUpstream, Status: 502, Outcome: gateway.OutcomeRefused}))
	client := newClient(t, gateway.WithAlias(eagerAlias(candidate("one"), candidate("two"))), gateway.WithRecorder(&rec),
		gateway.WithProvider(gateway.NewProvider("one", broken), gatewaytest.NewProvider("two")))
	res, err := run(t.Context(), client, newRequest(t, streamBody))
	if err != nil || res.Record.Provider != "two" || len(res.Record.Attempts) != 5 {
		t.Fatalf("%v; records %+v", err, rec.all())
	}
	idle(t, client)
}

// callAsSomeoneDoes makes one call in one of the ways in which callers do, and leaves it in one of theirs.
func callAsSomeoneDoes(t *testing.T, client *gateway.Client, random *rand.Rand, id string) {
	t.Helper()
	body := chatBody
	if random.IntN(2) == 0 {
		body = streamBody
	}
	req := newRequest(t, body)
	req.TraceID = id
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a call that hangs ends then
	defer cancel()
	switch random.IntN(5) {
	case 0: // leaves after a while: while it waits for a slot, for the answer, or between events
		time.AfterFunc(time.Duration(random.IntN(200))*time.Millisecond, cancel)
	case 1:
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(random.IntN(200))*time.Millisecond)
		defer stop()
	case 2:
		if random.IntN(10) == 0 {
			cancel() // has left already
		}
	}
	res, err := client.Do(ctx, req)
	if err != nil {
		if gateway.AsError(err).Status == 0 {
			t.Errorf("call %s: %#v", id, err)
		}
		return
	}
	if res.Stream == nil {
		return
	}
	switch random.IntN(5) {
	case 0: // abandons it unread
	case 1: // reads one event
		_, _ = res.Stream.Next()
	case 2: // closes it from another goroutine
		time.AfterFunc(time.Duration(random.IntN(50))*time.Millisecond, func() { _ = res.Stream.Close() })
		_, _, _ = read(res.Stream)
	case 3: // leaves while reading
		time.AfterFunc(time.Duration(random.IntN(50))*time.Millisecond, cancel)
		_, _, _ = read(res.Stream)
	default:
		_, _, _ = read(res.Stream)
	}
	_ = res.Stream.Close()
	_ = res.Stream.Close()
}

// An hour of trouble with an upstream takes no slot for good.
func TestSlotsComeBackAfterAnUpstreamsTrouble(t *testing.T) {
	trouble := []http.Handler{
		gatewaytest.Hang(), gatewaytest.Reset(), gatewaytest.Status(502), gatewaytest.Status(504), gatewaytest.Status(400),
		gatewaytest.Sequence(gatewaytest.Events(1), gatewaytest.Reset()),
		gatewaytest.Sequence(gatewaytest.Events(1), gatewaytest.Hang()),
		gatewaytest.Sequence(gatewaytest.Opening(), gatewaytest.Hang()),
		gatewaytest.AnswerJSON("not JSON"), gatewaytest.HangUp(),
	}
	const calls, limit = 50, 2
	u := gatewaytest.NewUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		trouble[int(r.ContentLength)%len(trouble)].ServeHTTP(w, r) // the calls differ in length
	}))
	barrier := newTogether(limit)
	c := candidate("cloud")
	c.MaxConcurrency = limit
	a := alias(c)
	a.Retry = gateway.DefaultRetryPolicy{}
	var rec recorder
	client := newClient(t, gateway.WithAlias(a), gateway.WithRecorder(&rec), gateway.WithMiddleware(panics("trouble", 0.2, false)),
		gateway.WithProvider(barrier.wrap(openCloud(t, "cloud", u.URL(), timeouts(20*time.Millisecond, 20*time.Millisecond)))))
	var running sync.WaitGroup
	for i := range calls {
		running.Go(func() {
			req := newRequest(t, []string{chatBody, streamBody}[i%2]+spaces(i))
			req.TraceID = fmt.Sprint("call ", i)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%7 == 0 {
				time.AfterFunc(10*time.Millisecond, cancel)
			}
			_, _ = run(ctx, client, req)
		})
	}
	running.Wait()
	idle(t, client)
	if n := len(rec.all()); n != calls {
		t.Errorf("%d records of %d calls", n, calls)
	}
	barrier.check(t, client)
}

func spaces(n int) string { return fmt.Sprintf("%*s", n, "") }

// What is refused before it is sent holds nothing.
func TestRefusedCallsHoldNoSlot(t *testing.T) {
	var budget ledger
	u := gatewaytest.NewUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 100 {
			gatewaytest.Status(413).ServeHTTP(w, r)
			return
		}
		gatewaytest.Answer("hi").ServeHTTP(w, r)
	}))
	c := candidate("cloud")
	c.MaxConcurrency = 1
	a := alias(c)
	a.MaxConcurrency, a.Strict = 1, true
	client := newClient(t, gateway.WithAlias(a), gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithLimiter(&budget),
		gateway.WithQueue(0, 0))
	refused := &gateway.Error{Kind: gateway.ErrBudgetExceeded, Status: 429, Code: "budget_exceeded", Outcome: gateway.OutcomeNotSent}
	for _, test := range []struct {
		name   string
		body   string
		refuse *gateway.Error
		want   error
	}{
		{"unknown alias", `{"model":"nobody"}`, nil, gateway.ErrUnknownModel},
		{"bad JSON", `{"model":"chat-smart",`, nil, gateway.ErrInvalidRequest},
		{"no model", `{}`, nil, gateway.ErrInvalidRequest},
		{"refused parameter", `{"model":"chat-smart","x_vendor":1}`, nil, gateway.ErrInvalidRequest},
		{"too large for the upstream", `{"model":"chat-smart","user":"` + spaces(100) + `"}`, nil, gateway.ErrInvalidRequest},
		{"refused budget", chatBody, refused, gateway.ErrBudgetExceeded},
	} {
		budget.refuse = test.refuse
		for range 20 {
			req, err := gateway.NewRequest(gateway.APIChat, []byte(test.body))
			if err == nil {
				_, err = client.Do(t.Context(), req)
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("%s: %v, want %v", test.name, err, test.want)
			}
		}
		budget.refuse = nil
		if _, err := client.Do(t.Context(), newRequest(t, chatBody)); err != nil {
			t.Errorf("a good call after %s: %v", test.name, err)
		}
		idle(t, client)
	}
	if len(budget.settled) != len(budget.claims) {
		t.Errorf("%d claims were admitted, %d settled", len(budget.claims), len(budget.settled))
	}
}

// A provider's slots are shared by its candidates; one that has no slot of its own left takes none of them.
func TestSlotsOfProviderAndCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := gatewaytest.NewProvider("cloud", gatewaytest.Answer("hi").After(release)).Bound(2)
		narrow := candidate("cloud")
		narrow.MaxConcurrency = 1
		client := newClient(t, gateway.WithProvider(p), gateway.WithQueue(0, 0),
			gateway.WithAlias(alias(narrow), gateway.Alias{Name: "wide", Candidates: []gateway.Candidate{candidate("cloud")}}))
		results := make(chan error)
		call := func(model string) {
			go func() {
				_, err := client.Do(t.Context(), newRequest(t, `{"model":"`+model+`"}`))
				results <- err
			}()
			synctest.Wait()
		}
		call("chat-smart")
		for range 5 {
			call("chat-smart")
			if err := <-results; !errors.Is(err, gateway.ErrOverloaded) {
				t.Errorf("beyond the candidate's bound: %v", err)
			}
		}
		call("wide")
		call("wide")
		if err := <-results; !errors.Is(err, gateway.ErrOverloaded) {
			t.Errorf("beyond the provider's bound: %v", err)
		}
		close(release)
		for range 2 {
			if err := <-results; err != nil {
				t.Errorf("within the bounds: %v", err)
			}
		}
		if p.Peak() != 2 || p.Calls() != 2 {
			t.Errorf("%d calls, %d at once; want 2, 2", p.Calls(), p.Peak())
		}
		idle(t, client)
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := gatewaytest.NewProvider("cloud", gatewaytest.Answer("hi").After(release)).Bound(1)
		client := newClient(t, gateway.WithProvider(p), gateway.WithAlias(alias(candidate("cloud"))), gateway.WithQueue(5*time.Second, 2))
		results := make(chan error)
		call := func(ctx context.Context) {
			go func() {
				_, err := client.Do(ctx, newRequest(t, chatBody))
				results <- err
			}()
			synctest.Wait()
		}
		call(t.Context()) // runs
		ctx, cancel := context.WithCancel(t.Context())
		call(ctx)         // waits
		call(t.Context()) // waits
		call(t.Context()) // finds the queue full
		full := gateway.AsError(<-results)
		if !errors.Is(full, gateway.ErrOverloaded) || full.Status != 503 || full.RetryAfter <= 0 || full.Outcome != gateway.OutcomeNotSent {
			t.Errorf("the queue is full: %+v", full)
		}
		cancel() // one gives up: there is room for another
		if err := <-results; !errors.Is(err, gateway.ErrCanceled) {
			t.Errorf("canceled while waiting: %v", err)
		}
		call(t.Context())
		began := time.Now()
		for range 2 {
			if err := <-results; !errors.Is(err, gateway.ErrOverloaded) || time.Since(began) > 5*time.Second {
				t.Errorf("after %v of waiting: %v", time.Since(began), err)
			}
		}
		close(release)
		if err := <-results; err != nil || p.Calls() != 1 {
			t.Errorf("the call that ran: %v; %d calls", err, p.Calls())
		}
		idle(t, client)
	})
}

// A middleware may call the next handler more than once, give a stream up for another, or make something else of it.
func TestMiddlewaresMayTakeStreamsOver(t *testing.T) {
	first := gatewaytest.Answer("first").ThenHang()
	failed := errors.New("not good enough")
	for _, test := range []struct {
		name       string
		middleware func(next gateway.Handler, ctx context.Context, req *gateway.Request) (*gateway.Response, error)
		text       string // of the stream; "": there is none
		err        error
		attempts   []string
	}{
		{"closes one and takes another", func(next gateway.Handler, ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			res, err := next.Do(ctx, req)
			if err != nil {
				return nil, err
			}
			_ = res.Stream.Close()
			return next.Do(ctx, req)
		}, "second", nil, []string{"canceled", "success"}},
		{"leaves one open and answers by itself", func(next gateway.Handler, ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			if _, err := next.Do(ctx, req); err != nil {
				return nil, err
			}
			return &gateway.Response{Body: []byte("{}")}, nil
		}, "", nil, []string{"canceled"}},
		{"leaves one open and fails", func(next gateway.Handler, ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			if _, err := next.Do(ctx, req); err != nil {
				return nil, err
			}
			return nil, failed
		}, "", failed, []string{"canceled"}},
		{"leaves one open and panics", func(next gateway.Handler, ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			if _, err := next.Do(ctx, req); err != nil {
				return nil, err
			}
			panic(failed)
		}, "", failed, []string{"canceled"}},
		{"reads two and fails", func(next gateway.Handler, ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			for range 2 {
				res, err := next.Do(ctx, req)
				if err != nil {
					return nil, err
				}
				_, _ = res.Stream.Next()
				_ = res.Stream.Close()
			}
			return nil, failed
		}, "", failed, []string{"canceled", "canceled"}},
		{"reads one to its end and replays it", func(next gateway.Handler, ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			res, err := next.Do(ctx, req)
			if err != nil {
				return nil, err
			}
			_ = res.Stream.Close()
			if res, err = next.Do(ctx, req); err != nil {
				return nil, err
			}
			var events []gateway.Event
			for event, err := range res.Stream.All() {
				if err != nil {
					return nil, err
				}
				events = append(events, event)
			}
			return &gateway.Response{Stream: gateway.NewStream(gateway.EventSlice(events...))}, nil
		}, "second", nil, []string{"canceled", "success"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var rec recorder
			p := gatewaytest.NewProvider("cloud", first, gatewaytest.Answer("second")).Bound(2)
			client := newClient(t, gateway.WithProvider(p), gateway.WithAlias(alias(candidate("cloud"))), gateway.WithRecorder(&rec),
				gateway.WithMiddleware(func(next gateway.Handler) gateway.Handler {
					return gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
						return test.middleware(next, ctx, req)
					})
				}))
			req := newRequest(t, streamBody)
			req.TraceID = "trace"
			res, err := client.Do(t.Context(), req)
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("%s: %v, want %v", test.name, err, test.err)
			}
			if test.text != "" {
				if text, _, err := read(res.Stream); text != test.text || err != nil {
					t.Errorf("%s: %q, %v; want %q", test.name, text, err, test.text)
				}
			}
			records := rec.all()
			if len(records) != 1 {
				t.Fatalf("%s: %d records", test.name, len(records))
			}
			r := records[0]
			wantStatus := 200
			if test.err != nil {
				wantStatus = 500
			}
			attempts := make([]string, len(r.Attempts))
			for i, a := range r.Attempts {
				attempts[i] = a.Outcome.String()
			}
			if diff := cmp.Diff(test.attempts, attempts); diff != "" || r.Status != wantStatus {
				t.Errorf("%s: status %d, want %d; attempts (-want +got):\n%s", test.name, r.Status, wantStatus, diff)
			}
			idle(t, client)
			if p.Running() != 0 {
				t.Errorf("%s: %d streams are open", test.name, p.Running())
			}
		})
	}
}
