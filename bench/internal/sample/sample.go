// Package sample holds the little statistics that the benchmarks need: medians, quantiles, and ratios of what was
// measured side by side.
package sample

import (
	"math"
	"slices"
)

// Median returns the middle of the values, or the mean of the two in the middle; NaN when there are none.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile returns the q-quantile of the values, 0 ≤ q ≤ 1, with linear interpolation; NaN when there are none. The
// values keep their order.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	at := min(max(q, 0), 1) * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (sorted[above]-sorted[below])*(at-float64(below))
}

// Ratio is how something compares with the reference that was measured in the same rounds.
type Ratio struct {
	Median    float64
	Low, High float64 // the quartiles: half of the rounds lie between them
}

// Compare returns the ratio of values to references, round by round. Rounds in which either is missing (NaN, or a zero
// reference) do not count. Pairing cancels what the machine did meanwhile, as long as it did it to the whole round.
func Compare(values, references []float64) Ratio {
	var ratios []float64
	for i := range min(len(values), len(references)) {
		if r := values[i] / references[i]; !math.IsNaN(r) && !math.IsInf(r, 0) {
			ratios = append(ratios, r)
		}
	}
	return Ratio{Median: Median(ratios), Low: Quantile(ratios, 0.25), High: Quantile(ratios, 0.75)}
}

// Rotation returns the order of n contenders in a round: each round begins with another one, and every other lap runs
// backwards, so that nobody always comes after the same neighbour.
func Rotation(n, round int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = (i + round) % n
	}
	if n > 0 && round/n%2 == 1 {
		slices.Reverse(order)
	}
	return order
}
