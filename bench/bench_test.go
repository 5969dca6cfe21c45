package bench_test

import (
	"testing"

	"github.com/gatewright/gateway/bench/internal/calls"
)

// streamEvents is how many events with text a stream has.
const streamEvents = 200

func contenders(tb testing.TB) []calls.Contender {
	tb.Helper()
	all, err := calls.All(streamEvents)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// What all of them return is the same, so what they cost can be compared.
func TestContendersAgree(t *testing.T) {
	transport := calls.NewTransport(streamEvents)
	for _, c := range contenders(t) {
		if err := c.Check(t.Context(), transport); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkChat makes one plain call.
func BenchmarkChat(b *testing.B) {
	for _, c := range contenders(b) {
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.Chat(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStream makes one streamed call with 203 events; ns/event is what counts.
func BenchmarkStream(b *testing.B) {
	for _, c := range contenders(b) {
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				n, _, _, err := c.Stream(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				events += n
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}
