package upstream

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/gatewright/gateway"
)

// Client makes attempts at one upstream.
type Client struct {
	// RoundTripper is usually the transport of [NewTransport]. With another one less is known of an attempt that failed:
	// its request counts as sent as soon as the body has been read, and connecting is a part of waiting for the answer.
	RoundTripper http.RoundTripper
	Timeouts     Timeouts
}

// maxStale bounds how many idle connections that turn out to be dead one attempt may meet.
const maxStale = 3

// Do sends a request with the given body once and returns the answer, whatever its status. Errors lack the provider's
// name, model and key.
//
// net/http resends some requests by itself. It never does here, as it is given no way to read a body twice: a request
// that went to an idle connection which was dead already, so that it cannot have been sent as a whole, is sent again on
// another connection by Do; everything else is for the caller to decide.
func (c *Client) Do(ctx context.Context, req *http.Request, body []byte, stream bool) (*Answer, *gateway.Error) {
	for stale := 0; ; stale++ {
		answer, failure, again := c.once(ctx, req, body, stream)
		if failure == nil || !again || stale == maxStale {
			return answer, failure
		}
	}
}

func (c *Client) once(caller context.Context, req *http.Request, body []byte, stream bool) (
	answer *Answer, failure *gateway.Error, again bool,
) {
	if err := caller.Err(); err != nil {
		return nil, gateway.AsError(err), false
	}
	ctx, cancel := context.WithCancelCause(caller)
	s := &sending{}
	first, trace := waiting, &httptrace.ClientTrace{GotConn: s.gotConn}
	reader := bytes.NewReader(body)
	out := io.NopCloser(reader)
	if _, ok := c.RoundTripper.(*http.Transport); ok {
		// It knows this body for one in memory, and sends it together with the headers.
		first, trace.WroteRequest = connecting, s.wroteRequest
	} else {
		out = &trackedBody{Reader: reader, whole: &s.whole}
	}
	s.dog = newWatchdog(c.Timeouts, first, cancel)
	ctx = httptrace.WithClientTrace(ctx, trace)
	attempt := req.WithContext(ctx)
	attempt.Body, attempt.GetBody, attempt.ContentLength = out, nil, int64(len(body))

	response, err := c.RoundTripper.RoundTrip(attempt) //nolint:bodyclose // Answer.Close does
	if err != nil {
		s.dog.stop()
		failure, stale := s.classify(caller, ctx, err)
		cancel(nil)
		return nil, failure, stale
	}
	answer = newAnswer(caller, ctx, cancel, s.dog, response, stream)
	if response.StatusCode == http.StatusProxyAuthRequired {
		_ = answer.Close()
		return nil, notSent("the proxy demands other credentials (407)", &proxyError{response.StatusCode}), false
	}
	return answer, nil, false
}

// sending follows a request on its way out.
type sending struct {
	dog   *watchdog
	whole atomic.Bool // the transport has taken all of it

	mu     sync.Mutex
	conn   net.Conn // nil: none yet, or none that is known
	reused bool
}

func (s *sending) gotConn(info httptrace.GotConnInfo) {
	s.mu.Lock()
	s.conn, s.reused = info.Conn, info.Reused
	s.mu.Unlock()
	s.dog.enter(waiting)
}

// wroteRequest is called when the request has been written as a whole, at least into the connection's buffer.
func (s *sending) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err == nil {
		s.whole.Store(true)
	}
}

// trackedBody notes when all of it has been read.
type trackedBody struct {
	*bytes.Reader

	whole *atomic.Bool
}

// Read implements [io.Reader].
func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.Len() == 0 {
		b.whole.Store(true)
	}
	return n, err
}

// WriteTo keeps others from going round Read.
func (b *trackedBody) WriteTo(w io.Writer) (int64, error) {
	n, err := b.Reader.WriteTo(w)
	if b.Len() == 0 && err == nil {
		b.whole.Store(true)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *trackedBody) Close() error { return nil }
