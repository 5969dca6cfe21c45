package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/shopspring/decimal"
)

// call is one call from Do to its record.
type call struct {
	client *Client
	req    *Request
	route  *route          // nil until the alias is resolved
	ctx    context.Context //nolint:containedctx // a call is a context's whole life: Close cancels it from outside
	cancel context.CancelCauseFunc
	inner  callContext
	began  time.Time

	mu        sync.Mutex
	record    *Record
	streams   []*callStream // given out by dispatch and not yet ended
	handedOut bool          // the caller has a stream
	finished  bool
}

// begin registers a new call; every call that begins is finished exactly once.
func (c *Client) begin(ctx context.Context, req *Request) (*call, error) {
	now := time.Now()
	call := &call{client: c, req: req, began: now, record: &Record{
		Time: now, TraceID: req.TraceID, KeyID: req.Caller.KeyID, App: req.Caller.App, API: req.API,
		ModelRequested: req.Model, Stream: req.Stream, UsageSource: UsageMissing,
	}}
	if call.record.TraceID == "" {
		call.record.TraceID = NewTraceID()
	}
	call.ctx, call.cancel = context.WithCancelCause(ctx)
	if !c.calls.add(call) {
		call.cancel(nil)
		return nil, errClosed()
	}
	return call, nil
}

type callKey struct{}

// callContext carries the call to dispatch, through the middlewares.
type callContext struct {
	context.Context //nolint:containedctx // it is a context

	call *call
}

func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

func (c *call) context() context.Context {
	c.route.stats.begin()
	c.inner = callContext{c.ctx, c}
	return &c.inner
}

// complete finishes a call that was answered with a whole document.
func (c *call) complete(res *Response) {
	c.closeStreams()
	res.Record = c.record
	c.finish(nil)
}

// streaming returns res as the caller gets it. A stream that dispatch made finishes the call itself; one that a
// middleware made is watched here.
func (c *call) streaming(res *Response) *Response {
	c.mu.Lock()
	own := len(c.streams) > 0
	c.handedOut = own
	c.mu.Unlock()
	out := *res
	out.Record = c.record
	if !own {
		out.Stream = NewStream(&finishingReader{EventReader: out.Stream.reader, call: c})
	}
	return &out
}

// finishingReader finishes the call when a stream ends that did not come from dispatch.
type finishingReader struct {
	EventReader

	call *call
}

func (r *finishingReader) Next() (Event, error) {
	event, err := r.EventReader.Next()
	if err != nil {
		r.call.finish(streamError(err))
	}
	return event, err
}

func (r *finishingReader) Buffered() bool {
	b, ok := r.EventReader.(bufferedReader)
	return ok && b.Buffered()
}

func (r *finishingReader) Close() error {
	err := r.EventReader.Close()
	r.call.finish(canceled(context.Canceled))
	return err
}

// leave ends the call's work when its caller closes the stream that it was given.
func (c *call) leave() {
	c.mu.Lock()
	handedOut := c.handedOut
	c.mu.Unlock()
	if handedOut {
		c.cancel(context.Canceled)
	}
}

// closeStreams closes the streams that are still open.
func (c *call) closeStreams() {
	c.mu.Lock()
	open := c.streams
	c.mu.Unlock()
	for _, s := range open {
		_ = s.Close()
	}
}

// abort finishes a call that failed and returns its error for the caller, with the attempts attached. Streams that a
// middleware left open are closed.
func (c *call) abort(err error) *Error {
	c.closeStreams()
	e := *AsError(err)
	if e.Kind == ErrCanceled && errors.Is(context.Cause(c.ctx), ErrClosed) {
		e = *errClosed()
		e.Outcome = OutcomeCanceled
	}
	c.mu.Lock()
	e.Attempts = c.record.Attempts
	c.mu.Unlock()
	c.finish(&e)
	return &e
}

// addAttempt notes an attempt that has ended and what it cost.
func (c *call) addAttempt(a AttemptInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Attempts = append(c.record.Attempts, a)
}

// finish completes the record, once, and hands it to the recorders.
func (c *call) finish(err *Error) {
	c.mu.Lock()
	if c.finished {
		c.mu.Unlock()
		return
	}
	c.finished = true
	r := c.record
	r.Latency = time.Since(c.began)
	r.LatencyMS = r.Latency.Milliseconds()
	if r.FirstToken > 0 {
		ms := r.FirstToken.Milliseconds()
		r.FirstTokenMS = &ms
	}
	r.RetryCount = max(0, len(r.Attempts)-1)
	r.Status = http.StatusOK
	if err != nil {
		r.Status, r.Outcome, r.Error, r.ErrorCode = err.Status, err.Outcome, err.Error(), err.Code
		if r.Outcome == OutcomeSuccess {
			r.Outcome = OutcomeUnknown // an error that says nothing of its outcome
		}
	}
	r.sumCost()
	c.mu.Unlock()

	c.client.calls.remove(c)
	if c.route != nil {
		c.route.stats.end(r)
	}
	for _, recorder := range c.client.recorders {
		c.recordTo(recorder)
	}
	c.cancel(nil)
}

// recordTo keeps a recorder that panics from taking the call down with it.
func (c *call) recordTo(recorder Recorder) {
	defer func() {
		if cause := recover(); cause != nil {
			c.client.logger.Error("a recorder panicked", "trace_id", c.record.TraceID, "panic", fmt.Sprint(cause))
		}
	}()
	recorder.Record(context.WithoutCancel(c.ctx), c.record)
}

// sumCost makes the call's cost the sum of its attempts' costs. It is unknown when one of them is.
func (r *Record) sumCost() {
	if len(r.Attempts) == 1 && r.Attempts[0].CostUSD != nil {
		r.CostUSD, r.NoCost = r.Attempts[0].CostUSD, ""
		return
	}
	sum := decimal.Zero
	for i := range r.Attempts {
		if cost := r.Attempts[i].CostUSD; cost == nil {
			if r.NoCost == "" {
				r.NoCost = NoCostUsage
			}
			return
		} else if !cost.IsZero() {
			sum = sum.Add(*cost)
		}
	}
	r.CostUSD, r.NoCost = &sum, ""
}

func panicError(cause any) *Error {
	err, ok := cause.(error)
	if !ok {
		err = fmt.Errorf("panic: %v", cause)
	}
	return &Error{
		Kind: ErrInternal, Status: http.StatusInternalServerError, Code: "internal_error", Outcome: OutcomeUnknown,
		Message: "the gateway failed while handling the call", Err: err,
	}
}

// registry knows the calls in flight, so that Close can wait for them and cancel them.
type registry struct {
	mu     sync.Mutex
	calls  map[*call]struct{}
	closed bool
	idle   chan struct{} // closed when closed and no call is left
}

func (r *registry) add(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.calls == nil {
		r.calls = make(map[*call]struct{})
	}
	r.calls[c] = struct{}{}
	return true
}

func (r *registry) remove(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c)
	if r.closed && len(r.calls) == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

func (r *registry) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// How long the calls that Close has canceled may take to wind up: first by themselves, so that a stream's reader can
// tell its own caller, then after their streams have been closed for them.
const (
	windUp      = time.Second
	forceWindUp = 5 * time.Second
)

func (r *registry) drain(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	if len(r.calls) == 0 {
		r.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	r.idle = idle
	r.mu.Unlock()

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	r.each(func(c *call) { c.cancel(errClosed()) })
	if waitFor(idle, windUp) {
		return ctx.Err()
	}
	r.each((*call).closeStreams)
	if !waitFor(idle, forceWindUp) {
		return fmt.Errorf("gateway: %d calls did not end when they were canceled: %w", r.count(), ctx.Err())
	}
	return ctx.Err()
}

func (r *registry) each(f func(*call)) {
	r.mu.Lock()
	calls := make([]*call, 0, len(r.calls))
	for c := range r.calls {
		calls = append(calls, c)
	}
	r.mu.Unlock()
	for _, c := range calls {
		f(c)
	}
}

func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
