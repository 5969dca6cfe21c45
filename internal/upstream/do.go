package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatewright/gateway"
)

// Client makes attempts at one upstream.
type Client struct {
	// RoundTripper is usually the transport of [NewTransport]. With another one less is known of a failed attempt: a
	// request counts as sent as soon as its body has been read.
	RoundTripper http.RoundTripper
	Timeouts     Timeouts
}

// Answer is an upstream's answer. Its body is bound to the timeouts and to the caller's context; errors of reading it
// are made an [*gateway.Error] by [Answer.Failure].
type Answer struct {
	Status        int
	Header        http.Header
	ContentLength int64 // -1 if unknown

	ctx    context.Context //nolint:containedctx // the attempt's own, which ends with this value
	caller context.Context //nolint:containedctx // tells why the attempt was cancelled
	cancel context.CancelCauseFunc
	dog    *watchdog
	body   io.ReadCloser
	closed sync.Once
	output atomic.Bool
}

// maxStale bounds how many idle connections that turn out to be dead one attempt may meet.
const maxStale = 3

// Do sends a request with the given body once and returns the answer, whatever its status. A stream's answer waits for
// its first output as [Answer.Output] reports it, a plain one for its headers.
//
// A request of which nothing can have been processed since it went to an idle connection that was dead already is sent
// again on another one. net/http itself never sends one again, as it is given no way to read the body twice.
func (c *Client) Do(ctx context.Context, req *http.Request, body []byte, stream bool) (*Answer, *gateway.Error) {
	for stale := 0; ; stale++ {
		answer, err, again := c.once(ctx, req, body, stream)
		if err == nil {
			return answer, nil
		}
		if !again || stale == maxStale {
			return nil, err
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
	_, traced := c.RoundTripper.(*http.Transport)
	first := waiting
	if traced {
		first = connecting
	}
	dog := newWatchdog(c.Timeouts, first, cancel)
	sending := &sending{dog: dog, body: requestBody{Reader: bytes.NewReader(body)}}
	attempt := req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: sending.gotConn}))
	attempt.Body, attempt.GetBody, attempt.ContentLength = &sending.body, nil, int64(len(body))

	response, err := c.RoundTripper.RoundTrip(attempt)
	if err != nil {
		dog.stop()
		failure := classify(caller, ctx, err, sending.sent())
		cancel(nil)
		return nil, failure, failure.Outcome == gateway.OutcomeNotSent && sending.reused.Load()
	}
	if !stream {
		dog.enter(receiving)
	}
	answer = &Answer{
		Status: response.StatusCode, Header: response.Header, ContentLength: response.ContentLength,
		ctx: ctx, caller: caller, cancel: cancel, dog: dog, body: response.Body,
	}
	answer.output.Store(!stream)
	return answer, nil, false
}

// sending follows a request on its way out.
type sending struct {
	dog    *watchdog
	body   requestBody
	reused atomic.Bool // it went to an idle connection

	mu   sync.Mutex
	conn net.Conn
}

func (s *sending) gotConn(info httptrace.GotConnInfo) {
	s.dog.enter(waiting)
	s.reused.Store(info.Reused)
	s.mu.Lock()
	s.conn = info.Conn
	s.mu.Unlock()
}

// sent reports whether the request may have reached the upstream as a whole.
func (s *sending) sent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body.read.Load() && (s.conn == nil || !writeFailed(s.conn))
}

// requestBody notes whether all of it has been read.
type requestBody struct {
	*bytes.Reader

	read atomic.Bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.Len() == 0 {
		b.read.Store(true)
	}
	return n, err
}

// WriteTo keeps net/http from going round Read.
func (b *requestBody) WriteTo(w io.Writer) (int64, error) {
	n, err := b.Reader.WriteTo(w)
	if b.Len() == 0 && err == nil {
		b.read.Store(true)
	}
	return n, err
}

func (b *requestBody) Close() error { return nil }

// Read reads from the answer's body.
func (a *Answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if n > 0 {
		a.dog.touch()
	}
	return n, err
}

// Output tells that a stream's first output has come: from now on only silence is too long.
func (a *Answer) Output() {
	if !a.output.Swap(true) {
		a.dog.enter(receiving)
	}
}

// Close ends the attempt and with it the upstream's work. It may be called at any time, by any goroutine.
func (a *Answer) Close() error {
	a.closed.Do(func() {
		a.dog.stop()
		a.cancel(nil)
		_ = a.body.Close()
	})
	return nil
}

// Drain reads what is left of an answer that is complete as far as its content goes, so that its connection can be used
// again. It gives up soon.
func (a *Answer) Drain() {
	timer := time.AfterFunc(maxDrainTime, func() { a.cancel(nil) })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, a.body, maxDrain)
}

const (
	maxDrain     = 64 << 10
	maxDrainTime = 50 * time.Millisecond
)

// Failure says what an error of Read means. Before a stream's first output, and on a plain answer, the result is
// unknown; after it the stream was interrupted.
func (a *Answer) Failure(err error) *gateway.Error {
	failure := classify(a.caller, a.ctx, err, true)
	if failure.Outcome == gateway.OutcomeCanceled {
		return failure
	}
	return failure
}

// Interrupted reports whether output has been received.
func (a *Answer) Interrupted() bool { return a.output.Load() }

var errClosed = errors.New("the answer was closed")
