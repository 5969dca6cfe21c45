package sample_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gatewright/gateway/bench/internal/sample"
)

func TestQuantile(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		q      float64
		want   float64
	}{
		{"odd", []float64{3, 1, 2}, 0.5, 2},
		{"even", []float64{4, 1, 3, 2}, 0.5, 2.5},
		{"one", []float64{7}, 0.9, 7},
		{"lowest", []float64{3, 1, 2}, 0, 1},
		{"highest", []float64{3, 1, 2}, 1, 3},
		{"interpolated", []float64{10, 20, 30, 40, 50}, 0.9, 46},
		{"an outlier does not move the median", []float64{1, 1, 1, 1, 1000}, 0.5, 1},
		{"below the range", []float64{1, 2}, -1, 1},
		{"above the range", []float64{1, 2}, 2, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			given := slices.Clone(test.values)
			if got := sample.Quantile(given, test.q); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if !slices.Equal(given, test.values) {
				t.Errorf("the values were sorted in place: %v", given)
			}
		})
	}
	if got := sample.Median(nil); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestCompareIsPaired(t *testing.T) {
	// The machine is ten times slower in the second half, for both alike.
	references := []float64{100, 100, 10, 10}
	values := []float64{120, 120, 12, 12}
	got := sample.Compare(values, references)
	if want := (sample.Ratio{Median: 1.2, Low: 1.2, High: 1.2}); !near(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCompareLeavesOutWhatIsMissing(t *testing.T) {
	got := sample.Compare([]float64{2, math.NaN(), 5, 4, 9}, []float64{1, 1, 0, 2})
	if want := (sample.Ratio{Median: 2, Low: 2, High: 2}); !near(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := sample.Compare(nil, nil); !math.IsNaN(got.Median) {
		t.Errorf("got %+v for nothing", got)
	}
}

func TestRotation(t *testing.T) {
	const n = 4
	first := make([]int, n)
	for round := range 2 * n {
		order := sample.Rotation(n, round)
		first[order[0]]++
		slices.Sort(order)
		if !slices.Equal(order, []int{0, 1, 2, 3}) {
			t.Errorf("round %d is no permutation", round)
		}
	}
	for i, count := range first {
		if count != 2 {
			t.Errorf("%d comes first %d times in %d rounds, want 2", i, count, 2*n)
		}
	}
	if got := sample.Rotation(n, 1); !slices.Equal(got, []int{1, 2, 3, 0}) {
		t.Errorf("round 1 is %v", got)
	}
	if got := sample.Rotation(n, 4); !slices.Equal(got, []int{3, 2, 1, 0}) {
		t.Errorf("round 4 is %v", got)
	}
	if got := sample.Rotation(0, 3); len(got) != 0 {
		t.Errorf("nobody: %v", got)
	}
}

func near(a, b sample.Ratio) bool {
	const tiny = 1e-12
	return math.Abs(a.Median-b.Median) < tiny && math.Abs(a.Low-b.Low) < tiny && math.Abs(a.High-b.High) < tiny
}
