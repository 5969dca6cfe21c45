package gatewaytest

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gatewright/gateway"
)

// Injector is a provider with faults in front of it. [Inject] makes one.
type Injector struct {
	gateway.Provider

	faults   []Fault
	calls    atomic.Int64
	injected atomic.Int64
}

// Fault says which calls it strikes and what it does to them.
type Fault struct {
	strikes func(call int64) bool // counted from 1
	effect  gateway.Middleware
}

// Inject returns the provider with faults in front of it. Calls are numbered as they come in; which faults strike a
// call depends on its number only, so that a run can be repeated. If several do, the first one is outermost: it acts
// first.
func Inject(p gateway.Provider, faults ...Fault) *Injector {
	return &Injector{Provider: p, faults: faults}
}

// Every strikes each nth call: for 3, the third, the sixth, and so on.
func Every(n int, effect gateway.Middleware) Fault {
	return Fault{func(call int64) bool { return n > 0 && call%int64(n) == 0 }, effect}
}

// Rate strikes a share of the calls, from 0 to 1, at random. The same seed strikes the same calls; give each fault of an
// Injector its own, or they strike together.
func Rate(share float64, seed uint64, effect gateway.Middleware) Fault {
	return Fault{func(call int64) bool {
		return rand.New(rand.NewPCG(seed, uint64(call))).Float64() < share
	}, effect}
}

// Instead is the effect of a step that is played instead of the call: Instead(Hang()) never answers, Instead(Panic(v))
// panics, Instead(FailWith(outcome)) fails.
func Instead(step gateway.Handler) gateway.Middleware {
	return func(gateway.Handler) gateway.Handler { return step }
}

// Delay is the effect of waiting before the call is made. It ends when the caller goes away.
func Delay(d time.Duration) gateway.Middleware {
	return func(next gateway.Handler) gateway.Handler {
		return gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
				return next.Do(ctx, req)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	}
}

// Cut is the effect of a stream that breaks after n events with an outcome: [gateway.OutcomeInterrupted] usually, or
// [gateway.OutcomeUnknown] before there was any output. A plain answer is not touched.
func Cut(n int, o gateway.Outcome) gateway.Middleware {
	return breakAfter(n, func(context.Context) error { return failure(o) })
}

// Stall is the effect of a stream that falls silent after n events, until the caller goes away. A plain answer is not
// touched.
func Stall(n int) gateway.Middleware {
	return breakAfter(n, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

// PanicAfter is the effect of a stream whose reader panics with v after n events. A plain answer is not touched.
func PanicAfter(n int, v any) gateway.Middleware {
	return breakAfter(n, func(context.Context) error { panic(v) })
}

func breakAfter(n int, end func(ctx context.Context) error) gateway.Middleware {
	return func(next gateway.Handler) gateway.Handler {
		return gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			res, err := next.Do(ctx, req)
			if err != nil || res == nil || res.Stream == nil {
				return res, err
			}
			ctx, cancel := context.WithCancel(ctx)
			out := *res
			out.Stream = gateway.NewStream(&brokenStream{source: res.Stream, left: n, end: end, ctx: ctx, cancel: cancel})
			return &out, nil
		})
	}
}

// brokenStream lets some events pass and then breaks.
type brokenStream struct {
	source *gateway.Stream
	left   int
	end    func(ctx context.Context) error
	ctx    context.Context //nolint:containedctx // the stream's own, which ends with Close
	cancel context.CancelFunc
}

// Next implements [gateway.EventReader].
func (s *brokenStream) Next() (gateway.Event, error) {
	if s.left <= 0 {
		return gateway.Event{}, s.end(s.ctx)
	}
	s.left--
	return s.source.Next()
}

// Buffered tells a writer that Next will not block.
func (s *brokenStream) Buffered() bool { return s.left > 0 && s.source.Buffered() }

// Close implements [gateway.EventReader].
func (s *brokenStream) Close() error {
	s.cancel()
	return s.source.Close()
}

// Do implements [gateway.Handler].
func (i *Injector) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	call := i.calls.Add(1)
	var handler gateway.Handler = i.Provider
	struck := false
	for _, fault := range slices.Backward(i.faults) {
		if fault.strikes(call) {
			handler, struck = fault.effect(handler), true
		}
	}
	if struck {
		i.injected.Add(1)
	}
	return handler.Do(ctx, req)
}

// Calls returns how many calls came in.
func (i *Injector) Calls() int { return int(i.calls.Load()) }

// Injected returns how many of them at least one fault has struck.
func (i *Injector) Injected() int { return int(i.injected.Load()) }

// MaxConcurrency implements [gateway.Bounded] with what the provider says.
func (i *Injector) MaxConcurrency() int {
	if b, ok := i.Provider.(gateway.Bounded); ok {
		return b.MaxConcurrency()
	}
	return 0
}

// Close closes the provider if it has a Close method.
func (i *Injector) Close() error {
	if closer, ok := i.Provider.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
