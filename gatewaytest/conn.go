package gatewaytest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// conn is a connection that an Upstream has accepted.
type conn struct {
	net.Conn

	trap   atomic.Bool // reset it as soon as something arrives
	closed func()
}

type connKey struct{}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.trap.Load() {
		reset(c)
		return 0, net.ErrClosed
	}
	return n, err
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// SetLinger passes on what [reset] asks for. A pipe knows no difference.
func (c *conn) SetLinger(seconds int) error {
	if l, ok := c.Conn.(lingerer); ok {
		return l.SetLinger(seconds)
	}
	return nil
}

type lingerer interface{ SetLinger(seconds int) error }

// reset closes a connection so that its other end gets a reset.
func reset(c net.Conn) {
	if l, ok := c.(lingerer); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close()
}

// hijack takes the connection of an answer over.
func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // taken over already, or HTTP/2: break off as far as it goes
	}
	return c
}

// pipeListener is a listener without a socket.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
}

var errClosedUpstream = errors.New("gatewaytest: the upstream is closed")

func newPipeListener() *pipeListener {
	done := make(chan struct{})
	return &pipeListener{conns: make(chan net.Conn), done: done, close: sync.OnceFunc(func() { close(done) })}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, errClosedUpstream
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *pipeListener) Close() error {
	l.close()
	return nil
}

// Addr implements [net.Listener].
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

// Network implements [net.Addr].
func (pipeAddr) Network() string { return "pipe" }

// String implements [net.Addr].
func (pipeAddr) String() string { return "upstream.test:80" }

// Refused returns the URL of a port on which connections are refused until the test ends.
func Refused(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // there is nothing to wait for
	if err != nil {
		tb.Fatalf("gatewaytest: %v", err)
	}
	defer listener.Close()
	// The local port of an open connection is taken, so that nobody else can listen on it, and nobody does.
	client, err := net.Dial("tcp", listener.Addr().String()) //nolint:noctx // there is nothing to wait for
	if err != nil {
		tb.Fatalf("gatewaytest: %v", err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	server, err := listener.Accept()
	if err != nil {
		tb.Fatalf("gatewaytest: %v", err)
	}
	tb.Cleanup(func() { _ = server.Close() })
	return "http://" + client.LocalAddr().String()
}
