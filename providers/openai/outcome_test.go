package openai_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/internal/leakcheck"
	"github.com/gatewright/gateway/providers/openai"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const plainAnswer = `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`

// quick are timeouts for servers that hang.
var quick = openai.Timeouts{FirstByte: 100 * time.Millisecond, Idle: 100 * time.Millisecond}

func newProvider(t *testing.T, config openai.Config) *openai.Provider {
	t.Helper()
	if config.Name == "" {
		config.Name = "up"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := openai.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func chat(t *testing.T, body string) *gateway.Request {
	t.Helper()
	req, err := gateway.NewRequest(gateway.APIChat, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func plainRequest(t *testing.T) *gateway.Request {
	t.Helper()
	return chat(t, `{"model":"m","messages":[]}`)
}

func streamRequest(t *testing.T) *gateway.Request {
	t.Helper()
	return chat(t, `{"model":"m","stream":true,"messages":[]}`)
}

func failureOf(t *testing.T, err error) *gateway.Error {
	t.Helper()
	var e *gateway.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *gateway.Error", err)
	}
	return e
}

// rawServer accepts connections and hands each to f, with its number from 1.
func rawServer(t *testing.T, f func(n int, c net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for n := 1; ; n++ {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer c.Close()
				f(n, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		wait.Wait()
	})
	return "http://" + listener.Addr().String()
}

func readRequest(c net.Conn) error {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// hang waits until the other side closes the connection.
func hang(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func TestOutcomes(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	large := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 16<<20) + `"}]}`

	tests := []struct {
		name    string
		base    string
		server  func(c net.Conn, reached *atomic.Int32)
		body    string
		outcome gateway.Outcome
		status  int
		code    string
		kind    error
		says    string
		reached int32 // how many whole requests the upstream has read
	}{
		{
			name: "refused", base: "http://" + closed.Addr().String(),
			outcome: gateway.OutcomeNotSent, status: 502, code: "upstream_unreachable", kind: gateway.ErrUpstream,
			says: "refused the connection",
		},
		{
			name: "no such host", base: "http://no-such-host.invalid",
			outcome: gateway.OutcomeNotSent, status: 502, code: "upstream_unreachable", kind: gateway.ErrUpstream,
		},
		{
			name: "TLS to a server without", base: "https",
			server:  func(c net.Conn, _ *atomic.Int32) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") },
			outcome: gateway.OutcomeNotSent, status: 502, code: "upstream_unreachable", kind: gateway.ErrUpstream, says: "TLS",
		},
		{
			name: "reset before the body was read", body: large,
			server: func(c net.Conn, _ *atomic.Int32) {
				_, _ = io.ReadFull(c, make([]byte, 100))
				reset(c)
			},
			outcome: gateway.OutcomeNotSent, status: 502, code: "upstream_unreachable", kind: gateway.ErrUpstream,
		},
		{
			name: "hangs while the body is sent", body: large,
			server:  func(c net.Conn, _ *atomic.Int32) { <-time.After(300 * time.Millisecond) },
			outcome: gateway.OutcomeNotSent, status: 504, code: "upstream_timeout", kind: gateway.ErrUpstreamTimeout,
			says: "did not take the request in time",
		},
		{
			name: "reset after the body was read",
			server: func(c net.Conn, reached *atomic.Int32) {
				if readRequest(c) == nil {
					reached.Add(1)
				}
				reset(c)
			},
			outcome: gateway.OutcomeUnknown, status: 502, code: "upstream_connection_lost", kind: gateway.ErrUpstream,
			says: "result unknown, not retried", reached: 1,
		},
		{
			name: "closed after the body was read",
			server: func(c net.Conn, reached *atomic.Int32) {
				if readRequest(c) == nil {
					reached.Add(1)
				}
			},
			outcome: gateway.OutcomeUnknown, status: 502, code: "upstream_connection_lost", kind: gateway.ErrUpstream, reached: 1,
		},
		{
			name: "hangs before headers",
			server: func(c net.Conn, reached *atomic.Int32) {
				if readRequest(c) == nil {
					reached.Add(1)
				}
				hang(c)
			},
			outcome: gateway.OutcomeUnknown, status: 504, code: "upstream_timeout", kind: gateway.ErrUpstreamTimeout,
			says: "the upstream did not answer in time: result unknown, not retried", reached: 1,
		},
		{
			name: "hangs in the body",
			server: func(c net.Conn, reached *atomic.Int32) {
				if readRequest(c) == nil {
					reached.Add(1)
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":")
				hang(c)
			},
			outcome: gateway.OutcomeUnknown, status: 504, code: "upstream_timeout", kind: gateway.ErrUpstreamTimeout, reached: 1,
		},
		{
			name: "breaks off in the body",
			server: func(c net.Conn, reached *atomic.Int32) {
				if readRequest(c) == nil {
					reached.Add(1)
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":")
			},
			outcome: gateway.OutcomeUnknown, status: 502, code: "upstream_connection_lost", kind: gateway.ErrUpstream, reached: 1,
		},
		{
			name: "no HTTP",
			server: func(c net.Conn, reached *atomic.Int32) {
				if readRequest(c) == nil {
					reached.Add(1)
				}
				_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9\r\n")
			},
			outcome: gateway.OutcomeUnknown, status: 502, code: "upstream_connection_lost", kind: gateway.ErrUpstream, reached: 1,
		},
		{
			name: "200 that is no JSON",
			server: func(c net.Conn, reached *atomic.Int32) {
				if readRequest(c) == nil {
					reached.Add(1)
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>hi</html>")
			},
			outcome: gateway.OutcomeUnknown, status: 502, code: "upstream_invalid_response", kind: gateway.ErrUpstream,
			says: "HTML", reached: 1,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var reached atomic.Int32
			base := test.base
			if test.server != nil {
				address := rawServer(t, func(_ int, c net.Conn) { test.server(c, &reached) })
				if base = address; test.base == "https" {
					base = strings.Replace(address, "http:", "https:", 1)
				}
			}
			p := newProvider(t, openai.Config{BaseURL: base, Timeouts: quick, Keys: []gateway.Secret{gateway.NewSecret("sk-canary")}})
			req := plainRequest(t)
			if test.body != "" {
				req = chat(t, test.body)
			}
			res, err := p.Do(t.Context(), req)
			if res != nil {
				t.Fatal("there is a response")
			}
			e := failureOf(t, err)
			if e.Outcome != test.outcome || e.Status != test.status || e.Code != test.code || !errors.Is(e, test.kind) {
				t.Errorf("got %s %d %s %v: %v", e.Outcome, e.Status, e.Code, e.Kind, e)
			}
			if !strings.Contains(e.Message, test.says) {
				t.Errorf("message %q, want %q", e.Message, test.says)
			}
			if strings.Contains(e.Message, "127.0.0.1") || strings.Contains(e.Error(), "canary") {
				t.Errorf("%v shows too much", e)
			}
			if e.Provider != "up" || e.Model != "m" || e.KeyFingerprint == "" {
				t.Errorf("it does not say who failed: %+v", e)
			}
			if n := reached.Load(); n != test.reached {
				t.Errorf("the upstream saw %d requests, want %d", n, test.reached)
			}
		})
	}
}

// TestDeadIdleConnections has an upstream that closes connections after each answer without saying so.
func TestDeadIdleConnections(t *testing.T) {
	var executed atomic.Int32
	base := rawServer(t, func(n int, c net.Conn) {
		r := bufio.NewReader(c)
		for range 1 + n%3 {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			executed.Add(1)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	p := newProvider(t, openai.Config{BaseURL: base})
	req := plainRequest(t)
	req.Header = http.Header{"Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"}}
	var answered, unknown int32
	for range 2000 {
		_, err := p.Do(t.Context(), req)
		if err == nil {
			answered++
			continue
		}
		if e := failureOf(t, err); e.Outcome != gateway.OutcomeUnknown {
			t.Fatal(e)
		}
		unknown++
	}
	if n := executed.Load(); n < answered || n > answered+unknown {
		t.Errorf("%d answered and %d unknown, but %d executed", answered, unknown, n)
	}
	t.Logf("%d answered, %d unknown", answered, unknown)
}

// TestNoSilentResend closes a reused connection after the request was read: the case in which net/http resends a
// request that it takes for idempotent.
func TestNoSilentResend(t *testing.T) {
	var executed atomic.Int32
	base := rawServer(t, func(n int, c net.Conn) {
		r := bufio.NewReader(c)
		for i := 0; ; i++ {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if i > 0 || n > 1 {
				executed.Add(1)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	// The configured header is the only way to get such a key on the request.
	p := newProvider(t, openai.Config{BaseURL: base, Header: http.Header{"Idempotency-Key": {"k"}}})
	if _, err := p.Do(t.Context(), plainRequest(t)); err != nil {
		t.Fatal(err)
	}
	_, err := p.Do(t.Context(), plainRequest(t))
	if e := failureOf(t, err); e.Outcome != gateway.OutcomeUnknown {
		t.Error(e)
	}
	if n := executed.Load(); n != 1 {
		t.Errorf("executed %d times", n)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		p := newProvider(t, openai.Config{BaseURL: server.URL, Keys: []gateway.Secret{gateway.NewSecret("k")}})
		_, err := p.Do(t.Context(), plainRequest(t))
		if e := failureOf(t, err); e.Outcome != gateway.OutcomeRejected || e.Status != 502 || !strings.Contains(e.Message, "redirect") {
			t.Errorf("%d: %v", status, e)
		}
	}
}

func TestProxy(t *testing.T) {
	var asked atomic.Pointer[string]
	status := http.StatusOK
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		line := r.Method + " " + r.URL.String() + " " + r.Header.Get("Proxy-Authorization")
		asked.Store(&line)
		if status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
		_, _ = io.WriteString(w, plainAnswer)
	})
	address, err := url.Parse(strings.Replace(proxy.URL, "http://", "http://user:pass-canary@", 1))
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, openai.Config{BaseURL: "http://upstream.test", Proxy: address})
	if _, err := p.Do(t.Context(), plainRequest(t)); err != nil {
		t.Fatal(err)
	}
	if line := *asked.Load(); line != "POST http://upstream.test/v1/chat/completions Basic dXNlcjpwYXNzLWNhbmFyeQ==" {
		t.Error(line)
	}
	for _, base := range []string{"http://upstream.test", "https://upstream.test"} {
		for status = range map[int]bool{407: true, 503: base[4] == 's'} {
			if status == 503 && base[4] != 's' {
				continue
			}
			p := newProvider(t, openai.Config{BaseURL: base, Proxy: address})
			_, err := p.Do(t.Context(), plainRequest(t))
			e := failureOf(t, err)
			if e.Outcome != gateway.OutcomeNotSent || !strings.Contains(e.Message, "proxy") ||
				status == 407 && !strings.Contains(e.Message, "407") {
				t.Errorf("%s %d: %v", base, status, e)
			}
			if strings.Contains(e.Error(), "canary") {
				t.Errorf("%v shows the password", e)
			}
		}
	}
	dead := *address
	dead.Host = "127.0.0.1:1"
	p = newProvider(t, openai.Config{BaseURL: "https://upstream.test", Proxy: &dead})
	_, err = p.Do(t.Context(), plainRequest(t))
	if e := failureOf(t, err); e.Outcome != gateway.OutcomeNotSent || !strings.Contains(e.Message, "proxy") || strings.Contains(e.Error(), "canary") {
		t.Error(e)
	}
}

func TestCallerLeaves(t *testing.T) {
	entered, left := make(chan bool, 1), make(chan bool, 1)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- true
		<-r.Context().Done()
		left <- true
	})
	p := newProvider(t, openai.Config{BaseURL: server.URL})
	for _, req := range []*gateway.Request{plainRequest(t), streamRequest(t)} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		_, err := p.Do(ctx, req)
		if e := failureOf(t, err); e.Outcome != gateway.OutcomeCanceled || e.Status != gateway.StatusClientClosedRequest {
			t.Error(e)
		}
		<-left
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.Do(ctx, plainRequest(t))
	if e := failureOf(t, err); e.Outcome != gateway.OutcomeCanceled || e.Status != 504 {
		t.Error(e)
	}
	<-entered
	<-left
}

func TestConnectionsAreReused(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			w.(http.Flusher).Flush()
			return
		}
		if bytes.Contains(body, []byte(`"fail"`)) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, plainAnswer)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p := newProvider(t, openai.Config{BaseURL: server.URL})
	requests := []*gateway.Request{plainRequest(t), streamRequest(t), chat(t, `{"model":"fail","messages":[]}`)}
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			for i := range 30 {
				res, err := p.Do(t.Context(), requests[i%3])
				if (err != nil) != (i%3 == 2) {
					t.Error(err)
				}
				if err != nil || res.Stream == nil {
					continue
				}
				for _, err := range res.Stream.All() {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wait.Wait()
	// At the start net/http dials for callers that are then given a connection which has become idle meanwhile.
	if n := opened.Load(); n > 100 {
		t.Errorf("50 callers opened %d connections", n)
	}
}
