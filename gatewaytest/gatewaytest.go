// Package gatewaytest helps to test programs that call models through a gateway, in the manner of net/http/httptest.
//
// A [Provider] stands in for an upstream inside the process: it plays a script and notes what it was asked. An
// [Upstream] is a real HTTP server that speaks OpenAI's interface and misbehaves on demand: it refuses, stalls, resets
// connections, breaks streams, and counts what reached it. [Inject] puts faults in front of any provider.
//
// A script is a list of steps. The first call plays the first step, the second call the second, and so on; when the
// script is used up, its last step is played for every further call. An empty script answers "ok".
//
//	provider := gatewaytest.NewProvider("cloud",
//		gatewaytest.Status(429).WithRetryAfter("2"),
//		gatewaytest.Answer("hi").WithUsage(gateway.Usage{Input: 100, Output: 50}))
//
// A step of a Provider is a [gateway.Handler], and a step of an Upstream is an [http.Handler], so that any function can
// be one. [Reply] and [Step] are both: [Answer], [Stream], [AnswerJSON], [Status], [Hang] and [Panic] can be played by
// either. What only makes sense on a connection ([Reset], [HangUp], [Events], …) is an http.Handler; [Sequence] plays
// several of them as the answer to one request:
//
//	upstream := gatewaytest.NewUpstream(t, gatewaytest.Sequence(gatewaytest.Events(3), gatewaytest.Reset()))
//
// Nothing here waits for the clock. A test that needs a moment in time hands in a channel ([WaitFor], [Reply.After]),
// or runs a Provider, or an Upstream made by [NewPipeUpstream], in a testing/synctest bubble.
package gatewaytest

import (
	"context"
	"net/http"

	"github.com/gatewright/gateway"
)

// Step is a step that both a [Provider] and an [Upstream] can play.
type Step struct {
	do    gateway.HandlerFunc
	serve http.HandlerFunc
}

// Do implements [gateway.Handler].
func (s Step) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	return s.do(ctx, req)
}

// ServeHTTP implements [http.Handler].
func (s Step) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r) }

// Hang is a step that does nothing until the caller goes away. After [Headers] or [Events] in a [Sequence] it is an
// upstream that falls silent in the middle of its answer.
func Hang() Step {
	return Step{
		do: func(ctx context.Context, _ *gateway.Request) (*gateway.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
}

// Panic is a step that panics with v. An Upstream's connection is closed then.
func Panic(v any) Step {
	return Step{
		do:    func(context.Context, *gateway.Request) (*gateway.Response, error) { panic(v) },
		serve: func(http.ResponseWriter, *http.Request) { panic(v) },
	}
}

// Fail is a step of a Provider that fails with a copy of err. Its Outcome decides what the gateway may do next.
func Fail(err *gateway.Error) gateway.Handler {
	return gateway.HandlerFunc(func(context.Context, *gateway.Request) (*gateway.Response, error) {
		e := *err // whoever gets an *Error may complete it
		return nil, &e
	})
}

// FailWith is a step of a Provider that fails as a provider does whose attempt ended with the given outcome.
func FailWith(o gateway.Outcome) gateway.Handler { return Fail(failure(o)) }

// failure returns an error such as providers return for the outcome.
func failure(o gateway.Outcome) *gateway.Error {
	e := &gateway.Error{
		Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_error", Outcome: o,
		Message: "gatewaytest: " + o.String(),
	}
	switch o {
	case gateway.OutcomeRefused:
		e.UpstreamStatus = http.StatusServiceUnavailable
	case gateway.OutcomeRejected:
		e.Kind, e.Status, e.Code = gateway.ErrInvalidRequest, http.StatusBadRequest, "invalid_request"
		e.UpstreamStatus = http.StatusBadRequest
	case gateway.OutcomeUnknown:
		e.Kind, e.Status, e.Code = gateway.ErrUpstreamTimeout, http.StatusGatewayTimeout, "upstream_timeout"
	case gateway.OutcomeInterrupted:
		e.Kind, e.Code = gateway.ErrInterrupted, "stream_interrupted"
	case gateway.OutcomeCanceled:
		e.Kind, e.Status, e.Code = gateway.ErrCanceled, gateway.StatusClientClosedRequest, "canceled"
	default:
	}
	return e
}

// script hands out steps: the first, the second, …, and then the last one for ever.
func script[T any](steps []T, call int) T { return steps[min(call, len(steps)-1)] }
