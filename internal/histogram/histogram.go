// Package histogram counts durations in buckets whose width grows with the value, so that percentiles of any number of
// samples are known to within 2 % in a fixed 8 KiB or so, and two histograms can be merged by adding them up.
package histogram

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	unit          = 10 * time.Microsecond // the finest difference that is kept
	precisionBits = 5                     // 2^5 buckets for each doubling: at most 1/64 off the middle of a bucket
	perDoubling   = 1 << precisionBits
	doublings     = 32 // up to 2^32 units ≈ 12 hours
	buckets       = perDoubling * (doublings - precisionBits + 1)
)

// Histogram is a set of durations. The zero value is empty and ready to use. It is safe for concurrent use.
type Histogram struct {
	counts [buckets]atomic.Uint64
	count  atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

// Add counts d. A negative d counts as 0, one beyond the range as the largest.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[index(uint64(d/unit))].Add(1)
	h.count.Add(1)
	h.sum.Add(int64(d))
}

// index returns the bucket of v: v itself while small, then the leading bits of v.
func index(v uint64) int {
	if v < perDoubling {
		return int(v)
	}
	shift := bits.Len64(v) - precisionBits - 1
	return min((shift+1)<<precisionBits+int(v>>shift)-perDoubling, buckets-1)
}

// value returns the middle of bucket i.
func value(i int) time.Duration {
	if i < perDoubling {
		return time.Duration(i) * unit
	}
	shift := i>>precisionBits - 1
	low := uint64(i&(perDoubling-1)|perDoubling) << shift
	return time.Duration(low)*unit + time.Duration(uint64(unit)<<shift)/2
}

// Merge adds all of other to h.
func (h *Histogram) Merge(other *Histogram) {
	for i := range other.counts {
		if n := other.counts[i].Load(); n > 0 {
			h.counts[i].Add(n)
		}
	}
	h.count.Add(other.count.Load())
	h.sum.Add(other.sum.Load())
}

// Count returns how many durations have been added.
func (h *Histogram) Count() uint64 { return h.count.Load() }

// Mean returns their exact mean, 0 when there are none.
func (h *Histogram) Mean() time.Duration {
	n := h.count.Load()
	if n == 0 {
		return 0
	}
	return time.Duration(h.sum.Load() / int64(n))
}

// Quantiles returns, for each q in ascending order from 0 to 1, a duration that about that share of the samples does
// not exceed; zeros when there are none.
func (h *Histogram) Quantiles(qs ...float64) []time.Duration {
	result := make([]time.Duration, len(qs))
	var total uint64
	var counts [buckets]uint64
	for i := range h.counts {
		counts[i] = h.counts[i].Load()
		total += counts[i]
	}
	if total == 0 {
		return result
	}
	next, seen := 0, uint64(0)
	for i, n := range &counts {
		seen += n
		for next < len(qs) && n > 0 && seen >= uint64(max(1, math.Ceil(qs[next]*float64(total)))) {
			result[next] = value(i)
			next++
		}
	}
	return result
}
