package openaihttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/examples/openaihttp"
	"github.com/gatewright/gateway/gatewaytest"
)

func events(data ...string) gateway.Handler {
	return gateway.HandlerFunc(func(context.Context, *gateway.Request) (*gateway.Response, error) {
		list := make([]gateway.Event, len(data))
		for i, d := range data {
			list[i] = gateway.Event{Data: d, Output: true, Finished: i == len(data)-1, Type: "ignored"}
		}
		return &gateway.Response{Stream: gateway.NewStream(gateway.EventSlice(list...))}, nil
	})
}

func TestStreamFraming(t *testing.T) {
	a := newAPI(t, nil, events(`{"a":"<&>"}`, "{\n\"b\":\r\n1}", `{"c":"日本語"}`))
	got := a.do(t, "POST", chatPath, streamBody, "Accept-Encoding", "gzip")
	want := "data: {\"a\":\"<&>\"}\n\ndata: { \"b\":  1}\n\ndata: {\"c\":\"日本語\"}\n\ndata: [DONE]\n\n"
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Content-Length": "",
		"Content-Encoding": "", "X-Gateway-Provider": "cloud", "X-Gateway-Attempts": "1",
	} {
		if got.header.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.header.Get(name), value)
		}
	}
}

func TestStreamThatBreaksEndsInAnErrorEvent(t *testing.T) {
	failure := &gateway.Error{
		Kind: gateway.ErrInterrupted, Status: 502, Code: "upstream_stream_truncated", Message: "cut", Outcome: gateway.OutcomeInterrupted,
	}
	a := newAPI(t, nil, gatewaytest.Stream("one", "two").ThenFail(failure))
	got := a.do(t, "POST", chatPath, streamBody)
	last := got.body[strings.LastIndex(strings.TrimSpace(got.body), "\n\n")+2:]
	want := `data: {"error":{"message":"cut","type":"upstream_error","param":null,"code":"upstream_stream_truncated"}}` + "\n\n"
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("last event (-want +got):\n%s", diff)
	}
	if strings.Contains(got.body, "[DONE]") {
		t.Error("a broken stream ends with [DONE]")
	}
	if got.trailer.Get("X-Gateway-Outcome") != "interrupted" {
		t.Errorf("trailer %v", got.trailer)
	}
}

func TestStreamPanicCutsTheConnection(t *testing.T) {
	a := newAPI(t, nil, gatewaytest.Stream("one", "two").ThenPanic("boom"))
	got := a.do(t, "POST", chatPath, streamBody)
	if !strings.Contains(got.body, `"code":"internal_error"`) || strings.Contains(got.body, "[DONE]") {
		t.Errorf("body %s, want an error event and no [DONE]", got.body)
	}
}

// An event is at the caller before the next one exists, and a caller that leaves stops the upstream.
func TestEventsArriveAtOnceAndLeavingCancels(t *testing.T) {
	a := newAPI(t, nil, gatewaytest.Stream("one", "two").ThenHang())
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", a.URL+chatPath, strings.NewReader(streamBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer user-key")
	res, err := a.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for seen := 0; seen < 2 && lines.Scan(); {
		if strings.Contains(lines.Text(), `"content":"one"`) || strings.Contains(lines.Text(), `"content":"two"`) {
			seen++
		}
	}
	cancel()
	if r := <-a.records; r.Outcome != gateway.OutcomeCanceled || r.UsageSource != gateway.UsageEstimated {
		t.Errorf("outcome %s with usage %s, want canceled, estimated", r.Outcome, r.UsageSource)
	}
	if strings.Contains(a.log.String(), "level=ERROR") {
		t.Errorf("a caller's leaving is logged as an error:\n%s", a.log)
	}
}

func TestLeavingAPlainCallCancels(t *testing.T) {
	a := newAPI(t, nil, gatewaytest.Hang())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, "POST", a.URL+chatPath, strings.NewReader(chatBody))
		if err == nil {
			req.Header.Set("Authorization", "Bearer user-key")
			_, err = a.Client().Do(req)
		}
		done <- err
	}()
	if err := a.provider.Await(t.Context(), 1, 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller's error: %v", err)
	}
	if r := <-a.records; r.Outcome != gateway.OutcomeCanceled || r.Status != 499 {
		t.Errorf("outcome %s with status %d, want canceled with 499", r.Outcome, r.Status)
	}
}

// pipeServer serves a handler over in-memory connections, for tests of time in a synctest bubble.
func pipeServer(t *testing.T, handler http.Handler) (dial func() net.Conn) {
	t.Helper()
	conns := make(chan net.Conn)
	l := &pipeListener{conns: conns, done: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return func() net.Conn {
		ours, theirs := net.Pipe()
		conns <- theirs
		return ours
	}
}

type pipeListener struct {
	conns  chan net.Conn
	done   chan struct{}
	closed atomic.Bool
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	if !l.closed.Swap(true) {
		close(l.done)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// timed is a gateway whose one upstream is a function, behind an in-memory server.
func timed(t *testing.T, do gateway.HandlerFunc, options ...openaihttp.Option) (dial func() net.Conn, records chan *gateway.Record) {
	t.Helper()
	records = make(chan *gateway.Record, 10)
	client, err := gateway.New(
		gateway.WithProvider(gateway.NewProvider("cloud", do)),
		gateway.WithAlias(gateway.Alias{Name: "m", Candidates: []gateway.Candidate{{Provider: "cloud", Model: "m"}}, Retry: gateway.DefaultRetryPolicy{}}),
		gateway.WithRecorder(gateway.RecorderFunc(func(_ context.Context, r *gateway.Record) { records <- r })))
	if err != nil {
		t.Fatal(err)
	}
	return pipeServer(t, openaihttp.New(client, append(options, openaihttp.WithoutAuth())...)), records
}

func post(t *testing.T, c net.Conn, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", chatPath, len(body), body); err != nil {
		t.Fatal(err)
	}
}

// slow yields n events, one each interval.
type slow struct {
	ctx      context.Context
	n        int
	interval time.Duration
	size     int
}

func (s *slow) Next() (gateway.Event, error) {
	if s.n == 0 {
		return gateway.Event{}, io.EOF
	}
	select {
	case <-time.After(s.interval):
	case <-s.ctx.Done():
		return gateway.Event{}, s.ctx.Err()
	}
	s.n--
	return gateway.Event{Data: `{"x":"` + strings.Repeat("x", s.size) + `"}`, Output: true, Finished: s.n == 0}, nil
}

func (*slow) Close() error { return nil }

func slowly(n int, interval time.Duration, size int) gateway.HandlerFunc {
	return func(ctx context.Context, _ *gateway.Request) (*gateway.Response, error) {
		return &gateway.Response{Stream: gateway.NewStream(&slow{ctx, n, interval, size})}, nil
	}
}

func TestReaderThatStallsIsDroppedAndASlowOneIsNot(t *testing.T) {
	const stall = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		dial, records := timed(t, slowly(1000, time.Second, 1000), openaihttp.WithWriteStall(stall))
		stalled := dial()
		defer stalled.Close()
		post(t, stalled, `{"model":"m","stream":true}`)
		began := time.Now()
		r := <-records
		if waited := time.Since(began); r.Outcome != gateway.OutcomeCanceled || waited < stall || waited > stall+3*time.Second {
			t.Errorf("a reader that takes nothing: %s after %v, want canceled after about %v", r.Outcome, waited, stall)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// One event of 100 KB, of which the reader takes at most 8 KB each 3 s: longer in all than the write stall, never silent.
		dial, records := timed(t, slowly(1, 0, 100<<10), openaihttp.WithWriteStall(stall))
		c := dial()
		defer c.Close()
		post(t, c, `{"model":"m","stream":true}`)
		got := 0
		for buf := make([]byte, 8<<10); got < 100<<10; {
			n, err := c.Read(buf)
			if got += n; err != nil {
				break
			}
			<-time.After(3 * time.Second)
		}
		go func() { _, _ = io.Copy(io.Discard, c) }()
		if r := <-records; r.Outcome != gateway.OutcomeSuccess || got < 100<<10 {
			t.Errorf("a slow reader got %d bytes and the call was %s, want all and success", got, r.Outcome)
		}
	})
}

func TestLongStreamOutlivesEveryDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, records := timed(t, slowly(300, time.Second, 10), openaihttp.WithWriteStall(2*time.Second), openaihttp.WithBodyTimeout(2*time.Second))
		c := dial()
		defer c.Close()
		post(t, c, `{"model":"m","stream":true}`)
		go func() { _, _ = io.Copy(io.Discard, c) }()
		if r := <-records; r.Outcome != gateway.OutcomeSuccess || r.Latency != 300*time.Second {
			t.Errorf("%s after %v, want success after 300 s", r.Outcome, r.Latency)
		}
	})
}

func TestKeepAlive(t *testing.T) {
	tests := []struct {
		name string
		do   gateway.HandlerFunc
		want string // after the keep-alive lines
	}{
		{"answer after 5.5 s", slowly(1, 5500*time.Millisecond, 1), "data: {\"x\":\"x\"}\n\ndata: [DONE]\n\n"},
		{"failure after 5.5 s", func(context.Context, *gateway.Request) (*gateway.Response, error) {
			<-time.After(5500 * time.Millisecond)
			return nil, &gateway.Error{Kind: gateway.ErrUpstream, Status: 502, Code: "c", Message: "m", Outcome: gateway.OutcomeRejected}
		}, `data: {"error":{"message":"m","type":"upstream_error","param":null,"code":"c"}}` + "\n\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial, records := timed(t, test.do, openaihttp.WithKeepAlive(time.Second))
				c := dial()
				defer c.Close()
				post(t, c, `{"model":"m","stream":true}`)
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.Repeat(": keep-alive\n\n", 5)+test.want, string(body)); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
				if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Gateway-Trace-ID") == "" {
					t.Errorf("status %d, header %v", res.StatusCode, res.Header)
				}
				if r := <-records; r.TraceID != res.Header.Get("X-Gateway-Trace-ID") {
					t.Errorf("trace id %s in the record, %s in the header", r.TraceID, res.Header.Get("X-Gateway-Trace-ID"))
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		// A failure before the first beat still has its status.
		dial, _ := timed(t, func(context.Context, *gateway.Request) (*gateway.Response, error) {
			return nil, &gateway.Error{Kind: gateway.ErrUpstream, Status: 502, Code: "c", Message: "m", Outcome: gateway.OutcomeRejected}
		}, openaihttp.WithKeepAlive(time.Second))
		c := dial()
		defer c.Close()
		post(t, c, `{"model":"m","stream":true}`)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 502 {
			t.Errorf("status %d, want 502", res.StatusCode)
		}
	})
}

func TestBodyThatDripsIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, _ := timed(t, slowly(1, 0, 1), openaihttp.WithBodyTimeout(5*time.Second))
		c := dial()
		defer c.Close()
		began := time.Now()
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{", chatPath); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusRequestTimeout || time.Since(began) > 11*time.Second {
			t.Errorf("status %d after %v, want 408 after about 5 s", res.StatusCode, time.Since(began))
		}
	})
}

func TestConnectionIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, records := timed(t, slowly(2, time.Second, 10), openaihttp.WithWriteStall(5*time.Second), openaihttp.WithBodyTimeout(5*time.Second))
		c := dial()
		defer c.Close()
		in := bufio.NewReader(c)
		for range 3 {
			post(t, c, `{"model":"m","stream":true}`)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			<-records
			<-time.After(30 * time.Second) // longer than any deadline
		}
	})
}
