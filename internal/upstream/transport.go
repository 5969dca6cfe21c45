// Package upstream makes the HTTP calls of all providers: it knows when a request has left as a whole, which of the
// timeouts has run out, and what is therefore known of an attempt that brought no answer.
package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// TransportOptions describes the connections to one upstream.
type TransportOptions struct {
	Connect        time.Duration // for DNS, TCP and TLS together; 0: no bound
	MaxConcurrency int           // how many calls are made at once; 0: unknown
	Proxy          *url.URL      // nil: as the environment says
}

const (
	// idleTimeout is below the 60 s after which common servers and load balancers close idle connections, as a request
	// that is written just then has an unknown result.
	idleTimeout = 55 * time.Second
	// idleUnbounded is how many idle connections are kept to an upstream whose concurrency has no bound.
	idleUnbounded = 256
)

// NewTransport returns a transport for one upstream. It notes failed writes, which tell an attempt that was sent from
// one that was not.
func NewTransport(o TransportOptions) *http.Transport {
	idle := o.MaxConcurrency
	if idle <= 0 {
		idle = idleUnbounded
	}
	dialer := &net.Dialer{Timeout: o.Connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: proxyFunc(o.Proxy),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: c}, nil
		},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode != http.StatusOK {
				return &proxyError{status: answer.StatusCode}
			}
			return nil
		},
		TLSHandshakeTimeout: o.Connect,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: idle,
		IdleConnTimeout:     idleTimeout,
		// The header of an answer is small; its body is bounded by its reader.
		MaxResponseHeaderBytes: 256 << 10,
	}
}

func proxyFunc(proxy *url.URL) func(*http.Request) (*url.URL, error) {
	if proxy != nil {
		return http.ProxyURL(proxy)
	}
	return func(req *http.Request) (*url.URL, error) {
		proxy, err := http.ProxyFromEnvironment(req)
		if err != nil {
			return nil, errProxyAddress // the error's own text shows the address with its password
		}
		return proxy, nil
	}
}

var errProxyAddress = errors.New("the environment's proxy address is not a URL")

// proxyError is a proxy's refusal to connect.
type proxyError struct{ status int }

func (e *proxyError) Error() string {
	return fmt.Sprintf("the proxy answered %d %s", e.status, http.StatusText(e.status))
}

// conn notes whether a write has failed. Once one has, the connection is of no more use.
type conn struct {
	net.Conn

	failed atomic.Bool
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// ReadFrom writes the rest of a request's body at once, where net/http would copy it through a buffer that it makes for
// each request. Client's bodies are in memory, and exactly as long as they are said to be.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if body, ok := limited.R.(io.WriterTo); ok {
			n, err := body.WriteTo(c)
			limited.N -= n
			return n, err
		}
	}
	return io.Copy(struct{ io.Writer }{c}, r)
}

// writeFailed reports whether a write on a connection of NewTransport's has failed.
func writeFailed(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, ok := c.(*conn)
	return ok && own.failed.Load()
}
