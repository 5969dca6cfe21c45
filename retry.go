package gateway

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Outcome is what is known of an attempt: whether the upstream may have run it, and so whether it may be repeated.
type Outcome int

// The outcomes of an attempt.
const (
	OutcomeSuccess     Outcome = iota // answered, or a stream that ended as it should
	OutcomeNotSent                    // the request never reached the upstream as a whole: it cannot have run
	OutcomeRefused                    // the upstream answered 429 or 5xx: it did not run and costs nothing
	OutcomeRejected                   // the upstream answered another 4xx: the same request would fail again
	OutcomeUnknown                    // sent, but no answer that can be read: it may have run, and may cost money
	OutcomeInterrupted                // a stream that broke after its first output: it ran in part
	OutcomeCanceled                   // the caller went away
)

// String returns the name under which the outcome is recorded.
func (o Outcome) String() string {
	switch o {
	case OutcomeSuccess:
		return "success"
	case OutcomeNotSent:
		return "not_sent"
	case OutcomeRefused:
		return "refused"
	case OutcomeRejected:
		return "rejected"
	case OutcomeUnknown:
		return "unknown"
	case OutcomeInterrupted:
		return "interrupted"
	case OutcomeCanceled:
		return "canceled"
	default:
		return "invalid"
	}
}

// MarshalText makes the outcome a word in JSON and logs.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Attempt is what a RetryPolicy knows when it decides: which attempt failed, and how.
type Attempt struct {
	Number    int           // the attempt's number on this candidate, from 1
	Candidate int           // which candidate of the call, from 0
	Elapsed   time.Duration // since the call was admitted
	Opened    bool          // it was a stream that had begun, and failed before its first output
	Err       *Error        // why the attempt failed; never nil
}

// Action is what to do after a failed attempt.
type Action int

// The actions of a RetryPolicy.
const (
	Stop          Action = iota // give the error to the caller
	Retry                       // try the same candidate again after the delay
	NextCandidate               // go to the next candidate at once; the call ends when there is none
)

// Decision is a RetryPolicy's answer.
type Decision struct {
	Action Action
	Delay  time.Duration // how long to wait before a Retry
}

// RetryPolicy decides what happens after a failed attempt. Next is pure: it neither sleeps nor does any I/O, and it
// is called by many calls at once. The Client never waits longer than the call's deadline allows, whatever a policy
// says, and never repeats an attempt once output has been handed to the caller.
type RetryPolicy interface {
	Next(Attempt) Decision
}

// DefaultRetryPolicy repeats only what cannot have run: attempts that were not sent, and attempts that the upstream
// refused (429, 500, 502, 503, 504, 529 and the like). It waits as long as the upstream asked for, or else backs off
// exponentially with jitter. An attempt whose result is unknown is never repeated unless RetryUnknown says so; but a
// stream that broke after its opening and before any output is replaced by the next candidate's.
//
// The zero value does not retry but does go on to the next candidate. Use [NewRetryPolicy] for the defaults.
type DefaultRetryPolicy struct {
	// MaxRetries is how many times a candidate is tried again after its first attempt.
	MaxRetries int
	// Base is the first backoff delay; each further one doubles it. 0 means 1 s.
	Base time.Duration
	// MaxDelay caps every delay. An upstream that asks for more is not called again by this call. 0 means 60 s.
	MaxDelay time.Duration
	// Jitter spreads a backoff delay evenly over delay×(1-Jitter) to delay×(1+Jitter), at most MaxDelay. From 0 to 1.
	Jitter float64
	// Budget bounds the time since the call was admitted at which a retry may still begin. 0 means no bound but the
	// call's own deadline.
	Budget time.Duration
	// NoConnect, NoRateLimit and NoServerError take a class of failures out of those that are retried: attempts not
	// sent, answers with 429, other refusals. The next candidate is still tried.
	NoConnect, NoRateLimit, NoServerError bool
	// RetryUnknown also repeats attempts whose result is unknown. The upstream may then run, and bill, a call twice.
	RetryUnknown bool
}

// NewRetryPolicy returns the default: two retries, 1 s doubling to 60 s with jitter 0.5, within 30 s.
func NewRetryPolicy() DefaultRetryPolicy {
	return DefaultRetryPolicy{MaxRetries: 2, Base: time.Second, MaxDelay: time.Minute, Jitter: 0.5, Budget: 30 * time.Second}
}

// Next implements [RetryPolicy].
func (p DefaultRetryPolicy) Next(a Attempt) Decision {
	switch a.Err.Outcome {
	case OutcomeNotSent, OutcomeRefused:
	case OutcomeUnknown:
		switch {
		case p.RetryUnknown:
		case a.Opened:
			return Decision{Action: NextCandidate}
		default:
			return Decision{Action: Stop}
		}
	case OutcomeRejected:
		// The same request would be rejected again here, but a key or an account that is at fault is not the caller's.
		switch a.Err.Kind {
		case ErrUpstreamAuth, ErrUpstreamQuota:
			if a.Err.OtherKey {
				return Decision{Action: Retry}
			}
			return Decision{Action: NextCandidate}
		}
		return Decision{Action: Stop}
	default:
		return Decision{Action: Stop}
	}
	if a.Number > p.MaxRetries || a.Err.NoRetry || !p.retries(a.Err) {
		return Decision{Action: NextCandidate}
	}
	delay, ok := p.delay(a)
	if !ok || p.Budget > 0 && a.Elapsed+delay > p.Budget {
		return Decision{Action: NextCandidate}
	}
	return Decision{Action: Retry, Delay: delay}
}

func (p DefaultRetryPolicy) retries(err *Error) bool {
	switch {
	case err.Outcome == OutcomeUnknown:
		return true
	case err.Outcome == OutcomeNotSent:
		return !p.NoConnect
	case err.UpstreamStatus == http.StatusTooManyRequests:
		return !p.NoRateLimit
	default:
		return !p.NoServerError
	}
}

// delay returns how long to wait before the next attempt; ok is false when the upstream asked for more than MaxDelay.
func (p DefaultRetryPolicy) delay(a Attempt) (delay time.Duration, ok bool) {
	maxDelay := p.MaxDelay
	if maxDelay <= 0 {
		maxDelay = time.Minute
	}
	if a.Err.OtherKey {
		return 0, true
	}
	if after := a.Err.RetryAfter; after != 0 {
		if after < 0 {
			return 0, true
		}
		// The upstream's wish is a lower bound. A little more spreads a herd that was refused at one moment.
		spread := rand.N(min(after/20, 250*time.Millisecond) + 1)
		return min(after+spread, max(after, maxDelay)), after <= maxDelay
	}
	base := p.Base
	if base <= 0 {
		base = time.Second
	}
	interval := maxDelay
	if doubled := float64(base) * math.Pow(2, float64(a.Number-1)); doubled < float64(maxDelay) {
		interval = time.Duration(doubled)
	}
	b := backoff.ExponentialBackOff{
		InitialInterval: interval, RandomizationFactor: p.Jitter, Multiplier: 1, MaxInterval: interval,
		Stop: backoff.Stop, Clock: backoff.SystemClock,
	}
	b.Reset()
	return min(b.NextBackOff(), maxDelay), true
}

// sleep waits for d or until ctx ends, and reports whether the whole time passed.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
