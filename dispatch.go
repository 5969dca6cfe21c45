package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"
)

// Opening events of a stream, such as the one that only names the role, are held back until the first output, within
// these bounds: until then the stream can still be replaced by another candidate's.
const (
	maxHeldEvents = 64
	maxHeldBytes  = 64 << 10
)

// maxAttempts bounds the attempts of one call over all keys and candidates, whatever a RetryPolicy says.
const maxAttempts = 100

// dispatch is the innermost handler: it admits the call, tries the candidates, and settles.
func (c *Client) dispatch(ctx context.Context, req *Request) (res *Response, err error) {
	call, _ := ctx.Value(callKey{}).(*call)
	if call == nil {
		return nil, panicError(errors.New("a middleware dropped the values of the call's context"))
	}
	route := call.route
	if req.Model != route.alias.Name {
		if route, err = c.resolve(req); err != nil {
			return nil, err
		}
	}
	if route.alias.Strict {
		if err := checkStrict(req); err != nil {
			return nil, err
		}
	}
	permit, err := c.admit(ctx, call, route, req)
	if err != nil {
		return nil, err
	}
	a := admitted{call: call, route: route, permit: permit, actual: Actual{Source: UsageMissing}}
	// The permit and the alias's slot go back here, unless a stream takes them over.
	defer func() {
		if res == nil || res.Stream == nil {
			a.settle()
		}
	}()
	return c.tryCandidates(ctx, &a, req)
}

// admitted is a call that holds its permit and its slot of the alias.
type admitted struct {
	call   *call
	route  *route
	permit Permit // nil without a limiter
	actual Actual
	ran    bool // an attempt has run, or may have
	atRisk bool // it may have cost what nobody knows
}

// settle gives the slot and the permit back. A call that cannot have run consumed nothing, and that is known.
func (a *admitted) settle() {
	a.route.slots.Release()
	if a.permit == nil {
		return
	}
	if !a.ran {
		a.actual.Source = UsageReported
	}
	a.actual.USD.Valid = !a.atRisk
	a.permit.Settle(a.actual)
}

func (c *Client) admit(ctx context.Context, call *call, route *route, req *Request) (Permit, error) {
	var permit Permit
	if c.limiter != nil {
		var err error
		if permit, err = c.limiter.Acquire(ctx, c.claim(call, route, req)); err != nil {
			return nil, err
		}
	}
	if err := route.slots.Acquire(ctx, route.maxWait); err != nil {
		if permit != nil {
			permit.Settle(Actual{Source: UsageReported, USD: decimal.NewNullDecimal(decimal.Zero)})
		}
		return nil, overloaded("the model "+quoteForMessage(route.alias.Name), route.maxWait, err)
	}
	return permit, nil
}

// claim is the most that the call can consume: its estimated input and the most output that it may have, at the
// dearest candidate's price.
func (c *Client) claim(call *call, route *route, req *Request) Claim {
	claim := Claim{
		Caller: req.Caller, Alias: route.alias.Name, API: req.API, TraceID: call.record.TraceID, Unpriced: true,
	}
	for _, t := range route.targets {
		worst := worstUsage(req, t.candidate)
		claim.Tokens = max(claim.Tokens, worst.PromptTokens()+worst.CompletionTokens())
		if cost, ok := c.cost(t, worst); ok {
			claim.Unpriced = false
			if !claim.WorstUSD.Valid || cost.USD.GreaterThan(claim.WorstUSD.Decimal) {
				claim.WorstUSD = decimal.NewNullDecimal(cost.USD)
			}
		}
	}
	return claim
}

func worstUsage(req *Request, c Candidate) Usage {
	f := req.Facts()
	output := f.MaxOutput
	if output == 0 {
		output = c.MaxOutput
	}
	return Usage{Input: f.PromptTokens, Output: output * f.N}
}

func (c *Client) cost(t *target, u Usage) (Cost, bool) {
	if t.candidate.Price != nil {
		usd, ok := t.candidate.Price.Cost(u)
		return Cost{USD: usd, Source: "config"}, ok
	}
	if c.meter == nil {
		return Cost{}, false
	}
	return c.meter.Cost(t.candidate.Ref(), u)
}

// tryCandidates makes attempts until one succeeds, the retry policy stops, or nothing is left to try.
func (c *Client) tryCandidates(ctx context.Context, a *admitted, req *Request) (*Response, error) {
	var last *Error
	attempts := 0
	targets := a.route.order(req)
	for i, t := range targets {
		if last != nil {
			c.logger.LogAttrs(ctx, slog.LevelWarn, "failover",
				slog.String("trace_id", a.call.record.TraceID), slog.String("model", a.route.alias.Name),
				slog.String("to", t.candidate.Ref().String()), slog.String("why", last.Error()))
		}
		if c.unpriced == UnpricedRefuse {
			if _, ok := c.cost(t, Usage{}); !ok {
				last = errUnpriced(t, last)
				continue
			}
		}
		wait := i == len(targets)-1 // rather than wait for a slot, go to a candidate that has one
		for number := 1; ; number++ {
			res, opened, err := c.attempt(ctx, a, t, req, wait)
			if err == nil {
				return res, nil
			}
			last = err
			if attempts++; attempts >= maxAttempts || ctx.Err() != nil {
				return nil, last
			}
			decision := a.route.retry.Next(Attempt{
				Number: number, Candidate: i, Elapsed: time.Since(a.call.began), Opened: opened, Err: err,
			})
			if decision.Action == Stop {
				return nil, last
			}
			if decision.Action == NextCandidate || !fits(ctx, decision.Delay) {
				break
			}
			if !sleep(ctx, decision.Delay) {
				return nil, AsError(context.Cause(ctx))
			}
		}
	}
	if last == nil {
		last = &Error{
			Kind: ErrUpstream, Status: http.StatusServiceUnavailable, Code: "no_healthy_candidate", Outcome: OutcomeNotSent,
			Message: "no upstream is available for the model " + quoteForMessage(a.route.alias.Name),
		}
	}
	return nil, last
}

// fits reports whether a wait of d ends before the context's deadline.
func fits(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Now().Add(d).Before(deadline)
}

func errUnpriced(t *target, last *Error) *Error {
	if last != nil {
		return last // what an upstream said is more useful
	}
	return &Error{
		Kind: ErrInvalidRequest, Status: http.StatusBadRequest, Code: "no_price", Param: "model",
		Outcome: OutcomeRejected, Provider: t.candidate.Provider, Model: t.candidate.Model,
		Message: "no price is configured for the model, and calls without a price are refused",
	}
}

// attempt makes one attempt on t. Whatever happens, the slot is given back and the attempt noted: here, or by the
// stream that it returns.
func (c *Client) attempt(ctx context.Context, a *admitted, t *target, req *Request, wait bool) (
	res *Response, opened bool, failure *Error,
) {
	if err := t.acquire(ctx, wait); err != nil {
		return nil, false, overloaded("the upstream "+quoteForMessage(t.candidate.Provider), t.maxWait, err)
	}
	streaming := false
	defer func() {
		if !streaming {
			t.release()
		}
	}()
	began := time.Now()
	out := *req
	out.Model, out.TraceID = t.candidate.Model, a.call.record.TraceID
	res, err := protect(ctx, t.upstream.provider, &out)
	var held []Event
	if err == nil && res.Stream != nil {
		if held, err = firstOutput(res.Stream); err != nil {
			opened = true
			_ = closeSource(res.Stream)
		}
	}
	info := AttemptInfo{Provider: t.candidate.Provider, Model: t.candidate.Model}
	if err != nil {
		own := *err // the provider may give the same error to many calls
		c.failed(ctx, a, t, req, info, began, &own)
		return nil, opened, &own
	}
	info.KeyFingerprint, info.Status = res.KeyFingerprint, http.StatusOK
	res = a.call.answered(t, res)
	if res.Stream != nil {
		streaming = true
		res.Stream = NewStream(newCallStream(c, a, t, req, res.Stream, held, info, began))
		return res, false, nil
	}
	c.succeeded(a, t, info, began, res.Usage)
	return res, false, nil
}

// protect calls a provider so that neither a panic nor an answer that is none gets any further.
func protect(ctx context.Context, p Provider, req *Request) (res *Response, err *Error) {
	defer func() {
		if cause := recover(); cause != nil {
			res, err = nil, panicError(cause)
		}
	}()
	res, failure := p.Do(ctx, req)
	switch {
	case failure != nil:
		return nil, AsError(failure)
	case res == nil || res.Stream == nil && res.Body == nil:
		return nil, AsError(errNoResponse)
	default:
		return res, nil
	}
}

// firstOutput reads a stream up to its first output, or to its end.
func firstOutput(s *Stream) (held []Event, err *Error) {
	size := 0
	for len(held) < maxHeldEvents && size < maxHeldBytes {
		event, err := nextEvent(s)
		if errors.Is(err, io.EOF) {
			return append(held, Event{Hidden: true, Finished: true, Type: endOfStream}), nil
		}
		if err != nil {
			return nil, streamError(err)
		}
		held = append(held, event)
		if event.Output || event.Finished {
			break
		}
		size += len(event.Data)
	}
	return held, nil
}

// endOfStream is the type of the event that stands for an end which came before any output.
const endOfStream = "gateway.end"

// nextEvent reads an event so that a panic in the provider's stream becomes an error.
func nextEvent(s *Stream) (event Event, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(cause)
		}
	}()
	return s.Next()
}

// closeSource closes a provider's stream so that a panic in it becomes an error.
func closeSource(s *Stream) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = panicError(cause)
		}
	}()
	return s.Close()
}

// streamError returns nil for an orderly end.
func streamError(err error) *Error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return AsError(err)
}

// answered notes who answers the call and returns a copy of the response that dispatch may change.
func (c *call) answered(t *target, res *Response) *Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Provider, c.record.ModelUpstream = t.candidate.Provider, t.candidate.Model
	out := *res
	out.Record = c.record
	return &out
}

// failed notes an attempt that failed before it gave any output.
func (c *Client) failed(
	ctx context.Context, a *admitted, t *target, req *Request, info AttemptInfo, began time.Time, err *Error,
) {
	if err.Provider == "" {
		err.Provider, err.Model = t.candidate.Provider, t.candidate.Model
	}
	if err.Outcome == OutcomeSuccess {
		err.Outcome = OutcomeUnknown
	}
	info.KeyFingerprint, info.Status = err.KeyFingerprint, err.UpstreamStatus
	info.Outcome, info.Error = err.Outcome, err.Error()
	info.Latency = time.Since(began)
	info.Milliseconds = info.Latency.Milliseconds()
	source := UsageMissing
	switch {
	case err.Usage != nil:
		source = UsageReported
		info.Usage = err.Usage
		if cost, ok := c.cost(t, *err.Usage); ok {
			info.CostUSD = &cost.USD
		}
	case err.Outcome == OutcomeUnknown, err.Outcome == OutcomeCanceled, err.Outcome == OutcomeInterrupted:
		info.AtRisk = true // it may have run: the prompt at least may have been billed
		source = UsageEstimated
		info.Usage = &Usage{Input: req.Facts().PromptTokens}
	default:
		info.CostUSD = &decimal.Decimal{}
	}
	t.count(err.Outcome)
	a.call.addAttempt(info)
	if info.Usage != nil {
		a.account(*info.Usage, source, info.CostUSD)
	}
	if err.Outcome == OutcomeUnknown && ctx.Err() == nil {
		c.logger.LogAttrs(ctx, slog.LevelWarn, "result unknown",
			slog.String("trace_id", a.call.record.TraceID), slog.String("upstream", t.candidate.Ref().String()),
			slog.String("why", err.Error()))
	}
}

// succeeded notes an attempt that was answered in full.
func (c *Client) succeeded(a *admitted, t *target, info AttemptInfo, began time.Time, usage *Usage) {
	info.Outcome = OutcomeSuccess
	info.Latency = time.Since(began)
	info.Milliseconds = info.Latency.Milliseconds()
	c.charge(a, t, &info, usage)
	t.count(OutcomeSuccess)
	a.call.addAttempt(info)
}

// charge puts the reported usage and its cost on an attempt and into the record.
func (c *Client) charge(a *admitted, t *target, info *AttemptInfo, usage *Usage) {
	if usage == nil {
		a.ran, a.atRisk = true, true
		a.call.noCost(NoCostUsage)
		return
	}
	info.Usage = usage
	if cost, ok := c.cost(t, *usage); ok {
		info.CostUSD = &cost.USD
		a.call.priced(cost.Source)
	} else {
		a.call.noCost(NoCostPrice)
	}
	a.account(*usage, UsageReported, info.CostUSD)
}

// account adds an attempt's usage to what the call consumed.
func (a *admitted) account(u Usage, source UsageSource, usd *decimal.Decimal) {
	a.ran = true
	a.actual.Usage = a.actual.Usage.plus(u)
	if a.actual.Source != UsageEstimated {
		a.actual.Source = source
	}
	switch {
	case usd == nil:
		a.atRisk = true
	case a.actual.USD.Decimal.IsZero():
		a.actual.USD.Decimal = *usd
	default:
		a.actual.USD.Decimal = a.actual.USD.Decimal.Add(*usd)
	}
	a.call.mu.Lock()
	defer a.call.mu.Unlock()
	a.call.record.Usage, a.call.record.UsageSource = a.actual.Usage, a.actual.Source
}

func (c *call) noCost(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.NoCost = why
}

func (c *call) priced(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.PriceSource = source
}

// callStream is the stream that a caller reads: it meters what passes, hides what the caller did not ask for, and
// settles and records the call when it ends, fails or is closed, whichever comes first.
type callStream struct {
	client   *Client
	admitted *admitted
	target   *target
	req      *Request
	source   *Stream
	info     AttemptInfo
	began    time.Time

	mu          sync.Mutex // held during Next; guards what follows
	held        []Event
	usage       *Usage
	outputBytes int
	output      bool // the first output has passed
	finished    bool
	ended       bool
	err         error // what Next returns after the end
}

func newCallStream(
	c *Client, a *admitted, t *target, req *Request, source *Stream, held []Event, info AttemptInfo, began time.Time,
) *callStream {
	s := &callStream{
		client: c, admitted: a, target: t, req: req, source: source, held: held, info: info, began: began,
	}
	if s.output = held[len(held)-1].Output; s.output {
		a.call.firstToken()
	}
	a.call.mu.Lock()
	defer a.call.mu.Unlock()
	a.call.streams = append(a.call.streams, s)
	return s
}

// Next implements [EventReader].
func (s *callStream) Next() (Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended {
		event, err := s.take()
		if err != nil {
			return Event{}, s.fail(err)
		}
		s.note(event)
		if !event.Hidden {
			return event, nil
		}
	}
	return Event{}, s.err
}

// note takes down what an event, or several together, say of the answer.
func (s *callStream) note(event Event) {
	s.outputBytes += event.OutputBytes
	s.finished = s.finished || event.Finished
	if event.Usage != nil && (s.usage == nil || *event.Usage != (Usage{})) {
		s.usage = event.Usage // running totals: the last report counts
	}
	if event.Output && !s.output {
		s.output = true
		s.admitted.call.firstToken()
	}
}

// AppendBuffered implements [bufferAppender] if the source does.
func (s *callStream) AppendBuffered(dst []byte, limit int) (out []byte, sum Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	source, ok := s.source.reader.(bufferAppender)
	if !ok || s.ended || len(s.held) > 0 {
		return dst, sum
	}
	defer func() {
		if cause := recover(); cause != nil {
			out, s.source = dst, NewStream(failedReader{s.source.reader, panicError(cause)})
		}
	}()
	out, sum = source.AppendBuffered(dst, limit)
	s.note(sum)
	return out, sum
}

// failedReader is what is left of a source that panicked.
type failedReader struct {
	EventReader

	err error
}

func (r failedReader) Next() (Event, error) { return Event{}, r.err }

func (s *callStream) take() (Event, error) {
	if len(s.held) == 0 {
		return nextEvent(s.source)
	}
	event := s.held[0]
	if s.held = s.held[1:]; len(s.held) == 0 {
		s.held = nil
	}
	if event.Type == endOfStream {
		return Event{}, io.EOF
	}
	return event, nil
}

// fail ends the stream with what its source returned.
func (s *callStream) fail(err error) error {
	if errors.Is(err, io.EOF) {
		s.end(nil, io.EOF)
		return s.err
	}
	e := *AsError(err)
	if e.Provider == "" {
		e.Provider, e.Model = s.target.candidate.Provider, s.target.candidate.Model
	}
	switch {
	case e.Kind == ErrCanceled && errors.Is(context.Cause(s.admitted.call.ctx), ErrClosed):
		e = *errClosed()
		e.Outcome = OutcomeInterrupted
	case e.Outcome != OutcomeCanceled:
		e.Outcome = OutcomeInterrupted // output has been handed out: it ran in part
	}
	s.end(&e, &e)
	return s.err
}

// Buffered reports whether the next event is here already.
func (s *callStream) Buffered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) > 0 || s.source.Buffered()
}

// Close implements [EventReader]. Closing a stream that has not ended cancels the upstream's work.
func (s *callStream) Close() error {
	s.admitted.call.leave()
	err := closeSource(s.source) // makes a Next that is blocked return, which then ends the stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.end(canceled(context.Canceled), canceled(context.Canceled))
	}
	return err
}

// end settles and records the call. It runs once, with s.mu held; further Nexts return result.
func (s *callStream) end(err *Error, result error) {
	if s.ended {
		return
	}
	s.ended, s.err, s.held = true, result, nil
	if err != nil && err.Outcome == OutcomeCanceled && s.finished {
		err = nil // the answer was complete; only its epilogue was not waited for
	}
	_ = closeSource(s.source)
	s.info.Latency = time.Since(s.began)
	s.info.Milliseconds = s.info.Latency.Milliseconds()
	if err != nil {
		s.info.Outcome, s.info.Error = err.Outcome, err.Error()
		if err.UpstreamStatus != 0 {
			s.info.Status = err.UpstreamStatus
		}
	}
	if s.usage == nil && err != nil {
		// Cut before the report came: the provider bills the prompt and what it generated, so the record does not
		// pretend that there was nothing. Estimates are marked and never turned into money.
		estimate := Usage{Input: s.req.Facts().PromptTokens, Output: estimateOutput(s.outputBytes)}
		s.info.Usage, s.info.AtRisk = &estimate, true
		s.admitted.account(estimate, UsageEstimated, nil)
	} else {
		s.client.charge(s.admitted, s.target, &s.info, s.usage)
	}
	s.target.count(s.info.Outcome)
	s.target.release()
	s.admitted.call.addAttempt(s.info)
	s.admitted.settle()
	s.admitted.call.streamEnded(s, err)
}

// firstToken notes the moment of the call's first output.
func (c *call) firstToken() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record.FirstToken == 0 {
		c.record.FirstToken = max(time.Since(c.began), 1)
	}
}

// streamEnded finishes the call when its last stream has ended. Until Do has handed a stream to the caller, a middleware
// may read one or give it up, and the call goes on.
func (c *call) streamEnded(s *callStream, err *Error) {
	c.mu.Lock()
	for i, open := range c.streams {
		if open == s {
			c.streams = append(c.streams[:i:i], c.streams[i+1:]...)
			break
		}
	}
	last := c.handedOut && len(c.streams) == 0
	c.mu.Unlock()
	if last {
		c.finish(err)
	}
}

func estimateOutput(bytes int) int64 { return int64((bytes + 3) / 4) }

func (u Usage) plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h, InputAudio: u.InputAudio + v.InputAudio,
		InputImage: u.InputImage + v.InputImage, Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
		OutputAudio: u.OutputAudio + v.OutputAudio, OutputImage: u.OutputImage + v.OutputImage,
	}
}

// quoteForMessage quotes a name that came from outside, shortened and without control characters.
func quoteForMessage(name string) string {
	const limit = 128
	if len(name) > limit {
		name = name[:limit] + "…"
	}
	return "'" + strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\'' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?")) + "'"
}
