package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
	"github.com/gatewright/gateway/internal/leakcheck"
	"github.com/gatewright/gateway/providers/openai"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// openCloud returns a provider that calls url, usually over real sockets.
func openCloud(t *testing.T, name, url string, changes ...func(*openai.Config)) gateway.Provider {
	t.Helper()
	config := openai.Config{
		Name: name, BaseURL: url, Keys: []gateway.Secret{gateway.NewSecret("sk-first")}, Logger: slog.New(slog.DiscardHandler),
	}
	for _, change := range changes {
		change(&config)
	}
	p, err := openai.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func timeouts(firstByte, idle time.Duration) func(*openai.Config) {
	return func(c *openai.Config) { c.Timeouts.FirstByte, c.Timeouts.Idle = firstByte, idle }
}

// eager retries often and soon.
var eager = gateway.DefaultRetryPolicy{MaxRetries: 3, Base: time.Millisecond}

func eagerAlias(candidates ...gateway.Candidate) gateway.Alias {
	a := alias(candidates...)
	a.Retry = eager
	return a
}

const (
	streamBody = `{"model":"chat-smart","stream":true,"messages":[{"role":"user","content":"hello"}]}`
	usageBody  = `{"model":"chat-smart","stream":true,"stream_options":{"include_usage":true},"messages":[]}`
)

// read returns a stream's text, its number of events, and how it ended: nil for an orderly end.
func read(s *gateway.Stream) (text string, events int, err error) {
	var b strings.Builder
	for event, err := range s.All() {
		if err != nil {
			return b.String(), events, err
		}
		events++
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(event.Data), &chunk, json.MatchCaseInsensitiveNames(true)); err != nil {
			return b.String(), events, err
		}
		for _, choice := range chunk.Choices {
			b.WriteString(choice.Delta.Content)
		}
	}
	return b.String(), events, nil
}

// run makes a call and, when it is a stream, reads it to its end.
func run(ctx context.Context, client *gateway.Client, req *gateway.Request) (*gateway.Response, error) {
	res, err := client.Do(ctx, req)
	if err == nil && res.Stream != nil {
		_, _, err = read(res.Stream)
	}
	return res, err
}

// Every row of the table in design.md, section 4, with a server that does the thing: what reaches it, and what the
// caller is told. A second candidate shows whether the gateway went on to it.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	answer := gatewaytest.Answer("hi").WithUsage(gateway.Usage{Input: 100, Output: 50})
	large := `{"model":"chat-smart","messages":[{"role":"user","content":"` + strings.Repeat("x", 16<<20) + `"}]}`
	type want struct {
		begun, whole int // requests that the first upstream saw, and those that it read as a whole
		second       int // requests that the second one saw
		outcome      gateway.Outcome
		status       int // 0: success
		code         string
		kind         error
		message      string // part of it
	}
	const unknown = "result unknown, not retried"
	broken := func(code, message string) want {
		return want{1, 1, 0, gateway.OutcomeUnknown, 502, code, gateway.ErrUpstream, message}
	}
	late := want{1, 1, 0, gateway.OutcomeUnknown, 504, "upstream_timeout", gateway.ErrUpstreamTimeout, unknown}
	interrupted := func(code string) want {
		return want{1, 1, 0, gateway.OutcomeInterrupted, 502, code, gateway.ErrInterrupted, ""}
	}
	success := func(requests int) want { return want{begun: requests, whole: requests} }
	rejected := func(status int) want {
		return want{1, 1, 0, gateway.OutcomeRejected, status, "", gateway.ErrInvalidRequest, ""}
	}
	const soon = 250 * time.Millisecond // long enough for a request to arrive on a busy machine
	tests := []struct {
		name  string
		body  string
		steps []http.Handler
		limit time.Duration // first byte and idle; 0: the defaults
		want  want
	}{
		// The request never arrived as a whole: it is sent again, and then to the next candidate.
		{"reset before a large body was read", large, []http.Handler{gatewaytest.BeforeBody(gatewaytest.Reset())}, 0,
			want{begun: 4, second: 1}},
		{"reset before a large body was read, once", large,
			[]http.Handler{gatewaytest.BeforeBody(gatewaytest.Reset()), answer}, 0, want{begun: 2, whole: 1}},

		// It did, and nobody knows what became of it: never again.
		{"reset before a small body was read", chatBody, []http.Handler{gatewaytest.BeforeBody(gatewaytest.Reset())}, 0,
			want{1, 0, 0, gateway.OutcomeUnknown, 502, "upstream_connection_lost", gateway.ErrUpstream, unknown}},
		{"reset after the body was read", chatBody, []http.Handler{gatewaytest.Reset()}, 0, broken("upstream_connection_lost", unknown)},
		{"reset after a large body was read", large, []http.Handler{gatewaytest.Reset()}, 0, broken("upstream_connection_lost", unknown)},
		{"closed after the body was read", chatBody, []http.Handler{gatewaytest.HangUp()}, 0, broken("upstream_connection_lost", unknown)},
		{"closed after a stream's body was read", streamBody, []http.Handler{gatewaytest.HangUp()}, 0, broken("upstream_connection_lost", unknown)},
		{"hangs before headers", chatBody, []http.Handler{gatewaytest.Hang()}, soon, late},
		{"hangs before a stream's headers", streamBody, []http.Handler{gatewaytest.Hang()}, soon, late},
		{"hangs after headers", chatBody, []http.Handler{gatewaytest.Sequence(gatewaytest.Headers(200), gatewaytest.Hang())}, soon, late},
		{"hangs in mid-body", chatBody, []http.Handler{gatewaytest.Sequence(gatewaytest.Text(`{"choices":`), gatewaytest.Hang())}, soon, late},
		{"breaks in mid-body", chatBody, []http.Handler{gatewaytest.Sequence(gatewaytest.Text(`{"choices":`), gatewaytest.Reset())}, 0,
			broken("upstream_connection_lost", unknown)},
		{"a body shorter than announced", chatBody, []http.Handler{gatewaytest.Raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")}, 0,
			broken("upstream_connection_lost", unknown)},
		{"not HTTP", chatBody, []http.Handler{gatewaytest.Raw("SSH-2.0-x\r\n\r\n")}, 0, broken("", unknown)},
		{"not JSON", chatBody, []http.Handler{gatewaytest.AnswerJSON("OK")}, 0, broken("", "")},
		{"half a document", chatBody, []http.Handler{gatewaytest.AnswerJSON(`{"choices":[`)}, 0, broken("", "")},
		{"nothing", chatBody, []http.Handler{gatewaytest.AnswerJSON(" ")}, 0, broken("", "")},

		// It ran in part.
		{"events, then reset", streamBody, []http.Handler{gatewaytest.Sequence(gatewaytest.Events(3), gatewaytest.Reset())}, 0,
			interrupted("upstream_stream_truncated")},
		{"events, then closed", streamBody, []http.Handler{gatewaytest.Sequence(gatewaytest.Events(3), gatewaytest.HangUp())}, 0,
			interrupted("upstream_stream_truncated")},
		{"events, then a clean end without a finish", streamBody, []http.Handler{gatewaytest.Events(3)}, 0,
			interrupted("upstream_stream_truncated")},
		{"events, then silence", streamBody, []http.Handler{gatewaytest.Sequence(gatewaytest.Events(3), gatewaytest.Hang())}, soon,
			want{1, 1, 0, gateway.OutcomeInterrupted, 504, "upstream_idle_timeout", gateway.ErrInterrupted, ""}},
		{"events, then an error event", streamBody,
			[]http.Handler{gatewaytest.Sequence(gatewaytest.Events(3), gatewaytest.ErrorEvent("broke", "broken"))}, 0,
			want{1, 1, 0, gateway.OutcomeInterrupted, 502, "", gateway.ErrInterrupted, "broke"}},

		// An error answer costs nothing: again, and then the next candidate.
		{"429, then success", chatBody, []http.Handler{gatewaytest.Status(429).WithRetryAfter("0"), answer}, 0, success(2)},
		{"500, then success", chatBody, []http.Handler{gatewaytest.Status(500), answer}, 0, success(2)},
		{"502, then success", chatBody, []http.Handler{gatewaytest.Status(502), answer}, 0, success(2)},
		{"503, then success", chatBody, []http.Handler{gatewaytest.Status(503), answer}, 0, success(2)},
		{"504, then success", chatBody, []http.Handler{gatewaytest.Status(504), answer}, 0, success(2)},
		{"529, then success", chatBody, []http.Handler{gatewaytest.Status(529), answer}, 0, success(2)},
		{"429, then a stream", streamBody, []http.Handler{gatewaytest.Status(429).WithRetryAfter("0"), answer}, 0, success(2)},
		{"a proxy's page with 502, then success", chatBody,
			[]http.Handler{gatewaytest.Status(502).WithBody("text/html", "<html>"), answer}, 0, success(2)},
		{"an error event at once, then success", streamBody,
			[]http.Handler{gatewaytest.ErrorEvent("overloaded", "overloaded"), answer}, 0, success(2)},
		{"always 503", chatBody, []http.Handler{gatewaytest.Status(503)}, 0, want{begun: 4, whole: 4, second: 1}},
		{"always 503 on a stream", streamBody, []http.Handler{gatewaytest.Status(503)}, 0, want{begun: 4, whole: 4, second: 1}},

		// The same request would be rejected again.
		{"400", chatBody, []http.Handler{gatewaytest.Status(400), answer}, 0, rejected(400)},
		{"400 on a stream", streamBody, []http.Handler{gatewaytest.Status(400), answer}, 0, rejected(400)},
		{"404", chatBody, []http.Handler{gatewaytest.Status(404), answer}, 0, rejected(404)},
		{"413", chatBody, []http.Handler{gatewaytest.Status(413), answer}, 0, rejected(413)},
		{"422", chatBody, []http.Handler{gatewaytest.Status(422), answer}, 0, rejected(422)},
		// The gateway's own key is at fault, not the caller: another account may do.
		{"401", chatBody, []http.Handler{gatewaytest.Status(401), answer}, 0, want{begun: 1, whole: 1, second: 1}},
		{"403", chatBody, []http.Handler{gatewaytest.Status(403), answer}, 0, want{begun: 1, whole: 1, second: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var rec recorder
			first, second := gatewaytest.NewUpstream(t, test.steps...), gatewaytest.NewUpstream(t, answer)
			client := newClient(t, gateway.WithRecorder(&rec),
				gateway.WithProvider(openCloud(t, "one", first.URL(), timeouts(test.limit, test.limit)), openCloud(t, "two", second.URL())),
				gateway.WithAlias(eagerAlias(candidate("one"), candidate("two"))))
			_, err := run(t.Context(), client, newRequest(t, test.body))
			if test.want.status == 0 && err != nil {
				t.Errorf("the call failed: %v", err)
			}
			if test.want.status != 0 {
				e := gateway.AsError(err)
				switch {
				case err == nil:
					t.Error("the call succeeded")
				case !errors.Is(err, test.want.kind) || e.Outcome != test.want.outcome || e.Status != test.want.status ||
					test.want.code != "" && e.Code != test.want.code || !strings.Contains(e.Message, test.want.message):
					t.Errorf("error %+v\nwant outcome %v, status %d, code %s, kind %q, message with %q",
						e, test.want.outcome, test.want.status, test.want.code, test.want.kind, test.want.message)
				}
			}
			got := first.Traffic()
			if got.Begun != test.want.begun || got.Whole != test.want.whole || second.Count() != test.want.second {
				t.Errorf("the first upstream saw %d requests, %d of them as a whole, the second %d; want %d, %d, %d",
					got.Begun, got.Whole, second.Count(), test.want.begun, test.want.whole, test.want.second)
			}
			records := rec.all()
			if len(records) != 1 {
				t.Fatalf("%d records", len(records))
			}
			r := records[0]
			if r.Outcome != test.want.outcome || r.Status != max(test.want.status, 200) ||
				len(r.Attempts) != got.Begun+second.Count() || r.RetryCount != len(r.Attempts)-1 {
				t.Errorf("record: outcome %v, status %d, %d attempts, %d retries", r.Outcome, r.Status, len(r.Attempts), r.RetryCount)
			}
		})
	}
}

func TestRefusedPortIsTriedAgainAndThenTheNextCandidate(t *testing.T) {
	two := gatewaytest.NewUpstream(t)
	client := newClient(t, gateway.WithProvider(openCloud(t, "one", gatewaytest.Refused(t)), openCloud(t, "two", two.URL())),
		gateway.WithAlias(eagerAlias(candidate("one"), candidate("two")),
			gateway.Alias{Name: "alone", Candidates: []gateway.Candidate{candidate("one")}, Retry: eager}))
	res, err := client.Do(t.Context(), newRequest(t, chatBody))
	if err != nil || res.Record.Provider != "two" || two.Count() != 1 {
		t.Fatalf("%v; the second upstream saw %d requests", err, two.Count())
	}
	outcomes := make([]string, len(res.Record.Attempts))
	for i, a := range res.Record.Attempts {
		outcomes[i] = a.Provider + " " + a.Outcome.String()
	}
	want := []string{"one not_sent", "one not_sent", "one not_sent", "one not_sent", "two success"}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}

	_, err = client.Do(t.Context(), newRequest(t, `{"model":"alone"}`))
	if e := gateway.AsError(err); !errors.Is(err, gateway.ErrUpstream) || e.Status != 502 || e.Outcome != gateway.OutcomeNotSent ||
		len(e.Attempts) != 4 || strings.Contains(e.Message, "127.0.0.1") {
		t.Errorf("without another candidate: %+v", e)
	}
}

// A timeout that could be retried three times reaches the upstream once.
func TestReadTimeoutReachesTheUpstreamOnce(t *testing.T) {
	u := gatewaytest.NewUpstream(t, gatewaytest.Hang())
	client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL(), timeouts(250*time.Millisecond, 0))),
		gateway.WithAlias(eagerAlias(candidate("cloud"))))
	_, err := client.Do(t.Context(), newRequest(t, chatBody))
	e := gateway.AsError(err)
	if !errors.Is(err, gateway.ErrUpstreamTimeout) || e.Status != 504 || e.Code != "upstream_timeout" ||
		!strings.Contains(e.Message, "result unknown, not retried") || len(e.Attempts) != 1 || !e.Attempts[0].AtRisk {
		t.Errorf("error: %+v", e)
	}
	<-u.Canceled()
	if u.Count() != 1 {
		t.Errorf("the upstream saw %d requests, want 1", u.Count())
	}
}

func TestReadTimeoutIsRetriedWhereThatIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := gatewaytest.NewPipeUpstream(t, gatewaytest.Hang())
		a := alias(candidate("cloud"))
		a.Retry = gateway.DefaultRetryPolicy{MaxRetries: 3, RetryUnknown: true}
		client := newClient(t, gateway.WithProvider(pipeCloud(t, "cloud", u, timeouts(time.Minute, 0))), gateway.WithAlias(a))
		if _, err := client.Do(t.Context(), newRequest(t, chatBody)); !errors.Is(err, gateway.ErrUpstreamTimeout) || u.Count() != 4 {
			t.Errorf("%v; the upstream saw %d requests, want 4", err, u.Count())
		}
	})
}

func TestCallersDeadlineEndsTheAttempt(t *testing.T) {
	u := gatewaytest.NewUpstream(t, gatewaytest.Hang())
	client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(eagerAlias(candidate("cloud"))))
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	_, err := client.Do(ctx, newRequest(t, chatBody))
	if e := gateway.AsError(err); e.Outcome != gateway.OutcomeCanceled || e.Status != 504 || e.Code != "deadline_exceeded" {
		t.Errorf("error: %+v", e)
	}
	<-u.Canceled()
	if u.Count() != 1 {
		t.Errorf("the upstream saw %d requests, want 1", u.Count())
	}
}

// A server may close an idle connection just as a request is sent on it. What it had not read may be sent again, what
// had been written may not. No request is executed twice.
func TestIdleConnectionsThatClose(t *testing.T) {
	const calls = 2000
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex // guards random
	chance := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	answer := gatewaytest.Answer("hi")
	ends := []http.Handler{
		gatewaytest.Sequence(answer, gatewaytest.HangUp()), gatewaytest.Sequence(answer, gatewaytest.Reset()),
		gatewaytest.Sequence(answer, gatewaytest.ResetNext()),
	}
	u := gatewaytest.NewUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if chance(4) > 0 {
			answer.ServeHTTP(w, r)
			return
		}
		ends[chance(len(ends))].ServeHTTP(w, r)
	}))
	client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(eagerAlias(candidate("cloud"))))
	failed := make(map[string]bool)
	for i := range calls {
		id := fmt.Sprintf("call-%d", i)
		_, err := client.Do(t.Context(), newRequest(t, `{"model":"chat-smart","user":"`+id+`"}`))
		if err != nil {
			if failed[id] = true; gateway.AsError(err).Outcome != gateway.OutcomeUnknown {
				t.Fatalf("%s: %v, want an unknown result", id, err)
			}
		}
		if chance(2) == 0 { // let the client see what the server has done, or not
			settled := func(t gatewaytest.Traffic) bool { return t.Running == 0 }
			if err := u.Await(t.Context(), settled); err != nil {
				t.Fatal(err)
			}
		}
	}
	executed := make(map[string]int)
	for _, r := range u.Requests() {
		var body struct {
			User string `json:"user"`
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		executed[body.User]++
	}
	for id, n := range executed {
		if n > 1 {
			t.Errorf("%s was executed %d times", id, n)
		}
	}
	if n := len(executed); n < calls-len(failed) {
		t.Errorf("%d calls executed and %d failed, of %d", n, len(failed), calls)
	}
	if len(failed) == 0 || len(failed) > calls/5 {
		t.Errorf("%d of %d calls failed", len(failed), calls)
	}
	t.Logf("%d connections, %d results unknown", u.Seen(), len(failed))
}

func TestConnectionsAreReused(t *testing.T) {
	const callers, each = 100, 100
	u := gatewaytest.NewUpstream(t)
	client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL(), func(c *openai.Config) { c.MaxConcurrency = callers })),
		gateway.WithAlias(eagerAlias(candidate("cloud"))))
	req := newRequest(t, chatBody)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range each {
				if _, err := client.Do(t.Context(), req); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	// net/http opens one more now and then while another is coming free.
	if u.Count() != callers*each || u.Seen() > 2*callers {
		t.Errorf("%d requests over %d connections", u.Count(), u.Seen())
	}
}

// The stream that reaches the caller does not depend on how the upstream's bytes were cut and padded.
func TestStreamsSurviveTheirFraming(t *testing.T) {
	t.Parallel()
	const text = "日本語 👩‍🚀 é\u2028<&>\\n"
	whole := gatewaytest.Stream("日本語 ", "👩‍🚀", " é\u2028<&>", "\\n").WithUsage(gateway.Usage{Input: 3, Output: 2})
	noise := strings.Repeat("\n", 5000) + strings.Repeat(":\n: x\n:y\n", 2000)
	piece := func(text string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}`
	}
	const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
	big := strings.Repeat("0123456789", 900_000)
	tests := []struct {
		name string
		step http.Handler
		text string
	}{
		{"as it should be", whole, text},
		{"a byte at a time", gatewaytest.Fragment(1, whole), text},
		{"random cuts", gatewaytest.FragmentRandomly(7, whole), text},
		{"no [DONE]", whole.WithDone(0), text},
		{"two [DONE]", whole.WithDone(2), text},
		{"no blank line at the end", gatewaytest.Text(piece("a"), "\n\n", end, "\n"), "a"},
		{"no line end at the end", gatewaytest.Text(piece("a"), "\n\n", end), "a"},
		{"CRLF", gatewaytest.Fragment(1, gatewaytest.Text(piece("a")+"\r\n\r\n"+end+"\r\n\r\n")), "a"},
		{"CR", gatewaytest.Fragment(1, gatewaytest.Text(piece("a")+"\r\r"+end+"\r\r")), "a"},
		{"byte order mark", gatewaytest.Fragment(1, gatewaytest.Text("\uFEFF"+piece("a")+"\n\n"+end+"\n\n")), "a"},
		{"blank lines and comments", gatewaytest.Text(noise, piece("a")+"\n:inside\n\n", noise, end, "\n\n", noise), "a"},
		{"keep-alives in the clothes of data", gatewaytest.Text("data: : keepalive\n\n", "data:\n\n", "event: ping\n\n",
			piece("a")+"\n\n", "data: \n\n", "event: ping\n\n", end+"\n\n"), "a"},
		{"retry and id", gatewaytest.Text("retry: 10\nid: 7\n"+piece("a")+"\n\n", "retry: 10\n\n", end+"\n\n"), "a"},
		{"several events and a half in one read", gatewaytest.Text(piece("a")+"\n\n"+piece("b")+"\n\n"+piece("c")[:20], piece("c")[20:]+"\n\n"+end+"\n\n"), "abc"},
		{"an event of 9 million bytes", gatewaytest.Text(piece(big)+"\n\n", end+"\n\n"), big},
		{"no space after the colon", gatewaytest.Text(strings.Replace(piece("a"), "data: ", "data:", 1) + "\n\n" + end + "\n\n"), "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			u := gatewaytest.NewUpstream(t, test.step)
			client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(eagerAlias(candidate("cloud"))))
			res, err := client.Do(t.Context(), newRequest(t, streamBody))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := read(res.Stream)
			if err != nil || got != test.text {
				t.Errorf("%d bytes of text, %v; want %d", len(got), err, len(test.text))
			}
			if u.Count() != 1 {
				t.Errorf("the upstream saw %d requests", u.Count())
			}
			r := res.Record
			if r.Outcome != gateway.OutcomeSuccess || r.Usage != (gateway.Usage{Input: 3, Output: 2}) || r.FirstToken == 0 {
				t.Errorf("record: %v, usage %+v, first token after %v", r.Outcome, r.Usage, r.FirstToken)
			}
			if _, err := res.Stream.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// What reaches the upstream is the caller's document, with the alias's own model in the place of its name.
func TestUpstreamGetsTheCallersDocument(t *testing.T) {
	u := gatewaytest.NewUpstream(t)
	client := newClient(t, gateway.WithProvider(openCloud(t, "cloud", u.URL())), gateway.WithAlias(eagerAlias(candidate("cloud"))))
	const body = ` {"x":9007199254740993, "model" : "chat-smart","messages":[{"content":"\u2028<>&","model":"chat-smart"}],"y":1e400,"z":null}`
	if _, err := client.Do(t.Context(), newRequest(t, body)); err != nil {
		t.Fatal(err)
	}
	r := u.Requests()[0]
	if diff := cmp.Diff(strings.Replace(body, `: "chat-smart",`, `: "real-model",`, 1), string(r.Body)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if r.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer sk-first" {
		t.Errorf("request to %s with %v", r.Path, r.Header)
	}
}
