package gateway

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/shopspring/decimal"
)

// Usage is what a call consumed, in tokens, sorted into disjoint buckets: every token is in exactly one of them, so
// that a sum of bucket × price counts nothing twice. Each dialect sorts its provider's own numbers.
type Usage struct {
	Input        int64 `json:"input,omitzero"`          // prompt tokens that were neither read from nor written to a cache
	CacheRead    int64 `json:"cache_read,omitzero"`     // prompt tokens read from the provider's prompt cache
	CacheWrite   int64 `json:"cache_write,omitzero"`    // prompt tokens written to it for the provider's usual time
	CacheWrite1h int64 `json:"cache_write_1h,omitzero"` // prompt tokens written to it for an hour
	InputAudio   int64 `json:"input_audio,omitzero"`    // uncached audio tokens of the prompt
	InputImage   int64 `json:"input_image,omitzero"`    // uncached image tokens of the prompt, where told apart
	Output       int64 `json:"output,omitzero"`         // generated tokens of text, tool calls and refusals
	Reasoning    int64 `json:"reasoning,omitzero"`      // generated reasoning tokens
	OutputAudio  int64 `json:"output_audio,omitzero"`   // generated audio tokens
	OutputImage  int64 `json:"output_image,omitzero"`   // generated image tokens
}

// PromptTokens returns all input tokens, in OpenAI's meaning of prompt_tokens.
func (u Usage) PromptTokens() int64 {
	return u.Input + u.CacheRead + u.CacheWrite + u.CacheWrite1h + u.InputAudio + u.InputImage
}

// CompletionTokens returns all output tokens, reasoning included, in OpenAI's meaning of completion_tokens.
func (u Usage) CompletionTokens() int64 {
	return u.Output + u.Reasoning + u.OutputAudio + u.OutputImage
}

// Price is what a model charges, in USD per million tokens. A bucket without a price of its own is charged at the
// price of plain input or output: never at nothing. An explicit zero is a price. A Price needs Input or Output.
type Price struct {
	Input        decimal.NullDecimal `json:"input,omitzero"`
	CacheRead    decimal.NullDecimal `json:"cache_read,omitzero"`
	CacheWrite   decimal.NullDecimal `json:"cache_write,omitzero"`
	CacheWrite1h decimal.NullDecimal `json:"cache_write_1h,omitzero"`
	InputAudio   decimal.NullDecimal `json:"input_audio,omitzero"`
	InputImage   decimal.NullDecimal `json:"input_image,omitzero"`
	Output       decimal.NullDecimal `json:"output,omitzero"`
	Reasoning    decimal.NullDecimal `json:"reasoning,omitzero"`
	OutputAudio  decimal.NullDecimal `json:"output_audio,omitzero"`
	OutputImage  decimal.NullDecimal `json:"output_image,omitzero"`
}

// USD parses an amount such as "2.50" for use in a Price. It panics on malformed text, as it is meant for constants;
// prices that come from outside are parsed by [ParseConfig], which returns errors.
func USD(amount string) decimal.NullDecimal {
	return decimal.NewNullDecimal(decimal.RequireFromString(amount))
}

// Validate reports what makes the price unusable: neither input nor output, or a negative amount.
func (p Price) Validate() error {
	if !p.Input.Valid && !p.Output.Valid {
		return errors.New("a price needs input or output, in USD per million tokens")
	}
	for _, b := range p.buckets(Usage{}) {
		if b.price.Valid && b.price.Decimal.IsNegative() {
			return fmt.Errorf("%s is negative: %s", b.name, b.price.Decimal)
		}
	}
	return nil
}

type bucket struct {
	name   string
	tokens int64
	price  decimal.NullDecimal
	base   decimal.NullDecimal // the price that stands in for an absent one
}

func (p Price) buckets(u Usage) [10]bucket {
	return [...]bucket{
		{"input", u.Input, p.Input, p.Input},
		{"cache_read", u.CacheRead, p.CacheRead, p.Input},
		{"cache_write", u.CacheWrite, p.CacheWrite, p.Input},
		{"cache_write_1h", u.CacheWrite1h, p.CacheWrite1h, firstValid(p.CacheWrite, p.Input)},
		{"input_audio", u.InputAudio, p.InputAudio, p.Input},
		{"input_image", u.InputImage, p.InputImage, p.Input},
		{"output", u.Output, p.Output, p.Output},
		{"reasoning", u.Reasoning, p.Reasoning, p.Output},
		{"output_audio", u.OutputAudio, p.OutputAudio, p.Output},
		{"output_image", u.OutputImage, p.OutputImage, p.Output},
	}
}

func firstValid(prices ...decimal.NullDecimal) decimal.NullDecimal {
	for _, p := range prices {
		if p.Valid {
			return p
		}
	}
	return decimal.NullDecimal{}
}

// Cost returns the exact cost of u in USD. It returns false when a bucket holds tokens that neither its own nor its
// base price covers: an unknown price is never taken for free.
func (p Price) Cost(u Usage) (usd decimal.Decimal, ok bool) {
	const places = 6 // of usual prices, which are multiplied and added up as whole numbers: that costs no allocation
	usual := int64(0)
	for _, b := range p.buckets(u) {
		if b.tokens <= 0 {
			continue
		}
		price := firstValid(b.price, b.base)
		if !price.Valid {
			return decimal.Decimal{}, false
		}
		if n, ok := fixed(price.Decimal, places); ok && (n == 0 || b.tokens <= (math.MaxInt64-usual)/n) {
			usual += n * b.tokens
			continue
		}
		usd = usd.Add(price.Decimal.Mul(decimal.NewFromInt(b.tokens)))
	}
	if sum := decimal.New(usual, -places); usd.IsZero() {
		usd = sum
	} else {
		usd = usd.Add(sum)
	}
	return usd.Shift(-6), p.Input.Valid || p.Output.Valid
}

// ModelRef names a model at a provider.
type ModelRef struct{ Provider, Model string }

// String returns provider/model.
func (m ModelRef) String() string { return m.Provider + "/" + m.Model }

// Cost is an exact amount and the price it was computed with.
type Cost struct {
	USD    decimal.Decimal
	Source string // where the price came from and in which version
}

// CostMeter turns usage into cost. Cost must be safe for concurrent use; ok is false without a price: never a guess.
type CostMeter interface {
	Cost(m ModelRef, u Usage) (c Cost, ok bool)
}

// PriceList is a CostMeter that looks prices up by provider and model. The zero value is empty and ready to use. It is
// safe for concurrent use.
type PriceList struct {
	mu     sync.RWMutex
	prices map[ModelRef]listedPrice
}

type listedPrice struct {
	price  Price
	source string
}

// Set adds or replaces a model's price. Source names where the price comes from; costs repeat it.
func (l *PriceList) Set(m ModelRef, p Price, source string) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("price of %s: %w", m, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.prices == nil {
		l.prices = make(map[ModelRef]listedPrice)
	}
	l.prices[m] = listedPrice{p, source}
	return nil
}

// Price returns a model's price and whether it is known.
func (l *PriceList) Price(m ModelRef) (Price, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.prices[m]
	return p.price, ok
}

// Cost implements [CostMeter].
func (l *PriceList) Cost(m ModelRef, u Usage) (Cost, bool) {
	l.mu.RLock()
	p, ok := l.prices[m]
	l.mu.RUnlock()
	if !ok {
		return Cost{}, false
	}
	usd, ok := p.price.Cost(u)
	return Cost{USD: usd, Source: p.source}, ok
}
