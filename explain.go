package gateway

import (
	"context"

	"github.com/shopspring/decimal"
)

// Explanation says what the Client would do with a request now, without doing it.
type Explanation struct {
	Model      string               `json:"model"`
	Candidates []ExplainedCandidate `json:"candidates"` // in the order in which they would be tried
	// PromptTokens is an estimate, and MaxOutputTokens the bound that the caller or the configuration sets; 0 when there
	// is none.
	PromptTokens    int64 `json:"estimated_prompt_tokens"`
	MaxOutputTokens int64 `json:"max_output_tokens,omitzero"`
	InFlight        int   `json:"in_flight"`
	MaxConcurrency  int   `json:"max_concurrency,omitzero"`
	MaxAttempts     int   `json:"max_attempts,omitzero"` // bound for the whole call; 0 when the retry policy states none
}

// ExplainedCandidate says whether and why a candidate would be used now.
type ExplainedCandidate struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Usable   bool   `json:"usable"`
	Reason   string `json:"reason"`
	// WorstCostUSD is what the call would cost at most, by the estimate; nil without a price.
	WorstCostUSD *decimal.Decimal `json:"estimated_worst_cost_usd"`
	InFlight     int              `json:"in_flight"`
}

// Explain says what Do would do with req now, without sending anything. It fails as Do would for a request that would
// not get as far as a candidate: with an unknown model, for instance.
func (c *Client) Explain(_ context.Context, req *Request) (*Explanation, error) {
	route, err := c.resolve(req)
	if err != nil {
		return nil, err
	}
	if err := req.parse(); err != nil {
		return nil, err
	}
	if route.alias.Strict {
		if err := checkStrict(req); err != nil {
			return nil, err
		}
	}
	facts := req.Facts()
	e := &Explanation{
		Model: route.alias.Name, PromptTokens: facts.PromptTokens, MaxOutputTokens: facts.MaxOutput,
		InFlight: route.stats.snapshot().InFlight, MaxConcurrency: route.alias.MaxConcurrency,
	}
	targets := route.order(req)
	if policy, ok := route.retry.(DefaultRetryPolicy); ok {
		e.MaxAttempts = min(len(targets)*(1+policy.MaxRetries), maxAttempts)
	}
	for _, t := range targets {
		e.Candidates = append(e.Candidates, c.explainCandidate(t, req))
	}
	return e, nil
}

func (c *Client) explainCandidate(t *target, req *Request) ExplainedCandidate {
	e := ExplainedCandidate{
		Provider: t.candidate.Provider, Model: t.candidate.Model, Usable: true, Reason: "ready",
		InFlight: int(t.inFlight.Load()),
	}
	if cost, ok := c.cost(t, worstUsage(req, t.candidate)); ok {
		e.WorstCostUSD = &cost.USD
	} else if c.unpriced == UnpricedRefuse {
		e.Usable, e.Reason = false, "no price is configured, and calls without a price are refused"
		return e
	}
	switch {
	case t.slots.Full():
		e.Reason = "at its concurrency limit: the call would wait for a slot or go to the next candidate"
	case t.upstream.slots.Full():
		e.Reason = "its provider is at its concurrency limit: the call would wait for a slot or go to the next candidate"
	}
	return e
}
