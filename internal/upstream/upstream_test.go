package upstream_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/internal/leakcheck"
	"github.com/gatewright/gateway/internal/upstream"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func newRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// inMemory returns a transport whose connections are pipes to a server in a synctest bubble. serve is called for each.
func inMemory(t *testing.T, serve func(c net.Conn)) *http.Transport {
	t.Helper()
	transport := upstream.NewTransport(upstream.TransportOptions{Connect: 10 * time.Second})
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func readRequest(c net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := upstream.NewTransport(upstream.TransportOptions{})
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(time.Minute) // net/http does not end a dial with its request
			return nil, errors.New("too late")
		}
		client := upstream.Client{RoundTripper: transport, Timeouts: upstream.Timeouts{Connect: 10 * time.Second, FirstByte: 5 * time.Second}}
		began := time.Now()
		_, err := client.Do(t.Context(), newRequest(t, "http://upstream.test"), []byte("{}"), false)
		if err == nil || err.Code != "upstream_connect_timeout" || err.Outcome != gateway.OutcomeNotSent || err.Status != 504 {
			t.Errorf("%+v", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Minute) // until the dial is over
	})
}

func TestTLSHandshakeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := inMemory(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		client := upstream.Client{RoundTripper: transport, Timeouts: upstream.Timeouts{Connect: 10 * time.Second, FirstByte: time.Second}}
		_, err := client.Do(t.Context(), newRequest(t, "https://upstream.test"), []byte("{}"), false)
		if err == nil || err.Code != "upstream_connect_timeout" || err.Outcome != gateway.OutcomeNotSent {
			t.Errorf("%+v", err)
		}
	})
}

// TestTimeouts has a server that answers step by step, each after a pause.
func TestTimeouts(t *testing.T) {
	limits := upstream.Timeouts{Connect: 10 * time.Second, FirstByte: 120 * time.Second, Idle: 60 * time.Second}
	const head, chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n"
	type step struct {
		pause time.Duration
		send  string
	}
	for _, test := range []struct {
		name   string
		limits upstream.Timeouts
		steps  []step
		stream bool
		output int // how many bytes are the first output; 0: nothing is
		after  time.Duration
		code   string
		what   gateway.Outcome
	}{
		{name: "headers", limits: limits, after: 120 * time.Second, code: "upstream_timeout", what: gateway.OutcomeUnknown},
		{name: "plain body", limits: limits, steps: []step{{100 * time.Second, head}, {50 * time.Second, chunk}}, after: 210 * time.Second, code: "upstream_timeout", what: gateway.OutcomeUnknown},
		{name: "slow body", limits: limits, steps: []step{{0, head}, {59 * time.Second, chunk}, {59 * time.Second, chunk}, {59 * time.Second, "0\r\n\r\n"}}, after: 177 * time.Second},
		{name: "no output", limits: limits, stream: true, steps: []step{{0, head}, {50 * time.Second, chunk}, {50 * time.Second, chunk}}, after: 120 * time.Second, code: "upstream_timeout", what: gateway.OutcomeUnknown},
		{name: "silence", limits: limits, stream: true, output: 3, steps: []step{{0, head}, {10 * time.Second, chunk}, {50 * time.Second, chunk}}, after: 120 * time.Second, code: "upstream_idle_timeout", what: gateway.OutcomeInterrupted},
		{name: "total", limits: upstream.Timeouts{Total: 100 * time.Second, Idle: 60 * time.Second}, stream: true, output: 3, steps: []step{{0, head}, {40 * time.Second, chunk}, {40 * time.Second, chunk}}, after: 100 * time.Second, code: "upstream_total_timeout", what: gateway.OutcomeInterrupted},
		{name: "total before headers", limits: upstream.Timeouts{Total: 100 * time.Second}, after: 100 * time.Second, code: "upstream_total_timeout", what: gateway.OutcomeUnknown},
		{name: "none", steps: []step{{time.Hour, head}, {time.Hour, "0\r\n\r\n"}}, after: 2 * time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := inMemory(t, func(c net.Conn) {
					readRequest(c)
					for _, s := range test.steps {
						time.Sleep(s.pause)
						if _, err := io.WriteString(c, s.send); err != nil {
							return
						}
					}
					_, _ = io.Copy(io.Discard, c)
				})
				client := upstream.Client{RoundTripper: transport, Timeouts: test.limits}
				began := time.Now()
				answer, failure := client.Do(t.Context(), newRequest(t, "http://upstream.test"), []byte("{}"), test.stream)
				if failure == nil {
					defer answer.Close()
					buf := make([]byte, 100)
					for got := 0; ; {
						n, err := answer.Read(buf)
						if got += n; test.output > 0 && got >= test.output {
							answer.Output()
						}
						if errors.Is(err, io.EOF) {
							break
						}
						if err != nil {
							failure = answer.Failure(err)
							break
						}
					}
				}
				if took := time.Since(began); took != test.after {
					t.Errorf("after %v, want %v", took, test.after)
				}
				switch {
				case test.code == "" && failure == nil:
				case failure == nil || failure.Code != test.code || failure.Outcome != test.what || failure.Status != 504:
					t.Errorf("%+v", failure)
				case test.code == "upstream_timeout" && failure.Message != "the upstream did not answer in time: result unknown, not retried":
					t.Error(failure.Message)
				}
			})
		})
	}
}

func TestCallerLeaves(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan bool)
			transport := inMemory(t, func(c net.Conn) {
				readRequest(c)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
				_, _ = io.Copy(io.Discard, c)
				close(gone)
			})
			client := upstream.Client{RoundTripper: transport}
			ctx, cancel := context.WithCancel(t.Context())
			answer, failure := client.Do(ctx, newRequest(t, "http://upstream.test"), []byte("{}"), stream)
			if failure != nil {
				t.Fatal(failure)
			}
			defer answer.Close()
			time.AfterFunc(time.Second, cancel)
			_, err := io.ReadAll(answer)
			if failure := answer.Failure(err); failure.Outcome != gateway.OutcomeCanceled || failure.Status != gateway.StatusClientClosedRequest {
				t.Errorf("%+v", failure)
			}
			<-gone
		})
	}
}

// roundTripper is a user's own: it knows nothing of traces and connections.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestForeignRoundTripper(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name string
		read int64
		want gateway.Outcome
	}{{"nothing read", 0, gateway.OutcomeNotSent}, {"half read", 5, gateway.OutcomeNotSent}, {"all read", 10, gateway.OutcomeUnknown}} {
		client := upstream.Client{RoundTripper: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.GetBody != nil {
				t.Error("the body can be read twice")
			}
			_, _ = io.CopyN(io.Discard, r.Body, test.read)
			return nil, boom
		})}
		_, err := client.Do(t.Context(), newRequest(t, "http://user:canary@upstream.test/?key=canary"), []byte("0123456789"), false)
		if err == nil || err.Outcome != test.want || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %+v", test.name, err)
		}
	}
	// An error of an http.Client's, which shows the URL.
	client := upstream.Client{RoundTripper: roundTripper(func(r *http.Request) (*http.Response, error) {
		other := r.Clone(r.Context())
		other.RequestURI, other.URL.Host = "", "127.0.0.1:1"
		return (&http.Client{}).Do(other)
	})}
	_, err := client.Do(t.Context(), newRequest(t, "http://upstream.test/?key=canary"), []byte("x"), false)
	if err == nil || err.Outcome != gateway.OutcomeNotSent || strings.Contains(err.Error(), "canary") {
		t.Errorf("%+v", err)
	}
}

func TestMalformedProxyOfTheEnvironment(t *testing.T) {
	transport := upstream.NewTransport(upstream.TransportOptions{})
	if transport.Proxy == nil {
		t.Error("the environment's proxy is not used")
	}
	if transport.IdleConnTimeout >= time.Minute || transport.MaxIdleConnsPerHost < 100 || !transport.ForceAttemptHTTP2 {
		t.Errorf("%+v", transport)
	}
	if idle := upstream.NewTransport(upstream.TransportOptions{MaxConcurrency: 1000}).MaxIdleConnsPerHost; idle != 1000 {
		t.Error(idle)
	}
}

// TestHTTP2 has a server that resets the stream, or says goodbye, after it has read the request.
func TestHTTP2(t *testing.T) {
	const goAway, rstStream = 0x7, 0x3
	const refusedStream, protocolError, internalError = 0x7, 0x1, 0x2
	for _, test := range []struct {
		name  string
		reply []byte
		want  gateway.Outcome
	}{
		{"refused stream", frame(rstStream, 1, binary.BigEndian.AppendUint32(nil, refusedStream)), gateway.OutcomeNotSent},
		{"goodbye without having processed it", frame(goAway, 0, make([]byte, 8)), gateway.OutcomeNotSent},
		{"internal error", frame(rstStream, 1, binary.BigEndian.AppendUint32(nil, internalError)), gateway.OutcomeUnknown},
		{"protocol error", frame(rstStream, 1, binary.BigEndian.AppendUint32(nil, protocolError)), gateway.OutcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			certificate := httptest.NewUnstartedServer(nil)
			certificate.StartTLS()
			defer certificate.Close()
			listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
				Certificates: certificate.TLS.Certificates, NextProtos: []string{"h2"},
			})
			if err != nil {
				t.Fatal(err)
			}
			var requests atomic.Int32
			var wait sync.WaitGroup
			wait.Go(func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					wait.Go(func() {
						defer c.Close()
						serveHTTP2(c, &requests, test.reply)
					})
				}
			})
			transport := upstream.NewTransport(upstream.TransportOptions{Connect: 5 * time.Second})
			transport.TLSClientConfig = certificate.Client().Transport.(*http.Transport).TLSClientConfig
			transport.TLSClientConfig.ServerName = "example.com"
			client := upstream.Client{RoundTripper: transport, Timeouts: upstream.Timeouts{FirstByte: 5 * time.Second}}
			_, failure := client.Do(t.Context(), newRequest(t, "https://"+listener.Addr().String()), []byte(`{"a":1}`), false)
			if failure == nil || failure.Outcome != test.want {
				t.Errorf("%+v", failure)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("the upstream saw %d requests", n)
			}
			transport.CloseIdleConnections()
			_ = listener.Close()
			wait.Wait()
		})
	}
}

func frame(kind byte, stream uint32, payload []byte) []byte {
	out := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, 0}
	return append(binary.BigEndian.AppendUint32(out, stream), payload...)
}

// serveHTTP2 reads frames until a request has ended, counts it and replies.
func serveHTTP2(c net.Conn, requests *atomic.Int32, reply []byte) {
	r := bufio.NewReader(c)
	_, _ = io.ReadFull(r, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	_, _ = c.Write(frame(0x4, 0, nil)) // SETTINGS
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, r, size); err != nil {
			return
		}
		const data, headers, endStream = 0x0, 0x1, 0x1
		if kind := head[3]; (kind == data || kind == headers) && head[4]&endStream != 0 {
			requests.Add(1)
			_, _ = c.Write(reply)
		}
	}
}

func TestFinishKeepsTheConnection(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, "content")
		w.(http.Flusher).Flush() // the end comes a little later
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	transport := upstream.NewTransport(upstream.TransportOptions{})
	defer transport.CloseIdleConnections()
	client := upstream.Client{RoundTripper: transport}
	for range 20 {
		answer, failure := client.Do(t.Context(), newRequest(t, server.URL), []byte("{}"), true)
		if failure != nil {
			t.Fatal(failure)
		}
		if _, err := io.ReadFull(answer, make([]byte, 7)); err != nil {
			t.Fatal(err)
		}
		_ = answer.Finish()
		_ = answer.Close()
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestFinishDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := inMemory(t, func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
			_, _ = io.Copy(io.Discard, c)
		})
		client := upstream.Client{RoundTripper: transport}
		answer, failure := client.Do(t.Context(), newRequest(t, "http://upstream.test"), []byte("{}"), true)
		if failure != nil {
			t.Fatal(failure)
		}
		began := time.Now()
		_ = answer.Finish()
		if took := time.Since(began); took > time.Second {
			t.Errorf("%v", took)
		}
	})
}
