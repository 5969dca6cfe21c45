package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
)

// within returns a context for what must happen within a second of a caller's leave. It allows for tests that share
// their machine with others.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A caller who leaves ends the upstream's work at once, wherever the call is and however it is left.
func TestCallersWhoLeave(t *testing.T) {
	const events = 3
	hang := gatewaytest.Hang()
	for _, test := range []struct {
		name    string
		body    string
		step    http.Handler
		read    int  // events that are read before the caller leaves; 0: it leaves while Do waits
		closing bool // by closing the stream; otherwise by ending its context
	}{
		{"plain, before headers", chatBody, hang, 0, false},
		{"plain, after headers", chatBody, gatewaytest.Sequence(gatewaytest.Headers(200), hang), 0, false},
		{"plain, in mid-body", chatBody, gatewaytest.Sequence(gatewaytest.Text(`{"choices":`), hang), 0, false},
		{"stream, before headers", streamBody, hang, 0, false},
		{"stream, after its opening", streamBody, gatewaytest.Sequence(gatewaytest.Opening(), hang), 0, false},
		{"stream, canceled", streamBody, gatewaytest.Sequence(gatewaytest.Events(events), hang), events, false},
		{"stream, closed", streamBody, gatewaytest.Sequence(gatewaytest.Events(events), hang), events, true},
		{"stream, closed unread", streamBody, gatewaytest.Sequence(gatewaytest.Events(events), hang), -1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rec recorder
			u := gatewaytest.NewUpstream(t, test.step)
			c := candidate("cloud")
			c.MaxConcurrency = 1
			client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(eagerAlias(c, candidate("cloud"))),
				gateway.WithRecorder(&rec))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req := newRequest(t, test.body)
			var err error
			if test.read == 0 {
				result := make(chan error)
				go func() {
					_, err := client.Do(ctx, req)
					result <- err
				}()
				if err := u.Await(t.Context(), func(t gatewaytest.Traffic) bool { return t.Whole == 1 }); err != nil {
					t.Fatal(err)
				}
				cancel()
				err = <-result
			} else {
				res, failure := client.Do(ctx, req)
				if failure != nil {
					t.Fatal(failure)
				}
				for range test.read {
					if _, err := res.Stream.Next(); err != nil {
						t.Fatal(err)
					}
				}
				if test.closing {
					_ = res.Stream.Close()
				} else {
					cancel()
				}
				_, err = res.Stream.Next()
				defer res.Stream.Close()
			}
			if !errors.Is(err, gateway.ErrCanceled) || gateway.AsError(err).Status != gateway.StatusClientClosedRequest {
				t.Errorf("error: %v", err)
			}
			gone := func(t gatewaytest.Traffic) bool { return t.Canceled == 1 && t.Open == 0 && t.Running == 0 }
			if err := u.Await(within(t), gone); err != nil {
				t.Error(err)
			}
			if u.Count() != 1 {
				t.Errorf("the upstream saw %d requests, want 1", u.Count())
			}
			records := rec.all()
			if len(records) != 1 {
				t.Fatalf("%d records", len(records))
			}
			r := records[0]
			if r.Outcome != gateway.OutcomeCanceled || r.Status != 499 || r.UsageSource != gateway.UsageEstimated ||
				r.CostUSD != nil || !r.Attempts[0].AtRisk || (r.Usage.Output > 0) != (test.read > 0) || r.Usage.Input == 0 {
				t.Errorf("record: %+v", r)
			}
			stats := client.Stats().Aliases["chat-smart"]
			if stats.Canceled != 1 || stats.Failed != 0 || stats.Candidates[0].Errors != 0 || stats.EstimatedTokens == 0 {
				t.Errorf("stats: %+v", stats)
			}
			idle(t, client)
		})
	}
}

// A reader that waits for a silent upstream wakes when the stream is closed under it.
func TestCloseWakesAReader(t *testing.T) {
	u := gatewaytest.NewUpstream(t, gatewaytest.Sequence(gatewaytest.Events(1), gatewaytest.Hang()))
	client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(alias(candidate("cloud"))))
	res, err := client.Do(t.Context(), newRequest(t, streamBody))
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		_, _, err := read(res.Stream)
		result <- err
	}()
	if err := res.Stream.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-result:
		if !errors.Is(err, gateway.ErrCanceled) {
			t.Errorf("the reader got %v", err)
		}
	case <-within(t).Done():
		t.Fatal("the reader did not wake")
	}
	if res.Record.Outcome != gateway.OutcomeCanceled {
		t.Errorf("record: %+v", res.Record)
	}
}

// Closing a stream ends the context that its provider got.
func TestCloseEndsTheProvidersContext(t *testing.T) {
	var ended <-chan struct{}
	p := gateway.NewProvider("cloud", gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
		ended = ctx.Done()
		return gatewaytest.Answer("hi").Do(ctx, req)
	}))
	client := newClient(t, gateway.WithProvider(p), gateway.WithAlias(alias(candidate("cloud"))))
	res, err := client.Do(t.Context(), newRequest(t, streamBody))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Error("the context ended before the stream")
	default:
	}
	if err := res.Stream.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

// Two hundred callers leave an upstream that has fallen silent: nothing stays behind.
func TestSilentUpstreamsKeepNothing(t *testing.T) {
	const callers = 200
	u := gatewaytest.NewUpstream(t, gatewaytest.Sequence(gatewaytest.Events(1), gatewaytest.Hang()))
	client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(alias(candidate("cloud"))))
	before := runtime.NumGoroutine()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var reading, running sync.WaitGroup
	reading.Add(callers)
	for range callers {
		running.Go(func() {
			res, err := client.Do(ctx, newRequest(t, streamBody))
			if err == nil {
				_, err = res.Stream.Next()
				defer res.Stream.Close()
			}
			reading.Done()
			if err == nil {
				_, err = res.Stream.Next() // the upstream is silent
			}
			if !errors.Is(err, gateway.ErrCanceled) {
				t.Errorf("a caller got %v", err)
			}
		})
	}
	reading.Wait()
	leave()
	running.Wait()
	gone := func(t gatewaytest.Traffic) bool { return t.Canceled == callers && t.Open == 0 && t.Running == 0 }
	deadline := within(t)
	if err := u.Await(deadline, gone); err != nil {
		t.Error(err)
	}
	for runtime.NumGoroutine() > before && deadline.Err() == nil {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	idle(t, client)
}

// A call that is cut is recorded with the best that is known of its usage, never with a silent zero.
func TestCutCallsAreEstimated(t *testing.T) {
	prose := strings.Fields("It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of " +
		"foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the " +
		"season of Darkness, it was the spring of hope, it was the winter of despair.")
	prompt := func(words int) string {
		text := strings.Repeat(strings.Join(prose, " ")+" ", words/len(prose)+1)
		return `{"model":"chat-smart","stream":true,"messages":[{"role":"user","content":"` +
			strings.Join(strings.Fields(text)[:words], " ") + `"}]}`
	}
	reported := gateway.Usage{Input: 1000, Output: 77}
	near := func(got, low, high int64) bool { return got >= low && got <= high }
	for _, test := range []struct {
		name   string
		body   string
		step   http.Handler
		read   int // events, with the role's; 0: the caller leaves before any output
		source gateway.UsageSource
		input  [2]int64
		output [2]int64
	}{
		{"1,000 words, 20 chunks", prompt(1000), gatewaytest.Sequence(gatewaytest.Opening(), gatewaytest.Events(20), gatewaytest.Hang()), 21,
			gateway.UsageEstimated, [2]int64{900, 1800}, [2]int64{10, 40}},
		{"8,000 words, no output", prompt(8000), gatewaytest.Sequence(gatewaytest.Headers(200, "Content-Type", "text/event-stream"), gatewaytest.Hang()), 0,
			gateway.UsageEstimated, [2]int64{7000, 14300}, [2]int64{0, 0}},
		{"8,000 words, no headers", prompt(8000), gatewaytest.Hang(), 0,
			gateway.UsageEstimated, [2]int64{7000, 14300}, [2]int64{0, 0}},
		{"the report had come", prompt(10), gatewaytest.Sequence(gatewaytest.Opening(), gatewaytest.Events(1),
			gatewaytest.Usage(reported), gatewaytest.Events(1), gatewaytest.Hang()), 3,
			gateway.UsageReported, [2]int64{1000, 1000}, [2]int64{77, 77}},
		{"the upstream broke off", prompt(1000), gatewaytest.Sequence(gatewaytest.Opening(), gatewaytest.Events(20), gatewaytest.Reset()), 99,
			gateway.UsageEstimated, [2]int64{900, 1800}, [2]int64{10, 40}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rec recorder
			u := gatewaytest.NewUpstream(t, test.step)
			client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(alias(candidate("cloud"))),
				gateway.WithRecorder(&rec))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.read == 0 {
				stop := make(chan struct{})
				go func() {
					defer close(stop)
					_ = u.Await(ctx, func(t gatewaytest.Traffic) bool { return t.Whole == 1 })
					cancel()
				}()
				if _, err := client.Do(ctx, newRequest(t, test.body)); !errors.Is(err, gateway.ErrCanceled) {
					t.Fatal(err)
				}
				<-stop
			} else {
				res, err := client.Do(ctx, newRequest(t, test.body))
				if err != nil {
					t.Fatal(err)
				}
				for range test.read {
					if _, err := res.Stream.Next(); err != nil {
						break
					}
				}
				if err := res.Stream.Close(); err != nil {
					t.Error(err)
				}
			}
			r := rec.all()[0]
			in, out := r.Usage.PromptTokens(), r.Usage.CompletionTokens()
			if r.UsageSource != test.source || !near(in, test.input[0], test.input[1]) || !near(out, test.output[0], test.output[1]) {
				t.Errorf("usage %s: %d in, %d out; want %s, %v, %v", r.UsageSource, in, out, test.source, test.input, test.output)
			}
			if (r.CostUSD != nil) != (test.source == gateway.UsageReported) {
				t.Errorf("cost %v of usage that is %s", r.CostUSD, r.UsageSource)
			}
		})
	}
}

// Hang-ups are the callers' own affair: no error in the log, none in the figures.
func TestHangUpsAreNoErrors(t *testing.T) {
	const callers = 50
	var mu sync.Mutex
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), nil))
	u := gatewaytest.NewUpstream(t, gatewaytest.Sequence(gatewaytest.Events(2), gatewaytest.Hang()))
	client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(alias(candidate("cloud"))),
		gateway.WithLogger(logger), gateway.WithRecorder(gateway.LogRecorder(logger)))
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			res, err := client.Do(t.Context(), newRequest(t, streamBody))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = res.Stream.Next()
			_ = res.Stream.Close()
		})
	}
	running.Wait()
	stats := client.Stats().Aliases["chat-smart"]
	if stats.Canceled != callers || stats.Failed != 0 || stats.Candidates[0].ErrorRate != 0 {
		t.Errorf("stats: %+v", stats)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != callers {
		t.Errorf("%d lines logged, want one a call:\n%s", len(lines), log.String())
	}
	for _, line := range lines {
		if !strings.Contains(line, `"level":"INFO"`) || !strings.Contains(line, `"status":499`) {
			t.Fatalf("logged: %s", line)
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A provider that panics in mid-stream cuts the stream; the caller does not see a good end.
func TestPanicInMidStreamIsAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		p := gatewaytest.NewProvider("cloud", gatewaytest.Stream("a", "b").ThenPanic("boom"))
		client := newClient(t, gateway.WithProvider(p), gateway.WithAlias(alias(candidate("cloud"))), gateway.WithRecorder(&rec))
		res, err := client.Do(t.Context(), newRequest(t, streamBody))
		if err != nil {
			t.Fatal(err)
		}
		text, _, err := read(res.Stream)
		if e := gateway.AsError(err); text != "ab" || err == nil || e.Outcome != gateway.OutcomeInterrupted || e.Status != 500 {
			t.Errorf("%q, then %v", text, err)
		}
		if r := rec.all()[0]; r.Outcome != gateway.OutcomeInterrupted || r.Status != 500 {
			t.Errorf("record: %+v", r)
		}
		idle(t, client)
	})
}

// Closing the gateway cancels what is left, also at the upstream.
func TestCloseCancelsTheUpstreams(t *testing.T) {
	u := gatewaytest.NewUpstream(t, gatewaytest.Hang(), gatewaytest.Sequence(gatewaytest.Events(1), gatewaytest.Hang()))
	var rec recorder
	client, err := gateway.New(gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(eagerAlias(candidate("cloud"))),
		gateway.WithRecorder(&rec), gateway.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 2)
	go func() {
		_, err := client.Do(t.Context(), newRequest(t, chatBody))
		results <- err
	}()
	if err := u.Await(t.Context(), func(t gatewaytest.Traffic) bool { return t.Whole == 1 }); err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(t.Context(), newRequest(t, streamBody))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _, err := read(res.Stream)
		results <- err
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no time to drain
	if err := client.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	for range 2 {
		if err := <-results; !errors.Is(err, gateway.ErrClosed) {
			t.Errorf("a call in flight: %v", err)
		}
	}
	gone := func(t gatewaytest.Traffic) bool { return t.Canceled == 2 && t.Open == 0 }
	if err := u.Await(within(t), gone); err != nil {
		t.Error(err)
	}
	if n := len(rec.all()); n != 2 || u.Count() != 2 {
		t.Errorf("%d records, %d requests", n, u.Count())
	}
}
