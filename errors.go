package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The kinds of failure. Match them with [errors.Is]; the [*Error] that carries one says the rest.
var (
	ErrInvalidRequest  = errors.New("invalid request")          // the caller's document cannot be served: 400, 404, 413, 415, 422
	ErrUnknownModel    = errors.New("unknown model")            // no such alias, or not for this caller: 404
	ErrUnauthorized    = errors.New("unauthorized")             // no valid gateway key: 401
	ErrForbidden       = errors.New("forbidden")                // a valid key that may not do this: 403
	ErrNotConfigured   = errors.New("gateway not configured")   // no gateway key exists: 503
	ErrRateLimited     = errors.New("rate limited")             // one of the gateway's own limits: 429
	ErrBudgetExceeded  = errors.New("budget exceeded")          // one of the gateway's own budgets: 429
	ErrOverloaded      = errors.New("overloaded")               // no free slot within the queue's bounds: 503
	ErrClosed          = errors.New("gateway closed")           // the Client is closing or closed: 503
	ErrUpstream        = errors.New("upstream error")           // the upstream refused or failed: 502, 503, 504
	ErrUpstreamLimit   = errors.New("upstream rate limit")      // the upstream's own limit: 429
	ErrUpstreamAuth    = errors.New("upstream authentication")  // the upstream refused the gateway's key: 502
	ErrUpstreamQuota   = errors.New("upstream quota exhausted") // the gateway's upstream account has no money left: 502
	ErrUpstreamTimeout = errors.New("upstream timeout")         // no answer in time; the result is unknown: 504
	ErrInterrupted     = errors.New("stream interrupted")       // the upstream's stream broke after its first event
	ErrContextLength   = errors.New("context length exceeded")  // the prompt is too long for the model: 400
	ErrContentFilter   = errors.New("content filtered")         // refused by the upstream's content policy: 400
	ErrCanceled        = errors.New("canceled by the caller")   // the caller went away: 499
	ErrInternal        = errors.New("internal error")           // a panic or a broken provider: 500
)

// StatusClientClosedRequest is the status under which a call is recorded whose caller went away before the answer.
// It is never sent, as nobody is there to read it.
const StatusClientClosedRequest = 499

// Error is how every failed call ends, whoever failed. It has the kind of failure ([errors.Is] with the Err…
// sentinels), what the caller is told (Status, Type, Code, Param, Message), and what is known of the attempt that
// failed (Outcome, Provider, UpstreamStatus, RetryAfter).
//
// Message is safe to show to a caller: it holds no secret, no upstream address and no body. Err, the cause, is for logs.
type Error struct {
	Kind    error  // one of the Err… sentinels
	Status  int    // HTTP status for the caller
	Type    string // the error object's "type"; derived from Kind when empty
	Code    string // the error object's "code"
	Param   string // the error object's "param": the member at fault, if any
	Message string

	Outcome        Outcome       // what is known of the attempt
	Provider       string        // the provider that failed, if one was reached
	Model          string        // the upstream's model
	UpstreamStatus int           // the upstream's HTTP status; 0 when it did not answer
	RetryAfter     time.Duration // how long the upstream or the limit asked to wait; negative when it asked for no wait
	OtherKey       bool          // another key of the same provider can be used at once
	NoRetry        bool          // waiting does not help: the upstream said so, or the request is larger than its limit
	KeyFingerprint string        // the upstream key that was used
	Usage          *Usage        // usage reported together with the failure, if any
	Attempts       []AttemptInfo // every attempt of the call, set on the error that the Client returns

	Err error // the cause; may be nil
}

// Error says what failed and where.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("gateway: ")
	if e.Provider != "" {
		b.WriteString(e.Provider)
		if e.Model != "" {
			b.WriteString("/" + e.Model)
		}
		b.WriteString(": ")
	}
	if e.Message != "" {
		b.WriteString(e.Message)
	} else if e.Kind != nil {
		b.WriteString(e.Kind.Error())
	}
	if e.UpstreamStatus != 0 {
		fmt.Fprintf(&b, " (upstream status %d)", e.UpstreamStatus)
	}
	if e.Err != nil {
		if cause := e.Err.Error(); !strings.Contains(e.Message, cause) {
			b.WriteString(": " + cause)
		}
	}
	return b.String()
}

// Is reports whether target is the error's kind.
func (e *Error) Is(target error) bool { return e.Kind == target }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorType returns the "type" of the error object that a caller sees.
func (e *Error) ErrorType() string {
	if e.Type != "" {
		return e.Type
	}
	switch e.Kind {
	case ErrInvalidRequest, ErrUnknownModel, ErrContextLength, ErrContentFilter:
		return "invalid_request_error"
	case ErrUnauthorized:
		return "authentication_error"
	case ErrForbidden:
		return "permission_error"
	case ErrRateLimited, ErrUpstreamLimit:
		return "rate_limit_error"
	case ErrBudgetExceeded:
		return "insufficient_quota"
	case ErrUpstream, ErrUpstreamAuth, ErrUpstreamQuota, ErrUpstreamTimeout, ErrInterrupted:
		return "upstream_error"
	default:
		return "server_error"
	}
}

// AsError returns err as an [*Error]: itself if it is one or wraps one, ErrCanceled for a context that ended, and
// otherwise an internal error whose result is unknown. It returns nil for nil.
func AsError(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return canceled(err)
	default:
		return &Error{
			Kind: ErrInternal, Status: http.StatusInternalServerError, Code: "internal_error",
			Message: "the gateway failed while handling the call", Outcome: OutcomeUnknown, Err: err,
		}
	}
}

// canceled tells a caller that left from one whose own deadline ran out.
func canceled(cause error) *Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return &Error{
			Kind: ErrCanceled, Status: http.StatusGatewayTimeout, Code: "deadline_exceeded",
			Message: "the caller's deadline ran out", Outcome: OutcomeCanceled, Err: cause,
		}
	}
	return &Error{
		Kind: ErrCanceled, Status: StatusClientClosedRequest, Code: "canceled",
		Message: "the caller went away", Outcome: OutcomeCanceled, Err: cause,
	}
}

func invalidParam(param, message string) *Error {
	return &Error{
		Kind: ErrInvalidRequest, Status: http.StatusBadRequest, Code: "invalid_request", Param: param,
		Message: message, Outcome: OutcomeRejected,
	}
}
