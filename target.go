package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gatewright/gateway/internal/slots"
)

// Bounded is implemented by providers that take only so many attempts at once, over all their models.
type Bounded interface {
	// MaxConcurrency returns the bound; 0 means none.
	MaxConcurrency() int
}

// upstream is a provider and its slots, shared by all candidates that name it.
type upstream struct {
	provider Provider
	slots    *slots.Pool
}

func newUpstream(p Provider, maxWaiting int) *upstream {
	u := &upstream{provider: p}
	if b, ok := p.(Bounded); ok {
		u.slots = slots.New(b.MaxConcurrency(), maxWaiting)
	}
	return u
}

// route is an alias at work.
type route struct {
	alias    Alias
	strategy Strategy
	retry    RetryPolicy
	slots    *slots.Pool
	maxWait  time.Duration
	targets  []*target
	usable   []*Candidate // the targets' candidates: what a Strategy orders
	stats    aliasStats
}

// target is a candidate at work.
type target struct {
	candidate Candidate
	upstream  *upstream
	slots     *slots.Pool
	maxWait   time.Duration
	inFlight  atomic.Int64
	attempts  atomic.Int64
	errors    atomic.Int64
}

func newRoute(a Alias, upstreams map[string]*upstream, maxWait time.Duration, maxWaiting int) *route {
	r := &route{
		alias: a, strategy: a.Strategy, retry: a.Retry, slots: slots.New(a.MaxConcurrency, maxWaiting), maxWait: maxWait,
	}
	if r.strategy == nil {
		r.strategy = Failover{}
	}
	if r.retry == nil {
		r.retry = NewRetryPolicy()
	}
	for _, c := range a.Candidates {
		t := &target{
			candidate: c, upstream: upstreams[c.Provider], slots: slots.New(c.MaxConcurrency, maxWaiting), maxWait: maxWait,
		}
		r.targets = append(r.targets, t)
		r.usable = append(r.usable, &t.candidate)
	}
	return r
}

// order returns the targets in the strategy's order.
func (r *route) order(req *Request) []*target {
	if _, ok := r.strategy.(Failover); ok {
		return r.targets
	}
	ordered := make([]*target, 0, len(r.targets))
	for _, c := range r.strategy.Order(req, r.usable) {
		for _, t := range r.targets {
			if c == &t.candidate {
				ordered = append(ordered, t)
			}
		}
	}
	return ordered
}

// acquire takes a slot of the provider and one of the candidate. When wait is false it does not wait for them.
func (t *target) acquire(ctx context.Context, wait bool) error {
	maxWait := t.maxWait
	if !wait {
		maxWait = 0
	}
	if err := t.upstream.slots.Acquire(ctx, maxWait); err != nil {
		return err
	}
	if err := t.slots.Acquire(ctx, maxWait); err != nil {
		t.upstream.slots.Release()
		return err
	}
	t.inFlight.Add(1)
	return nil
}

func (t *target) release() {
	t.inFlight.Add(-1)
	t.slots.Release()
	t.upstream.slots.Release()
}

// count adds an attempt that has ended. What the caller did wrong, or did not wait for, is no error of the candidate.
func (t *target) count(o Outcome) {
	t.attempts.Add(1)
	switch o {
	case OutcomeNotSent, OutcomeRefused, OutcomeUnknown, OutcomeInterrupted:
		t.errors.Add(1)
	default:
	}
}

func (t *target) stats() CandidateStats {
	s := CandidateStats{
		Provider: t.candidate.Provider, Model: t.candidate.Model, InFlight: int(t.inFlight.Load()),
		Waiting: t.slots.Waiting(), Attempts: t.attempts.Load(), Errors: t.errors.Load(),
	}
	if s.Attempts > 0 {
		s.ErrorRate = float64(s.Errors) / float64(s.Attempts)
	}
	return s
}

// overloaded makes the error of a full pool, or of a context that ended while waiting, one for the caller.
func overloaded(what string, maxWait time.Duration, err error) *Error {
	if !errors.Is(err, slots.ErrQueueFull) && !errors.Is(err, slots.ErrTimeout) {
		return AsError(err)
	}
	return &Error{
		Kind: ErrOverloaded, Status: http.StatusServiceUnavailable, Code: "gateway_overloaded", Outcome: OutcomeNotSent,
		Message:    what + " is at its concurrency limit: " + err.Error(),
		RetryAfter: max(time.Second, maxWait), NoRetry: true, Err: err,
	}
}

func closeAll(providers []Provider) {
	for _, p := range providers {
		if closer, ok := p.(io.Closer); ok {
			_ = closer.Close()
		}
	}
}
