package gateway

import (
	"math"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/gatewright/gateway/internal/histogram"
)

// Stats is what a Client has done since it was made, in memory that does not grow with the number of calls.
type Stats struct {
	Since    time.Time             `json:"since"`
	InFlight int                   `json:"in_flight"`
	Aliases  map[string]AliasStats `json:"aliases"`
}

// AliasStats sums up the calls of one alias.
type AliasStats struct {
	Requests         int64            `json:"requests"` // Success + Failed + Canceled
	Success          int64            `json:"success"`
	Failed           int64            `json:"failed"`   // refused, rejected, unknown and interrupted calls
	Canceled         int64            `json:"canceled"` // the caller went away
	Retries          int64            `json:"retries"`
	PromptTokens     int64            `json:"prompt_tokens"`     // reported by providers
	CompletionTokens int64            `json:"completion_tokens"` // reported by providers
	EstimatedTokens  int64            `json:"estimated_tokens"`  // of cut calls whose usage nobody reported
	UsageMissing     int64            `json:"usage_missing"`     // successful calls without reported usage
	CostUSD          string           `json:"cost_usd"`          // six places
	Unpriced         int64            `json:"unpriced"`          // calls with usage but no price
	AverageLatencyMS float64          `json:"average_latency_ms"`
	LatencyMS        Percentiles      `json:"latency_ms"`
	FirstTokenMS     Percentiles      `json:"first_token_ms"` // of streams
	InFlight         int              `json:"in_flight"`
	Waiting          int              `json:"waiting"` // for a slot of the alias
	Candidates       []CandidateStats `json:"candidates"`
}

// Percentiles are in milliseconds and within 2 % of the exact values.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// CandidateStats sums up the attempts on one candidate.
type CandidateStats struct {
	Provider  string  `json:"provider"`
	Model     string  `json:"model"`
	InFlight  int     `json:"in_flight"`
	Waiting   int     `json:"waiting"`
	Attempts  int64   `json:"attempts"`
	Errors    int64   `json:"errors"`     // attempts not sent, refused, unknown or interrupted
	ErrorRate float64 `json:"error_rate"` // Errors / Attempts
}

// aliasStats collects the figures of one alias.
type aliasStats struct {
	mu      sync.Mutex
	sums    AliasStats // only its counters
	cost    usdSum
	running int

	latency    histogram.Histogram
	firstToken histogram.Histogram
}

func (s *aliasStats) begin() {
	s.mu.Lock()
	s.running++
	s.mu.Unlock()
}

func (s *aliasStats) end(r *Record) {
	s.latency.Add(r.Latency)
	if r.FirstTokenMS != nil {
		s.firstToken.Add(r.FirstToken)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.sums.Requests++
	switch r.Outcome {
	case OutcomeSuccess:
		s.sums.Success++
		if r.UsageSource == UsageMissing {
			s.sums.UsageMissing++
		}
	case OutcomeCanceled:
		s.sums.Canceled++
	default:
		s.sums.Failed++
	}
	s.sums.Retries += int64(r.RetryCount)
	switch r.UsageSource {
	case UsageReported:
		s.sums.PromptTokens += r.Usage.PromptTokens()
		s.sums.CompletionTokens += r.Usage.CompletionTokens()
	case UsageEstimated:
		s.sums.EstimatedTokens += r.Usage.PromptTokens() + r.Usage.CompletionTokens()
	case UsageMissing:
	}
	if r.CostUSD != nil {
		s.cost.add(*r.CostUSD)
	} else if r.NoCost == NoCostPrice {
		s.sums.Unpriced++
	}
}

// usdSum adds amounts up exactly. Those of a usual size are added as whole picodollars, which costs no allocation.
type usdSum struct {
	pico int64
	rest decimal.Decimal
}

func (s *usdSum) add(usd decimal.Decimal) {
	if n, ok := picodollars(usd); ok && s.pico <= math.MaxInt64-n {
		s.pico += n
		return
	}
	s.rest = s.rest.Add(usd)
}

// picodollars returns the amount as a whole number of picodollars, if it is one of a usual size.
func picodollars(usd decimal.Decimal) (n int64, ok bool) { return fixed(usd, 12) }

// fixed returns an amount as a whole number of the given decimal places, if it is exactly that and of a usual size.
func fixed(amount decimal.Decimal, places int32) (n int64, ok bool) {
	exponent := amount.Exponent()
	if exponent > 0 || exponent < -places || amount.IsNegative() || amount.NumDigits() > 18 {
		return 0, false
	}
	n = amount.CoefficientInt64()
	for range places + exponent {
		if n > math.MaxInt64/10 {
			return 0, false
		}
		n *= 10
	}
	return n, true
}

func (s *usdSum) total() decimal.Decimal { return decimal.New(s.pico, -12).Add(s.rest) }

func (s *aliasStats) snapshot() AliasStats {
	s.mu.Lock()
	sums := s.sums
	sums.CostUSD = s.cost.total().StringFixed(6)
	sums.InFlight = s.running
	s.mu.Unlock()
	sums.AverageLatencyMS = milliseconds(s.latency.Mean())
	sums.LatencyMS = percentiles(&s.latency)
	sums.FirstTokenMS = percentiles(&s.firstToken)
	return sums
}

func percentiles(h *histogram.Histogram) Percentiles {
	q := h.Quantiles(0.50, 0.95, 0.99)
	return Percentiles{milliseconds(q[0]), milliseconds(q[1]), milliseconds(q[2])}
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

// Stats returns the figures of every alias. It takes a moment's look: figures of calls that end meanwhile may be in one
// sum and not yet in another.
func (c *Client) Stats() Stats {
	stats := Stats{Since: c.created, InFlight: c.calls.count(), Aliases: make(map[string]AliasStats, len(c.aliases))}
	for _, name := range c.aliases {
		r := c.routes[name]
		s := r.stats.snapshot()
		s.Waiting = r.slots.Waiting()
		for _, t := range r.targets {
			s.Candidates = append(s.Candidates, t.stats())
		}
		stats.Aliases[name] = s
	}
	return stats
}
