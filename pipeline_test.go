package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatewright/gateway"
)

// provider is a gateway.Provider made of a function.
type provider struct {
	name string
	do   func(ctx context.Context, req *gateway.Request) (*gateway.Response, error)
}

func (p provider) Name() string { return p.name }

func (p provider) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	return p.do(ctx, req)
}

// answers returns a provider that gives the answers, one a call, and the last one for ever.
func answers(name string, steps ...func(ctx context.Context, req *gateway.Request) (*gateway.Response, error)) provider {
	var mu sync.Mutex
	i := 0
	return provider{name, func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
		mu.Lock()
		step := steps[min(i, len(steps)-1)]
		i++
		mu.Unlock()
		return step(ctx, req)
	}}
}

type step = func(ctx context.Context, req *gateway.Request) (*gateway.Response, error)

func plain(usage *gateway.Usage) step {
	return func(context.Context, *gateway.Request) (*gateway.Response, error) {
		return &gateway.Response{Body: []byte(`{"object":"chat.completion"}`), Usage: usage, KeyFingerprint: "k1"}, nil
	}
}

func refuse(status int, after time.Duration) step {
	return func(context.Context, *gateway.Request) (*gateway.Response, error) {
		return nil, &gateway.Error{
			Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_error", Message: "refused",
			Outcome: gateway.OutcomeRefused, UpstreamStatus: status, RetryAfter: after,
		}
	}
}

func stream(events ...gateway.Event) step {
	return func(context.Context, *gateway.Request) (*gateway.Response, error) {
		return &gateway.Response{Stream: gateway.NewStream(gateway.EventSlice(events...))}, nil
	}
}

// recorder collects records.
type recorder struct {
	mu      sync.Mutex
	records []*gateway.Record
}

func (r *recorder) Record(_ context.Context, record *gateway.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, record)
}

func (r *recorder) all() []*gateway.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*gateway.Record(nil), r.records...)
}

func alias(candidates ...gateway.Candidate) gateway.Alias {
	return gateway.Alias{Name: "chat-smart", Candidates: candidates}
}

func candidate(providerName string) gateway.Candidate {
	return gateway.Candidate{
		Provider: providerName, Model: "real-model",
		Price: &gateway.Price{Input: gateway.USD("2"), Output: gateway.USD("8")},
	}
}

func newClient(t *testing.T, options ...gateway.Option) *gateway.Client {
	t.Helper()
	options = append([]gateway.Option{gateway.WithLogger(slog.New(slog.DiscardHandler))}, options...)
	client, err := gateway.New(options...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return client
}

func newRequest(t *testing.T, body string) *gateway.Request {
	t.Helper()
	req, err := gateway.NewRequest(gateway.APIChat, []byte(body))
	if err != nil {
		t.Fatalf("NewRequest: %v", err)
	}
	return req
}

const chatBody = `{"model":"chat-smart","messages":[{"role":"user","content":"hello"}]}`

func TestPlainCallIsRecordedAndCosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		usage := gateway.Usage{Input: 100, Output: 50}
		client := newClient(t,
			gateway.WithProvider(answers("cloud", refuse(429, 2*time.Second), plain(&usage))),
			gateway.WithAlias(alias(candidate("cloud"))), gateway.WithRecorder(&rec))
		req := newRequest(t, chatBody)
		req.TraceID = "trace-1"
		req.Caller = gateway.Caller{KeyID: "key-1", App: "helpdesk"}
		began := time.Now()
		res, err := client.Do(t.Context(), req)
		if err != nil {
			t.Fatalf("Do: %v", err)
		}
		if waited := time.Since(began); waited < 2*time.Second || waited > 2250*time.Millisecond {
			t.Errorf("the retry came after %v, want 2 s and a little", waited)
		}
		records := rec.all()
		if len(records) != 1 || records[0] != res.Record {
			t.Fatalf("%d records, want the response's one", len(records))
		}
		got, err := json.Marshal(records[0])
		if err != nil {
			t.Fatal(err)
		}
		var have map[string]any
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatal(err)
		}
		delete(have, "ts")
		delete(have, "latency_ms")
		want := map[string]any{
			"trace_id": "trace-1", "key_id": "key-1", "app": "helpdesk", "api": "chat", "model_requested": "chat-smart",
			"model_upstream": "real-model", "provider": "cloud", "status": 200.0, "outcome": "success", "stream": false,
			"usage": map[string]any{"input": 100.0, "output": 50.0}, "usage_source": "reported", "cost_usd": "0.0006",
			"price_source": "config", "retry_count": 1.0,
			"attempts": []any{
				map[string]any{
					"provider": "cloud", "model": "real-model", "outcome": "refused", "status": 429.0, "ms": 0.0,
					"cost_usd": "0", "error": "gateway: cloud/real-model: refused (upstream status 429)",
				},
				map[string]any{
					"provider": "cloud", "model": "real-model", "key": "k1", "outcome": "success", "status": 200.0, "ms": 0.0,
					"usage": map[string]any{"input": 100.0, "output": 50.0}, "cost_usd": "0.0006",
				},
			},
		}
		ignoreZero := cmpopts.IgnoreMapEntries(func(_ string, v any) bool { return v == "" || v == 0.0 || v == nil || v == false })
		if diff := cmp.Diff(want, have, ignoreZero); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		stats := client.Stats().Aliases["chat-smart"]
		if stats.Requests != 1 || stats.Success != 1 || stats.Retries != 1 || stats.CostUSD != "0.000600" ||
			stats.PromptTokens != 100 || stats.CompletionTokens != 50 {
			t.Errorf("stats: %+v", stats)
		}
	})
}

func TestCostIsUnknownRatherThanZero(t *testing.T) {
	usage := gateway.Usage{Input: 100}
	unpriced := gateway.Candidate{Provider: "cloud", Model: "real-model"}
	free := gateway.Candidate{Provider: "cloud", Model: "m", Price: &gateway.Price{Input: gateway.USD("0"), Output: gateway.USD("0")}}
	tests := []struct {
		name      string
		candidate gateway.Candidate
		usage     *gateway.Usage
		cost      string
		noCost    string
		source    gateway.UsageSource
	}{
		{"no price", unpriced, &usage, "", "no_price", gateway.UsageReported},
		{"no usage", candidate("cloud"), nil, "", "usage_missing", gateway.UsageMissing},
		{"reported zero", candidate("cloud"), &gateway.Usage{}, "0", "", gateway.UsageReported},
		{"explicit price of zero", free, &usage, "0", "", gateway.UsageReported},
		{"priced", candidate("cloud"), &usage, "0.0002", "", gateway.UsageReported},
	}
	for _, test := range tests {
		for _, streamed := range []bool{false, true} {
			var rec recorder
			answer := plain(test.usage)
			if streamed {
				answer = stream(gateway.Event{Data: `{}`, Output: true, Finished: true}, gateway.Event{Hidden: true, Usage: test.usage})
			}
			client := newClient(t, gateway.WithProvider(answers("cloud", answer)), gateway.WithAlias(alias(test.candidate)),
				gateway.WithRecorder(&rec))
			req := newRequest(t, chatBody)
			req.Stream = streamed
			res, err := client.Do(t.Context(), req)
			if err != nil {
				t.Fatalf("%s: Do: %v", test.name, err)
			}
			if streamed {
				for _, err := range res.Stream.All() {
					if err != nil {
						t.Errorf("%s: stream: %v", test.name, err)
					}
				}
			}
			r := rec.all()[0]
			cost := ""
			if r.CostUSD != nil {
				cost = r.CostUSD.String()
			}
			if cost != test.cost || r.NoCost != test.noCost || r.UsageSource != test.source {
				t.Errorf("%s (stream %v): cost %q because %q, usage %s; want %q, %q, %s",
					test.name, streamed, cost, r.NoCost, r.UsageSource, test.cost, test.noCost, test.source)
			}
		}
	}
}

func TestUnpricedRefuseSendsNothing(t *testing.T) {
	called := false
	p := provider{"cloud", func(context.Context, *gateway.Request) (*gateway.Response, error) {
		called = true
		return nil, errors.New("called")
	}}
	client := newClient(t, gateway.WithProvider(p), gateway.WithUnpriced(gateway.UnpricedRefuse),
		gateway.WithAlias(alias(gateway.Candidate{Provider: "cloud", Model: "m"})))
	_, err := client.Do(t.Context(), newRequest(t, chatBody))
	if e := gateway.AsError(err); e.Code != "no_price" || e.Status != http.StatusBadRequest || called {
		t.Errorf("error %v (code %s, status %d), provider called: %v", err, e.Code, e.Status, called)
	}
}

func TestStreamHoldsOpeningBackAndFailsOver(t *testing.T) {
	opening := gateway.Event{Data: `{"role":"assistant"}`}
	broken := func(context.Context, *gateway.Request) (*gateway.Response, error) {
		return &gateway.Response{Stream: gateway.NewStream(&failing{events: []gateway.Event{opening}, err: &gateway.Error{
			Kind: gateway.ErrUpstream, Status: 502, Message: "broke", Outcome: gateway.OutcomeRefused,
		}})}, nil
	}
	policy := gateway.DefaultRetryPolicy{}
	a := alias(candidate("one"), candidate("two"))
	a.Retry = policy
	client := newClient(t, gateway.WithAlias(a), gateway.WithProvider(
		answers("one", broken),
		answers("two", stream(opening, gateway.Event{Data: "hello", Output: true}, gateway.Event{Data: "end", Finished: true}))))
	req := newRequest(t, chatBody)
	req.Stream = true
	res, err := client.Do(t.Context(), req)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	var got []string
	for event, err := range res.Stream.All() {
		if err != nil {
			t.Fatalf("stream: %v", err)
		}
		got = append(got, event.Data)
	}
	if diff := cmp.Diff([]string{opening.Data, "hello", "end"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if res.Record.Provider != "two" || len(res.Record.Attempts) != 2 {
		t.Errorf("provider %s after %d attempts, want two after 2", res.Record.Provider, len(res.Record.Attempts))
	}
}

// failing is a stream that ends with an error.
type failing struct {
	events []gateway.Event
	err    error
	closed bool
}

func (f *failing) Next() (gateway.Event, error) {
	if len(f.events) == 0 {
		return gateway.Event{}, f.err
	}
	event := f.events[0]
	f.events = f.events[1:]
	return event, nil
}

func (f *failing) Close() error { f.closed = true; return nil }

func TestInterruptedStreamIsRecordedAsSuch(t *testing.T) {
	var rec recorder
	source := &failing{
		events: []gateway.Event{{Data: "a", Output: true, OutputBytes: 40}, {Data: "b", Output: true, OutputBytes: 40}},
		err:    &gateway.Error{Kind: gateway.ErrInterrupted, Status: 502, Code: "cut", Message: "cut", Outcome: gateway.OutcomeUnknown},
	}
	client := newClient(t, gateway.WithAlias(alias(candidate("one"))), gateway.WithRecorder(&rec),
		gateway.WithProvider(answers("one", func(context.Context, *gateway.Request) (*gateway.Response, error) {
			return &gateway.Response{Stream: gateway.NewStream(source)}, nil
		})))
	req := newRequest(t, chatBody)
	req.Stream = true
	res, err := client.Do(t.Context(), req)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	var last error
	for _, err := range res.Stream.All() {
		last = err
	}
	if !errors.Is(last, gateway.ErrInterrupted) {
		t.Errorf("the stream ended with %v, want ErrInterrupted", last)
	}
	if _, err := res.Stream.Next(); !errors.Is(err, gateway.ErrInterrupted) {
		t.Errorf("Next after the end: %v, want the same error again", err)
	}
	r := rec.all()[0]
	if r.Outcome != gateway.OutcomeInterrupted || r.UsageSource != gateway.UsageEstimated || r.CostUSD != nil ||
		r.Usage.Output != 20 || r.Usage.Input == 0 || !r.Attempts[0].AtRisk || !source.closed {
		t.Errorf("record %+v; source closed: %v", r, source.closed)
	}
}

func TestPanicsLeaveNothingBehind(t *testing.T) {
	var rec recorder
	panics := provider{"one", func(context.Context, *gateway.Request) (*gateway.Response, error) { panic("provider") }}
	middleware := func(next gateway.Handler) gateway.Handler {
		return gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			res, err := next.Do(ctx, req)
			if req.TraceID == "middleware" {
				panic("middleware")
			}
			return res, err
		})
	}
	one := candidate("one")
	one.MaxConcurrency = 1
	two := gateway.Alias{Name: "two", Candidates: []gateway.Candidate{{Provider: "two", Model: "m", MaxConcurrency: 1}}}
	client := newClient(t, gateway.WithProvider(panics, answers("two", stream(gateway.Event{Data: "x", Output: true}))),
		gateway.WithAlias(alias(one), two), gateway.WithMiddleware(middleware), gateway.WithRecorder(&rec))
	for range 5 {
		_, err := client.Do(t.Context(), newRequest(t, chatBody))
		if e := gateway.AsError(err); !errors.Is(err, gateway.ErrInternal) || e.Status != 500 {
			t.Fatalf("panic in a provider: %v, want ErrInternal with 500", err)
		}
	}
	for range 5 {
		req := newRequest(t, `{"model":"two","stream":true}`)
		req.TraceID = "middleware"
		if _, err := client.Do(t.Context(), req); !errors.Is(err, gateway.ErrInternal) {
			t.Fatalf("panic in a middleware: %v, want ErrInternal", err)
		}
	}
	if got := len(rec.all()); got != 10 {
		t.Errorf("%d records of 10 calls", got)
	}
	for name, s := range client.Stats().Aliases {
		if s.InFlight != 0 || s.Candidates[0].InFlight != 0 {
			t.Errorf("%s: %d calls and %d attempts in flight, want 0", name, s.InFlight, s.Candidates[0].InFlight)
		}
	}
}

func TestCloseDrainsThenCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		quick := func(ctx context.Context, _ *gateway.Request) (*gateway.Response, error) {
			<-time.After(2 * time.Second)
			return &gateway.Response{Body: []byte(`{}`)}, nil
		}
		hangs := func(ctx context.Context, _ *gateway.Request) (*gateway.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		client, err := gateway.New(gateway.WithLogger(slog.New(slog.DiscardHandler)), gateway.WithRecorder(&rec),
			gateway.WithProvider(answers("one", quick, hangs)), gateway.WithAlias(alias(candidate("one"))))
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := client.Do(t.Context(), newRequest(t, chatBody))
				results <- err
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		closed := make(chan error, 1)
		go func() { closed <- client.Close(ctx) }()
		synctest.Wait()
		if _, err := client.Do(t.Context(), newRequest(t, chatBody)); !errors.Is(err, gateway.ErrClosed) {
			t.Errorf("a call while closing: %v, want ErrClosed", err)
		}
		if !errors.Is(client.Ready(), gateway.ErrClosed) {
			t.Error("Ready while closing: not ErrClosed")
		}
		if err := <-results; err != nil {
			t.Errorf("the quick call: %v, want success", err)
		}
		if err := <-closed; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v, want the deadline's error", err)
		}
		if err := <-results; !errors.Is(err, gateway.ErrClosed) {
			t.Errorf("the hanging call: %v, want ErrClosed", err)
		}
		if got := len(rec.all()); got != 2 {
			t.Errorf("%d records, want 2", got)
		}
	})
}

func TestUnknownModelIsRefused(t *testing.T) {
	client := newClient(t, gateway.WithProvider(answers("one", plain(nil))), gateway.WithAlias(alias(candidate("one"))))
	for _, test := range []struct {
		model  string
		models []string
		status int
	}{
		{"chat-smart", nil, 0},
		{"chat-smart", []string{"chat-*"}, 0},
		{"chat-smart", []string{"embed-*"}, 404},
		{"real-model", nil, 404},
		{"one", nil, 404},
		{"chat-smart ", nil, 404},
	} {
		req := newRequest(t, chatBody)
		req.Model, req.Caller.Models = test.model, test.models
		_, err := client.Do(t.Context(), req)
		if test.status == 0 {
			if err != nil {
				t.Errorf("%q for %v: %v", test.model, test.models, err)
			}
			continue
		}
		e := gateway.AsError(err)
		if !errors.Is(err, gateway.ErrUnknownModel) || e.Status != test.status || e.Code != "model_not_found" {
			t.Errorf("%q for %v: %v, want model_not_found", test.model, test.models, err)
		}
	}
}

func TestGatewaysNest(t *testing.T) {
	usage := gateway.Usage{Input: 10, Output: 5}
	inner := newClient(t, gateway.WithProvider(answers("cloud", plain(&usage))), gateway.WithAlias(alias(candidate("cloud"))))
	outer := newClient(t, gateway.WithProvider(gateway.NewProvider("inner", inner)),
		gateway.WithAlias(gateway.Alias{Name: "outer", Candidates: []gateway.Candidate{{Provider: "inner", Model: "chat-smart"}}}))
	res, err := outer.Do(t.Context(), newRequest(t, `{"model":"outer"}`))
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	if res.Record.ModelRequested != "outer" || res.Record.ModelUpstream != "chat-smart" || res.Record.Usage != usage {
		t.Errorf("record: %+v", res.Record)
	}
}

func TestStrictAliasRefusesUnknownMembers(t *testing.T) {
	a := alias(candidate("one"))
	a.Strict = true
	client := newClient(t, gateway.WithProvider(answers("one", plain(nil))), gateway.WithAlias(a))
	if _, err := client.Do(t.Context(), newRequest(t, chatBody)); err != nil {
		t.Errorf("known members: %v", err)
	}
	_, err := client.Do(t.Context(), newRequest(t, `{"model":"chat-smart","messages":[],"x_vendor":1}`))
	if e := gateway.AsError(err); e.Status != 400 || e.Param != "x_vendor" || e.Code != "unknown_parameter" {
		t.Errorf("unknown member: %v", err)
	}
}

func TestNewReportsEverything(t *testing.T) {
	_, err := gateway.New(
		gateway.WithProvider(answers("one"), answers("one"), answers("")),
		gateway.WithAlias(
			gateway.Alias{},
			gateway.Alias{Name: "a", Candidates: []gateway.Candidate{{Provider: "two", Model: "m"}, {Provider: "one"}}},
			gateway.Alias{Name: "a", Candidates: []gateway.Candidate{{Provider: "one", Model: "m", Price: &gateway.Price{}}}},
		))
	want := strings.Join([]string{
		`providers[1].name: there are two providers "one"`,
		`providers[2].name: a provider needs a name`,
		`models[0].alias: an alias needs a name`,
		`models[0].candidates: alias "" needs at least one candidate`,
		`models[1].candidates[0].provider: there is no provider "two"`,
		`models[1].candidates[1].model: a candidate needs the model's name at the provider`,
		`models[2].candidates[0].price: a price needs input or output, in USD per million tokens`,
		`models[2].alias: there are two aliases "a"`,
	}, "\n")
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestStreamEndsOnce(t *testing.T) {
	var rec recorder
	client := newClient(t, gateway.WithProvider(answers("one", stream(gateway.Event{Data: "x", Output: true}, gateway.Event{Data: "y", Finished: true}))),
		gateway.WithAlias(alias(candidate("one"))), gateway.WithRecorder(&rec))
	for _, closeAfter := range []int{0, 1, 2, 3} {
		req := newRequest(t, chatBody)
		req.Stream = true
		res, err := client.Do(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for range closeAfter {
			if _, err := res.Stream.Next(); err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("Next: %v", err)
			}
		}
		for range 3 {
			if err := res.Stream.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
		}
	}
	outcomes := make([]string, 0, 4)
	for _, r := range rec.all() {
		outcomes = append(outcomes, r.Outcome.String())
	}
	// Closed before the finish: canceled. Closed after it: the answer was complete.
	if diff := cmp.Diff([]string{"canceled", "canceled", "success", "success"}, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}
