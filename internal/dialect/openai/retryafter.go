package openai

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is what a wait above it is taken for: long enough that no call waits for it, and no overflow.
const maxRetryAfter = 30 * 24 * time.Hour

// RetryAfter returns how long an answer asks to wait: retry-after-ms before Retry-After in seconds, fractions or one of
// the three forms of an HTTP date. It is negative when the answer asks for no wait, and 0 when it does not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := parseWait(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if d, ok := parseWait(value, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return saturate(at.Sub(now))
	}
	return 0
}

// parseWait reads a plain decimal number of units.
func parseWait(value string, unit time.Duration) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" || strings.Trim(value, "+-.0123456789") != "" {
		return 0, false // ParseFloat would take 0x1p3, inf and 1_0 as well
	}
	number, err := strconv.ParseFloat(value, 64)
	if err != nil && !math.IsInf(number, 0) {
		return 0, false
	}
	if number > maxRetryAfter.Seconds()*1000 {
		return maxRetryAfter, true
	}
	return saturate(time.Duration(max(number, -1) * float64(unit))), true
}

// saturate makes a wait that is over negative, as 0 means that none was asked for.
func saturate(d time.Duration) time.Duration {
	if d <= 0 {
		return -1
	}
	return min(d, maxRetryAfter)
}
