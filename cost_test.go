package gateway_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/shopspring/decimal"

	"github.com/gatewright/gateway"
)

func TestPriceCostIsExact(t *testing.T) {
	openai := gateway.Price{Input: gateway.USD("2.50"), CacheRead: gateway.USD("1.25"), Output: gateway.USD("10")}
	tests := []struct {
		name  string
		price gateway.Price
		usage gateway.Usage
		want  string
	}{
		{"issue", gateway.Price{Input: gateway.USD("2"), Output: gateway.USD("8")}, gateway.Usage{Input: 100, Output: 50}, "0.0006"},
		{"cached once", openai, gateway.Usage{Input: 86, CacheRead: 1920, Output: 172, Reasoning: 128}, "0.005615"},
		{
			"usage-1", gateway.Price{Input: gateway.USD("1.25"), CacheRead: gateway.USD("0.625"), Output: gateway.USD("10")},
			gateway.Usage{Input: 262960 - 257955, CacheRead: 257955, Output: 1744}, "0.184918125",
		},
		{"usage-2: no cache price", gateway.Price{Input: gateway.USD("2"), Output: gateway.USD("8")}, gateway.Usage{Input: 100, CacheRead: 900, Output: 10}, "0.00208"},
		{
			"anthropic", gateway.Price{
				Input: gateway.USD("3"), CacheRead: gateway.USD("0.30"), CacheWrite: gateway.USD("3.75"),
				CacheWrite1h: gateway.USD("6"), Output: gateway.USD("15"),
			}, gateway.Usage{Input: 21, CacheRead: 18000, CacheWrite: 2000, CacheWrite1h: 3000, Output: 650}, "0.040713",
		},
		{
			"audio", gateway.Price{Input: gateway.USD("2.50"), InputAudio: gateway.USD("40"), Output: gateway.USD("10"), OutputAudio: gateway.USD("80")},
			gateway.Usage{Input: 20, InputAudio: 44, Output: 6, OutputAudio: 12}, "0.00283",
		},
		{"embedding", gateway.Price{Input: gateway.USD("0.02")}, gateway.Usage{Input: 8}, "0.00000016"},
		{"explicit zero", gateway.Price{Input: gateway.USD("0"), Output: gateway.USD("0")}, gateway.Usage{Input: 8, Output: 9}, "0"},
		{"reasoning of its own", gateway.Price{Output: gateway.USD("1"), Reasoning: gateway.USD("3")}, gateway.Usage{Output: 10, Reasoning: 10}, "0.00004"},
	}
	for _, test := range tests {
		got, ok := test.price.Cost(test.usage)
		if want := decimal.RequireFromString(test.want); !ok || !got.Equal(want) {
			t.Errorf("%s: %s (%v), want %s", test.name, got, ok, test.want)
		}
	}
}

func TestUnknownPriceIsNotFree(t *testing.T) {
	onlyInput := gateway.Price{Input: gateway.USD("2")}
	if _, ok := onlyInput.Cost(gateway.Usage{Input: 1, Output: 1}); ok {
		t.Error("output tokens without an output price have a cost")
	}
	if _, ok := (gateway.Price{}).Cost(gateway.Usage{}); ok {
		t.Error("an empty price has a cost")
	}
	var list gateway.PriceList
	if _, ok := list.Cost(gateway.ModelRef{Provider: "p", Model: "m"}, gateway.Usage{Input: 1}); ok {
		t.Error("an empty list has a cost")
	}
	if err := list.Set(gateway.ModelRef{Provider: "p", Model: "m"}, gateway.Price{}, "test"); err == nil {
		t.Error("a price without input and output is taken")
	}
}

// The shared set has exact bills, most of them as the provider itself billed them.
func TestPricingVectors(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "shared", "wire", "pricing-vectors.json"))
	if err != nil {
		t.Skipf("SKIPPED, the shared pricing vectors are not here: %v", err)
	}
	var vectors []struct {
		Name   string                     `json:"name"`
		Prices map[string]decimal.Decimal `json:"prices_per_token"`
		Tokens map[string]int64           `json:"tokens"`
		Total  decimal.Decimal            `json:"total"`
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, v := range vectors {
		price, usage, covered := fromVector(v.Prices, v.Tokens)
		if !covered {
			continue // fees for things that are not tokens
		}
		checked++
		if got, ok := price.Cost(usage); !ok || !got.Equal(v.Total) {
			t.Errorf("%s: %s (%v), want %s", v.Name, got, ok, v.Total)
		}
	}
	if checked < 49 {
		t.Errorf("only %d of %d vectors were covered", checked, len(vectors))
	}
}

func fromVector(prices map[string]decimal.Decimal, tokens map[string]int64) (p gateway.Price, u gateway.Usage, ok bool) {
	for name, price := range prices {
		perMillion := decimal.NewNullDecimal(price.Shift(6))
		switch name {
		case "input":
			p.Input = perMillion
		case "output":
			p.Output = perMillion
		case "cache_read":
			p.CacheRead = perMillion
		case "cache_write_5m":
			p.CacheWrite = perMillion
		case "cache_write_1h":
			p.CacheWrite1h = perMillion
		case "audio_in", "input_audio":
			p.InputAudio = perMillion
		case "audio_out", "output_audio":
			p.OutputAudio = perMillion
		default:
			return p, u, false
		}
	}
	for name, n := range tokens {
		switch name {
		case "input_uncached":
			u.Input = n
		case "output":
			u.Output = n
		case "cache_read":
			u.CacheRead = n
		case "cache_write_5m":
			u.CacheWrite = n
		case "cache_write_1h":
			u.CacheWrite1h = n
		case "audio_in", "input_audio":
			u.InputAudio = n
		case "audio_out", "output_audio":
			u.OutputAudio = n
		default:
			return p, u, false
		}
	}
	return p, u, true
}

// Sums do not depend on their order, and ten tenths are one.
func TestSumsDoNotDrift(t *testing.T) {
	price := gateway.Price{Input: gateway.USD("0.1")}
	forward, backward := decimal.Zero, decimal.Zero
	random := rand.New(rand.NewPCG(3, 4))
	costs := make([]decimal.Decimal, 10_000)
	for i := range costs {
		costs[i], _ = price.Cost(gateway.Usage{Input: random.Int64N(1_000_000)})
		forward = forward.Add(costs[i])
	}
	for i := range costs {
		backward = backward.Add(costs[len(costs)-1-i])
	}
	if !forward.Equal(backward) {
		t.Errorf("%s in one order, %s in the other", forward, backward)
	}
	sum := decimal.Zero
	for range 10 {
		c, _ := price.Cost(gateway.Usage{Input: 1_000_000})
		sum = sum.Add(c)
	}
	if sum.String() != "1" {
		t.Errorf("ten times 0.1 is %s", sum)
	}
}

// Small amounts are computed with whole numbers, large and unusual ones with decimals: nobody can tell.
func TestCostIsExactOfAnySize(t *testing.T) {
	for _, price := range []string{"0", "0.15", "2.50", "0.000001", "0.0000001234", "75", "1e3", "123456789.123456"} {
		for _, tokens := range []int64{1, 999, 128_000, 1 << 40} {
			p := gateway.Price{Input: gateway.USD(price), Output: gateway.USD("0.60")}
			got, ok := p.Cost(gateway.Usage{Input: tokens, CacheRead: 7, Output: 3})
			want := gateway.USD(price).Decimal.Mul(decimal.NewFromInt(tokens + 7)).Add(decimal.RequireFromString("1.80")).Shift(-6)
			if !ok || !got.Equal(want) {
				t.Errorf("%d tokens at %s: %s, %v; want %s", tokens, price, got, ok, want)
			}
		}
	}
}
