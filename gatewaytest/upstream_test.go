package gatewaytest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
)

// client returns a client of u's and closes its connections with the test.
func client(t *testing.T, u *gatewaytest.Upstream) *http.Client {
	t.Helper()
	transport := u.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// answer is what a client sees of an answer, and how it ended.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of the round trip or of reading the body
}

func post(t *testing.T, c *http.Client, u *gatewaytest.Upstream, body string) answer {
	t.Helper()
	res, err := c.Post(u.URL()+"/v1/chat/completions?x=1", "application/json", strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text), err}
}

func TestUpstreamSpeaksOpenAI(t *testing.T) {
	usage := gateway.Usage{Input: 7, CacheRead: 3, Output: 4, Reasoning: 2}
	reply := gatewaytest.Stream("a", "b").WithID("ID").WithUsage(usage)
	open := func(more string) string { return "data: " + chunkHead + opening + more + "}\n\n" }
	text := func(text, more string) string { return "data: " + delta(text) + more + "}\n\n" }
	finish := func(more string) string {
		return "data: " + chunkHead + `{"index":0,"delta":{},"finish_reason":"stop"}]` + more + "}\n\n"
	}
	const done = "data: [DONE]\n\n"
	refusal := func(status, kind string) string {
		return `{"error":{"message":"` + status + `","type":"` + kind + `","param":null,"code":null}}`
	}
	failure := &gateway.Error{Kind: gateway.ErrUpstream, Status: 502, Message: "broke", Code: "broken"}
	failed := `{"error":{"message":"broke","type":"upstream_error","param":null,"code":"broken"}}`
	for _, test := range []struct {
		name   string
		step   http.Handler
		body   string
		status int
		want   string
	}{
		{"document", reply, plainBody, 200, `{"id":"ID","object":"chat.completion","created":1700000000,"model":"m","choices":[` +
			`{"index":0,"message":{"role":"assistant","content":"ab","refusal":null},"logprobs":null,"finish_reason":"stop"}],` +
			usageText + "}"},
		{"stream", reply, streamBody, 200, open("") + text("a", "") + text("b", "") + finish("") + done},
		{"stream with usage", reply, usageBody, 200, open(`,"usage":null`) + text("a", `,"usage":null`) +
			text("b", `,"usage":null`) + finish(`,"usage":null`) + "data: " + chunkHead + "]," + usageText + "}\n\n" + done},
		{"no [DONE]", reply.WithDone(0), streamBody, 200, open("") + text("a", "") + text("b", "") + finish("")},
		{"two [DONE]", reply.WithDone(2), streamBody, 200, open("") + text("a", "") + text("b", "") + finish("") + done + done},
		{"no finish", reply.WithFinish("").WithDone(0), streamBody, 200, open("") + text("a", "") + text("b", "")},
		{"failing stream", reply.ThenFail(failure), streamBody, 200, open("") + text("a", "") + text("b", "") + "data: " + failed + "\n\n"},
		{"failing document", reply.ThenFail(failure), plainBody, 502, failed},
		{"any document", gatewaytest.AnswerJSON(`{"any":1}`), streamBody, 200, `{"any":1}`},
		{"503", gatewaytest.Status(503), plainBody, 503, refusal("Service Unavailable", "server_error")},
		{"529", gatewaytest.Status(529), plainBody, 529, refusal("Status 529", "server_error")},
		{"429", gatewaytest.Status(429), streamBody, 429, refusal("Too Many Requests", "invalid_request_error")},
		{"a proxy's page", gatewaytest.Status(502).WithBody("text/html", "<html>"), plainBody, 502, "<html>"},
		{"nothing", gatewaytest.Status(504).WithBody("text/plain", ""), plainBody, 504, ""},
		{"pieces", gatewaytest.Sequence(gatewaytest.Comment("wait"), gatewaytest.Data("{\n}"), gatewaytest.Text("data:", "x\r\n\r\n"),
			gatewaytest.ErrorEvent("broke", "c"), gatewaytest.Done()), streamBody, 200, ": wait\n\ndata: {\ndata: }\n\ndata:x\r\n\r\n" +
			`data: {"error":{"message":"broke","type":"server_error","param":null,"code":"c"}}` + "\n\n" + done},
	} {
		u := gatewaytest.NewUpstream(t, test.step)
		got := post(t, client(t, u), u, test.body)
		if got.err != nil || got.status != test.status {
			t.Errorf("%s: status %d, %v; want %d", test.name, got.status, got.err, test.status)
		}
		if diff := cmp.Diff(test.want, got.body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if stream := strings.HasPrefix(test.want, "data:"); stream != strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") && test.name != "pieces" {
			t.Errorf("%s: Content-Type %s", test.name, got.header.Get("Content-Type"))
		}
	}
}

func TestUpstreamNotesWhatReachesIt(t *testing.T) {
	u := gatewaytest.NewUpstream(t, gatewaytest.Status(429).WithRetryAfter("2"), gatewaytest.Answer("hi").WithHeader("X-A", "b"))
	c := client(t, u)
	if got := post(t, c, u, plainBody); got.status != 429 || got.header.Get("Retry-After") != "2" {
		t.Errorf("first answer: %+v", got)
	}
	for range 2 {
		if got := post(t, c, u, plainBody); got.status != 200 || got.header.Get("X-A") != "b" {
			t.Errorf("further answer: %+v", got)
		}
	}
	if err := u.Await(t.Context(), func(t gatewaytest.Traffic) bool { return t.Running == 0 }); err != nil {
		t.Error(err)
	}
	want := gatewaytest.Traffic{Connections: 1, Open: 1, Begun: 3, Whole: 3}
	if diff := cmp.Diff(want, u.Traffic()); diff != "" || u.Count() != 3 || u.Seen() != 1 {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
	r := u.Requests()[2]
	if r.Method != http.MethodPost || r.Path != "/v1/chat/completions" || r.Query != "x=1" || string(r.Body) != plainBody ||
		r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("request: %+v", r)
	}
}

func TestBrokenConnections(t *testing.T) {
	big := plainBody + strings.Repeat(" ", 16<<20)
	events := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("data: ID" + string(rune('1'+i)) + "\n\n")
		}
		return b.String()
	}
	send := func(n int) http.Handler { return gatewaytest.Text(events(n)) }
	for _, test := range []struct {
		name  string
		step  http.Handler
		body  string
		text  string // what arrives
		err   error  // what then comes; nil: anything
		whole int    // requests that reached the upstream as a whole
	}{
		{"reset before a small body", gatewaytest.BeforeBody(gatewaytest.Reset()), plainBody, "", nil, 0},
		{"reset before a large body", gatewaytest.BeforeBody(gatewaytest.Reset()), big, "", nil, 0},
		{"reset after the body", gatewaytest.Reset(), plainBody, "", syscall.ECONNRESET, 1},
		{"end after the body", gatewaytest.HangUp(), plainBody, "", io.EOF, 1},
		{"panic", gatewaytest.Panic("boom"), plainBody, "", io.EOF, 1},
		{"events, then reset", gatewaytest.Sequence(send(3), gatewaytest.Reset()), plainBody, events(3), syscall.ECONNRESET, 1},
		{"events, then end", gatewaytest.Sequence(send(3), gatewaytest.HangUp()), plainBody, events(3), io.ErrUnexpectedEOF, 1},
		{"headers, then end", gatewaytest.Sequence(gatewaytest.Headers(200), gatewaytest.HangUp()), plainBody, "", io.ErrUnexpectedEOF, 1},
		{"raw", gatewaytest.Raw("HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n\r\n", "abc"), plainBody, "abc", io.ErrUnexpectedEOF, 1},
		{"not HTTP", gatewaytest.Raw("SSH-2.0\r\n\r\n"), plainBody, "", nil, 1},
	} {
		u := gatewaytest.NewUpstream(t, test.step)
		got := post(t, client(t, u), u, test.body)
		if got.err == nil || test.err != nil && !errors.Is(got.err, test.err) {
			t.Errorf("%s: the error is %v, want %v", test.name, got.err, test.err)
		}
		if got.body != test.text {
			t.Errorf("%s: got %q, want %q", test.name, got.body, test.text)
		}
		if u.Count() != test.whole {
			t.Errorf("%s: %d requests reached it, want %d", test.name, u.Count(), test.whole)
		}
		if err := u.Await(t.Context(), func(t gatewaytest.Traffic) bool { return t.Running == 0 }); err != nil {
			t.Error(err)
		}
		if n := u.Traffic().Canceled; n != 0 {
			t.Errorf("%s: %d callers left, want none", test.name, n)
		}
	}
}

func TestEventsCarryTheirNumber(t *testing.T) {
	u := gatewaytest.NewUpstream(t, gatewaytest.Sequence(gatewaytest.Opening(), gatewaytest.Events(2), gatewaytest.Deltas("x"),
		gatewaytest.Finish("length"), gatewaytest.Usage(gateway.Usage{Input: 1})))
	got := post(t, client(t, u), u, streamBody)
	for _, want := range []string{`"role":"assistant"`, `"content":"1 "`, `"content":"2 "`, `"content":"x"`, `"length"`, `"prompt_tokens":1`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in\n%s", want, got.body)
		}
	}
	ids := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(got.body), "\n\n") {
		id, _, _ := strings.Cut(line, ",")
		ids[id] = true
	}
	if len(ids) != 1 {
		t.Errorf("ids of one answer: %v", ids)
	}
}

func TestIdleConnectionsBreak(t *testing.T) {
	for name, end := range map[string]http.Handler{
		"closed": gatewaytest.HangUp(), "reset": gatewaytest.Reset(), "trap": gatewaytest.ResetNext(),
	} {
		u := gatewaytest.NewUpstream(t, gatewaytest.Sequence(gatewaytest.Answer("hi"), end), gatewaytest.Answer("again"))
		c := client(t, u)
		if got := post(t, c, u, plainBody); got.err != nil || !strings.Contains(got.body, `"hi"`) {
			t.Errorf("%s: the first answer is %+v", name, got)
		}
		if name != "trap" {
			// The client may notice at once, or only when it sends.
			if err := u.Await(t.Context(), func(t gatewaytest.Traffic) bool { return t.Open == 0 }); err != nil {
				t.Error(err)
			}
			continue
		}
		if got := post(t, c, u, plainBody); got.err == nil || u.Count() != 1 {
			t.Errorf("%s: the second answer is %+v; %d requests arrived", name, got, u.Count())
		}
		if got := post(t, c, u, plainBody); got.err != nil || !strings.Contains(got.body, `"again"`) || u.Seen() != 2 {
			t.Errorf("%s: the third answer is %+v, over %d connections", name, got, u.Seen())
		}
	}
}

func TestFragments(t *testing.T) {
	text := "data: 日本語 👩‍🚀 é\n\n"
	for name, step := range map[string]http.Handler{
		"1 byte":    gatewaytest.Fragment(1, gatewaytest.Text(text)),
		"2 bytes":   gatewaytest.Fragment(2, gatewaytest.Text(text)),
		"random":    gatewaytest.FragmentRandomly(1, gatewaytest.Text(text)),
		"hijacking": gatewaytest.Fragment(1, gatewaytest.Raw("HTTP/1.1 200 OK\r\n\r\n"+text)),
	} {
		u := gatewaytest.NewUpstream(t, step)
		if got := post(t, client(t, u), u, streamBody); got.body != text || got.err != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestCallersWhoLeave(t *testing.T) {
	for name, step := range map[string]http.Handler{
		"before headers": gatewaytest.Hang(),
		"after headers":  gatewaytest.Sequence(gatewaytest.Headers(200), gatewaytest.Hang()),
		"after events":   gatewaytest.Sequence(gatewaytest.Events(3), gatewaytest.Hang()),
		"held back":      gatewaytest.Answer("hi").After(make(chan struct{})),
		"waiting":        gatewaytest.Sequence(gatewaytest.WaitFor(make(chan struct{})), gatewaytest.Answer("hi")),
	} {
		u := gatewaytest.NewUpstream(t, step)
		c := client(t, u)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL(), strings.NewReader(plainBody))
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error)
		go func() {
			res, err := c.Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			result <- err
		}()
		if err := u.Await(t.Context(), func(t gatewaytest.Traffic) bool { return t.Whole == 1 }); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		<-u.Canceled()
		gone := func(t gatewaytest.Traffic) bool { return t.Open == 0 && t.Running == 0 && t.Canceled == 1 }
		if err := u.Await(t.Context(), gone); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHoldingBackWithAHook(t *testing.T) {
	release := make(chan struct{})
	u := gatewaytest.NewUpstream(t, gatewaytest.Sequence(gatewaytest.Data("1"), gatewaytest.WaitFor(release), gatewaytest.Data("2")))
	res, err := client(t, u).Post(u.URL(), "application/json", strings.NewReader(streamBody))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	close(release)
	rest, err := io.ReadAll(res.Body)
	if got := string(first) + string(rest); got != "data: 1\n\ndata: 2\n\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	u, err := gatewaytest.StartUpstream(gatewaytest.Hang())
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan answer)
	go func() { result <- post(t, client(t, u), u, plainBody) }()
	if err := u.Await(t.Context(), func(t gatewaytest.Traffic) bool { return t.Running == 1 }); err != nil {
		t.Fatal(err)
	}
	u.Close()
	u.Close()
	if got := <-result; got.err == nil && got.body != "" {
		t.Errorf("answer: %+v", got)
	}
	if n := u.Traffic().Canceled; n != 0 {
		t.Errorf("%d callers left: it was the upstream that closed", n)
	}
}

func TestRefusedPort(t *testing.T) {
	_, err := http.Post(gatewaytest.Refused(t), "application/json", strings.NewReader(plainBody))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error: %v", err)
	}
}

func TestPipeUpstreamRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := gatewaytest.NewPipeUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			timer := time.NewTimer(time.Hour)
			defer timer.Stop()
			<-timer.C
			gatewaytest.Answer("late").ServeHTTP(w, r)
		}), gatewaytest.Sequence(gatewaytest.Events(1), gatewaytest.Reset()))
		began := time.Now()
		c := client(t, u)
		if got := post(t, c, u, plainBody); got.err != nil || !strings.Contains(got.body, "late") || time.Since(began) != time.Hour {
			t.Errorf("after %v: %+v", time.Since(began), got)
		}
		if got := post(t, c, u, plainBody); got.err == nil || !strings.Contains(got.body, "1 ") {
			t.Errorf("second answer: %+v", got)
		}
		if u.Seen() != 1 || u.Count() != 2 {
			t.Errorf("%d requests over %d connections", u.Count(), u.Seen())
		}
	})
}
