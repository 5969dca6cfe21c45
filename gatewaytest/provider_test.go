package gatewaytest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
)

func request(t *testing.T, body string) *gateway.Request {
	t.Helper()
	req, err := gateway.NewRequest(gateway.APIChat, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

const (
	plainBody  = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	streamBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`
	usageBody  = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}`
)

// play makes one call and says in a line what came of it.
func play(ctx context.Context, p gateway.Handler, req *gateway.Request) string {
	res, err := p.Do(ctx, req)
	switch {
	case err != nil:
		return "error: " + gateway.AsError(err).Outcome.String()
	case res.Stream == nil:
		return string(res.Body)
	}
	defer res.Stream.Close()
	var lines []string
	for event, err := range res.Stream.All() {
		if err != nil {
			lines = append(lines, "error: "+gateway.AsError(err).Outcome.String())
			break
		}
		line := event.Data
		if event.Output {
			line = "output " + line
		}
		if event.Finished {
			line = "finished " + line
		}
		if event.Hidden {
			line = "hidden " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

const (
	chunkHead = `{"id":"ID","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[`
	opening   = `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`
	usageText = `"usage":{"prompt_tokens":10,"completion_tokens":6,"total_tokens":16,` +
		`"prompt_tokens_details":{"cached_tokens":3,"audio_tokens":0},` +
		`"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0}}`
)

func delta(text string) string {
	return chunkHead + `{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]`
}

func TestReplyPlayedByProvider(t *testing.T) {
	usage := gateway.Usage{Input: 7, CacheRead: 3, Output: 4, Reasoning: 2}
	answer := gatewaytest.Stream("a<", "b").WithID("ID")
	document := `{"id":"ID","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":` +
		`{"role":"assistant","content":"a<b","refusal":null},"logprobs":null,"finish_reason":"stop"}]`
	finish := "finished " + chunkHead + `{"index":0,"delta":{},"finish_reason":"stop"}]`
	failure := &gateway.Error{Outcome: gateway.OutcomeRefused}
	for _, test := range []struct {
		name string
		step gateway.Handler
		body string
		want []string
	}{
		{"document", answer, plainBody, []string{document + "}"}},
		{"document with usage", answer.WithUsage(usage), plainBody, []string{document + "," + usageText + "}"}},
		{"stream", answer, streamBody, []string{
			chunkHead + opening + "}", "output " + delta("a<") + "}", "output " + delta("b") + "}", finish + "}",
		}},
		{"stream with usage that was not asked for", answer.WithUsage(usage), streamBody, []string{
			chunkHead + opening + "}", "output " + delta("a<") + "}", "output " + delta("b") + "}", finish + "}",
			"hidden " + chunkHead + `],` + usageText + "}",
		}},
		{"stream with usage that was asked for", answer.WithUsage(usage), usageBody, []string{
			chunkHead + opening + `,"usage":null}`, "output " + delta("a<") + `,"usage":null}`,
			"output " + delta("b") + `,"usage":null}`, finish + `,"usage":null}`, chunkHead + `],` + usageText + "}",
		}},
		{"stream without a finish", answer.WithFinish(""), streamBody, []string{
			chunkHead + opening + "}", "output " + delta("a<") + "}", "output " + delta("b") + "}", "error: interrupted",
		}},
		{"stream that fails", answer.ThenFail(failure), streamBody, []string{
			chunkHead + opening + "}", "output " + delta("a<") + "}", "output " + delta("b") + "}", "error: refused",
		}},
		{"document that fails", answer.ThenFail(failure), plainBody, []string{"error: refused"}},
		{"JSON", gatewaytest.AnswerJSON(`{"any":1}`), streamBody, []string{`{"any":1}`}},
		{"refused", gatewaytest.Status(503), plainBody, []string{"error: refused"}},
		{"refused with 429", gatewaytest.Status(429), plainBody, []string{"error: refused"}},
		{"rejected", gatewaytest.Status(422), plainBody, []string{"error: rejected"}},
		{"failed", gatewaytest.FailWith(gateway.OutcomeNotSent), plainBody, []string{"error: not_sent"}},
	} {
		p := gatewaytest.NewProvider("cloud", test.step)
		got := play(t.Context(), p, request(t, test.body))
		if diff := cmp.Diff(strings.Join(test.want, "\n"), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if p.Running() != 0 {
			t.Errorf("%s: %d calls are running afterwards", test.name, p.Running())
		}
	}
}

func TestProviderPlaysItsScript(t *testing.T) {
	p := gatewaytest.NewProvider("cloud",
		gatewaytest.Status(429).WithRetryAfter("2"), gatewaytest.AnswerJSON("1"), gatewaytest.AnswerJSON("2"))
	_, err := p.Do(t.Context(), request(t, plainBody))
	if e := gateway.AsError(err); !errors.Is(err, gateway.ErrUpstreamLimit) || e.RetryAfter != 2*time.Second || e.Status != 429 {
		t.Errorf("first call: %+v", e)
	}
	for _, want := range []string{"1", "2", "2", "2"} {
		if got := play(t.Context(), p, request(t, plainBody)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	req := request(t, streamBody)
	req.TraceID = "the last"
	play(t.Context(), p, req)
	requests := p.Requests()
	if last := requests[len(requests)-1]; len(requests) != 6 || p.Calls() != 6 || last.TraceID != "the last" || !last.Stream {
		t.Errorf("%d requests noted, %d calls; the last: %+v", len(requests), p.Calls(), last)
	}
}

func TestProviderWithoutAScriptAnswers(t *testing.T) {
	if got := play(t.Context(), gatewaytest.NewProvider("cloud"), request(t, plainBody)); !strings.Contains(got, `"content":"ok"`) {
		t.Errorf("answer: %s", got)
	}
}

func TestFailReturnsACopy(t *testing.T) {
	shared := &gateway.Error{Outcome: gateway.OutcomeRefused}
	_, err := gatewaytest.NewProvider("cloud", gatewaytest.Fail(shared)).Do(t.Context(), request(t, plainBody))
	if e := gateway.AsError(err); e == shared || e.Outcome != shared.Outcome {
		t.Errorf("got %p %v, want a copy of %p", e, e, shared)
	}
}

func TestProviderKnowsWhatIsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := gatewaytest.NewProvider("cloud", gatewaytest.Answer("hi").After(release)).Bound(7)
		if p.MaxConcurrency() != 7 {
			t.Errorf("MaxConcurrency: %d, want 7", p.MaxConcurrency())
		}
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() { play(t.Context(), p, request(t, plainBody)) })
		}
		if err := p.Await(t.Context(), 3, 3); err != nil {
			t.Error(err)
		}
		close(release)
		calls.Wait()
		if p.Running() != 0 || p.Peak() != 3 {
			t.Errorf("%d running, peak %d; want 0, 3", p.Running(), p.Peak())
		}

		// A stream is running until it is closed.
		res, err := p.Do(t.Context(), request(t, streamBody))
		if err != nil {
			t.Fatal(err)
		}
		if p.Running() != 1 {
			t.Errorf("%d running with an open stream, want 1", p.Running())
		}
		for range 2 {
			if err := res.Stream.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := res.Stream.Next(); !errors.Is(err, context.Canceled) || p.Running() != 0 {
			t.Errorf("after Close: %v, %d running", err, p.Running())
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Await(ctx, 99, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Await of what never comes: %v", err)
		}
		if p.Closed() {
			t.Error("closed before Close")
		}
		if err := p.Close(); err != nil || !p.Closed() {
			t.Errorf("Close: %v; closed: %v", err, p.Closed())
		}
	})
}

func TestHangingEndsWithTheCaller(t *testing.T) {
	for name, test := range map[string]struct {
		step func(never chan struct{}) gateway.Handler
		body string
	}{
		"before the answer":         {func(chan struct{}) gateway.Handler { return gatewaytest.Hang() }, plainBody},
		"within a stream":           {func(chan struct{}) gateway.Handler { return gatewaytest.Answer("hi").ThenHang() }, streamBody},
		"held back":                 {func(c chan struct{}) gateway.Handler { return gatewaytest.Answer("hi").After(c) }, plainBody},
		"document that never comes": {func(chan struct{}) gateway.Handler { return gatewaytest.Answer("hi").ThenHang() }, plainBody},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := gatewaytest.NewProvider("cloud", test.step(make(chan struct{})))
			result := make(chan string)
			go func() { result <- play(ctx, p, request(t, test.body)) }()
			synctest.Wait()
			if p.Running() != 1 {
				t.Fatalf("%s: %d calls hang, want 1", name, p.Running())
			}
			cancel()
			if got := <-result; !strings.HasSuffix(got, "error: canceled") {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

func TestCloseWakesAHangingStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res, err := gatewaytest.NewProvider("cloud", gatewaytest.Stream().ThenHang()).Do(t.Context(), request(t, streamBody))
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error)
		go func() {
			_, _ = res.Stream.Next() // the opening
			_, err := res.Stream.Next()
			result <- err
		}()
		synctest.Wait()
		if err := res.Stream.Close(); err != nil {
			t.Error(err)
		}
		if err := <-result; err == nil || errors.Is(err, io.EOF) {
			t.Errorf("Next returned %v", err)
		}
	})
}

func TestPanics(t *testing.T) {
	for name, test := range map[string]struct {
		step gateway.Handler
		body string
	}{
		"before the answer":   {gatewaytest.Panic("boom"), plainBody},
		"within a stream":     {gatewaytest.Answer("hi").ThenPanic("boom"), streamBody},
		"instead of document": {gatewaytest.Answer("hi").ThenPanic("boom"), plainBody},
	} {
		p := gatewaytest.NewProvider("cloud", test.step)
		func() {
			defer func() {
				if cause := recover(); cause != "boom" {
					t.Errorf("%s: recovered %v, want boom", name, cause)
				}
			}()
			play(t.Context(), p, request(t, test.body))
		}()
		if p.Running() != 0 {
			t.Errorf("%s: %d calls are running afterwards", name, p.Running())
		}
	}
}
