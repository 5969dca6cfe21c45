package gateway

import (
	"context"

	"github.com/shopspring/decimal"
)

// Claim is what a call asks a Limiter for: who is asking, for which alias, and the most that it may consume.
type Claim struct {
	Caller   Caller
	Alias    string
	API      API
	Tokens   int64               // estimated input plus the most output that may come; an estimate
	WorstUSD decimal.NullDecimal // what that would cost; not valid when there is no price
	Unpriced bool                // no candidate of the alias has a price
	TraceID  string
}

// Actual is what a call turned out to consume.
type Actual struct {
	Usage  Usage
	Source UsageSource
	USD    decimal.NullDecimal // not valid when unknown
}

// Limiter admits calls. Acquire waits, up to the context's deadline and the limiter's own bound, or refuses with an
// [*Error] of kind [ErrRateLimited], [ErrBudgetExceeded] or [ErrOverloaded] that carries RetryAfter and says which
// limit it was. A refusal consumes nothing. Acquire must be safe for concurrent use.
type Limiter interface {
	Acquire(ctx context.Context, c Claim) (Permit, error)
}

// Permit is an admitted call's share of the limits. Settle gives back what was not used; only its first call has an
// effect. The Client settles every permit exactly when the call's record is made.
type Permit interface {
	Settle(a Actual)
}
