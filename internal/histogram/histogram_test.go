package histogram_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gatewright/gateway/internal/histogram"
)

func TestQuantilesAreWithinTwoPercent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	distributions := map[string]func() time.Duration{
		"uniform":     func() time.Duration { return time.Duration(random.Int64N(int64(10 * time.Second))) },
		"exponential": func() time.Duration { return time.Duration(random.ExpFloat64() * float64(300*time.Millisecond)) },
		"narrow":      func() time.Duration { return 42*time.Millisecond + time.Duration(random.IntN(1000)) },
		"hours":       func() time.Duration { return time.Duration(random.Int64N(int64(10 * time.Hour))) },
	}
	for name, draw := range distributions {
		t.Run(name, func(t *testing.T) {
			var h histogram.Histogram
			samples := make([]time.Duration, 20_000)
			for i := range samples {
				samples[i] = draw()
				h.Add(samples[i])
			}
			slices.Sort(samples)
			qs := []float64{0.01, 0.5, 0.95, 0.99, 1}
			for i, got := range h.Quantiles(qs...) {
				want := samples[int(math.Ceil(qs[i]*float64(len(samples))))-1]
				if diff := (got - want).Abs(); float64(diff) > 0.02*float64(want)+float64(10*time.Microsecond) {
					t.Errorf("quantile %v is %v, want %v within 2 %%", qs[i], got, want)
				}
			}
		})
	}
}

func TestEmpty(t *testing.T) {
	var h histogram.Histogram
	if got := h.Quantiles(0.5, 0.99); !slices.Equal(got, []time.Duration{0, 0}) {
		t.Errorf("quantiles of nothing are %v, want zeros", got)
	}
	if h.Mean() != 0 || h.Count() != 0 {
		t.Errorf("mean %v and count %d of nothing, want zeros", h.Mean(), h.Count())
	}
}

func TestExtremesAreCounted(t *testing.T) {
	var h histogram.Histogram
	h.Add(-time.Second)
	h.Add(0)
	h.Add(math.MaxInt64)
	if h.Count() != 3 {
		t.Errorf("count is %d, want 3", h.Count())
	}
	if got := h.Quantiles(0.5)[0]; got != 0 {
		t.Errorf("median is %v, want 0", got)
	}
	if got := h.Quantiles(1)[0]; got < 11*time.Hour {
		t.Errorf("maximum is %v, want the top of the range", got)
	}
}

func TestMergeIsAddition(t *testing.T) {
	var both, a, b histogram.Histogram
	for i := range 1000 {
		d := time.Duration(i*i) * time.Microsecond
		both.Add(d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	qs := []float64{0.1, 0.5, 0.9, 0.99, 1}
	if got, want := a.Quantiles(qs...), both.Quantiles(qs...); !slices.Equal(got, want) {
		t.Errorf("merged quantiles are %v, want %v", got, want)
	}
	if a.Mean() != both.Mean() || a.Count() != both.Count() {
		t.Errorf("merged mean %v and count %d, want %v and %d", a.Mean(), a.Count(), both.Mean(), both.Count())
	}
}

func BenchmarkAdd(b *testing.B) {
	var h histogram.Histogram
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for d := time.Duration(0); pb.Next(); d += 7 * time.Microsecond {
			h.Add(d)
		}
	})
}
