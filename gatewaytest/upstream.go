package gatewaytest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/gatewright/gateway"
)

// Upstream is an HTTP server that speaks OpenAI's interface on any path, plays a script, and counts what reaches it.
type Upstream struct {
	url      string
	steps    []http.Handler
	listener net.Listener
	dial     func(ctx context.Context, network, address string) (net.Conn, error) // nil: a socket
	server   *http.Server
	stop     context.CancelFunc // ends what is being answered
	serving  sync.WaitGroup
	close    func()
	canceled chan struct{}

	mu       sync.Mutex
	traffic  Traffic
	requests []Received
	closing  bool
	changed  chan struct{} // closed at the next change
}

// Traffic is what has reached an [Upstream] so far.
type Traffic struct {
	Connections int // connections accepted
	Open        int // of those, the ones that are open now
	Begun       int // requests whose headers were read
	Whole       int // of those, the ones that were read to their end: they have reached the upstream
	Running     int // of those begun, the ones that are being answered now
	Canceled    int // requests whose caller went away before they were answered
}

// Received is a request that has reached an [Upstream] as a whole.
type Received struct {
	Method string
	Path   string
	Query  string
	Header http.Header
	Body   []byte
}

// NewUpstream starts an Upstream on a free port of the loopback address that plays the steps, one a request, and then
// the last one for ever. It is closed when the test ends. Without steps it answers "ok".
func NewUpstream(tb testing.TB, steps ...http.Handler) *Upstream {
	tb.Helper()
	u, err := StartUpstream(steps...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(u.Close)
	return u
}

// NewPipeUpstream is NewUpstream without a socket, for tests in a testing/synctest bubble. It is reached through its
// Transport only.
func NewPipeUpstream(tb testing.TB, steps ...http.Handler) *Upstream {
	tb.Helper()
	listener := newPipeListener()
	u := start(listener, listener.dial, steps)
	tb.Cleanup(u.Close)
	return u
}

// StartUpstream is NewUpstream for where there is no test. Close it.
func StartUpstream(steps ...http.Handler) (*Upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // there is nothing to wait for
	if err != nil {
		return nil, fmt.Errorf("gatewaytest: %w", err)
	}
	return start(listener, nil, steps), nil
}

func start(
	listener net.Listener, dial func(context.Context, string, string) (net.Conn, error), steps []http.Handler,
) *Upstream {
	if len(steps) == 0 {
		steps = []http.Handler{Answer("ok")}
	}
	ctx, stop := context.WithCancel(context.Background())
	u := &Upstream{
		url: "http://" + listener.Addr().String(), steps: slices.Clone(steps), dial: dial, stop: stop,
		canceled: make(chan struct{}, 1<<16), changed: make(chan struct{}),
	}
	u.listener = &countingListener{listener, u}
	u.server = &http.Server{ //nolint:gosec // a test's own callers may be as slow as the test wants
		Handler:     http.HandlerFunc(u.serve),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	u.close = sync.OnceFunc(u.shutdown)
	u.serving.Go(func() { _ = u.server.Serve(u.listener) }) // it always ends with an error
	return u
}

// URL returns the address, without a path: requests are answered on any path.
func (u *Upstream) URL() string { return u.url }

// Transport returns a new transport that connects to the Upstream, whatever the address, and to nothing else. Its
// connections end when the Upstream is closed.
func (u *Upstream) Transport() *http.Transport {
	dial := u.dial
	if dial == nil {
		address := u.listener.Addr().String()
		dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		}
	}
	return &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 1024}
}

// Close stops the Upstream: it ends the requests that are being answered, closes all connections, and waits for that.
func (u *Upstream) Close() { u.close() }

func (u *Upstream) shutdown() {
	u.mu.Lock()
	u.closing = true
	u.mu.Unlock()
	u.stop()
	_ = u.server.Close()
	u.serving.Wait()
}

// Count returns how many requests have reached the Upstream as a whole.
func (u *Upstream) Count() int { return u.Traffic().Whole }

// Seen returns how many connections the Upstream has accepted.
func (u *Upstream) Seen() int { return u.Traffic().Connections }

// Traffic returns what has reached the Upstream so far.
func (u *Upstream) Traffic() Traffic {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.traffic
}

// Requests returns the requests that have reached the Upstream as a whole, in order.
func (u *Upstream) Requests() []Received {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.requests)
}

// Canceled has a value for each request whose caller went away before it was answered.
func (u *Upstream) Canceled() <-chan struct{} { return u.canceled }

// Await waits until what has reached the Upstream satisfies cond, or until ctx has ended, whose error it then returns.
func (u *Upstream) Await(ctx context.Context, cond func(Traffic) bool) error {
	for {
		u.mu.Lock()
		traffic, changed := u.traffic, u.changed
		u.mu.Unlock()
		if cond(traffic) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("gatewaytest: upstream with %+v: %w", u.Traffic(), ctx.Err())
		}
	}
}

// count changes the traffic and wakes those who wait for that.
func (u *Upstream) count(change func(t *Traffic)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.traffic)
	close(u.changed)
	u.changed = make(chan struct{})
}

func (u *Upstream) serve(w http.ResponseWriter, r *http.Request) {
	n, ok := u.begin()
	if !ok {
		return
	}
	defer u.serving.Done()
	defer u.count(func(t *Traffic) { t.Running-- })

	x := &exchange{id: fmt.Sprintf("chatcmpl-%s-%d", u.listener.Addr(), n+1)}
	step := script(u.steps, n)
	if early, ok := step.(beforeBody); ok {
		step = early.Handler
	} else if !u.receive(r, x) {
		return
	}
	stop := context.AfterFunc(r.Context(), u.left)
	defer func() {
		if stop() && r.Context().Err() != nil { // the step has noticed first
			u.left()
		}
	}()
	step.ServeHTTP(w, r.WithContext(x.context(r.Context())))
}

// begin numbers a request. It is false when the Upstream is closing.
func (u *Upstream) begin() (n int, ok bool) {
	u.count(func(t *Traffic) {
		if ok = !u.closing; !ok {
			return
		}
		u.serving.Add(1)
		n = t.Begun
		t.Begun++
		t.Running++
	})
	return n, ok
}

// receive reads the request, and reports whether it came as a whole.
func (u *Upstream) receive(r *http.Request, x *exchange) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	if req, err := gateway.NewRequest(gateway.APIChat, body); err == nil {
		x.learn(req)
	}
	received := Received{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body,
	}
	u.count(func(t *Traffic) {
		t.Whole++
		u.requests = append(u.requests, received)
	})
	return true
}

// left notes that a caller went away.
func (u *Upstream) left() {
	u.count(func(t *Traffic) {
		if u.closing {
			return
		}
		t.Canceled++
		select {
		case u.canceled <- struct{}{}:
		default: // nobody has looked for a long time
		}
	})
}

// countingListener counts an Upstream's connections.
type countingListener struct {
	net.Listener

	upstream *Upstream
}

// Accept implements [net.Listener].
func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.upstream.count(func(t *Traffic) {
		t.Connections++
		t.Open++
	})
	closed := sync.OnceFunc(func() { l.upstream.count(func(t *Traffic) { t.Open-- }) })
	return &conn{Conn: c, closed: closed}, nil
}
