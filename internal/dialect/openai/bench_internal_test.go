package openai

import (
	"io"
	"strings"
	"testing"

	"github.com/gatewright/gateway/internal/sse"
)

const benchChunk = `{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_b0b2a7c1d4","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}`

// BenchmarkReadChunk looks at one chunk of a usual stream.
func BenchmarkReadChunk(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c, ok := readChunk(benchChunk)
		if !ok || !c.output || c.cutTo == 0 {
			b.Fatal(c, ok)
		}
	}
}

// BenchmarkWalkChunks reads, inspects and rewrites the chunks of a burst.
func BenchmarkWalkChunks(b *testing.B) {
	event := "data: " + benchChunk + "\n\n"
	b.ReportAllocs()
	r := sse.NewReader(io.NopCloser(io.LimitReader(&endless{event: strings.Repeat(event, 20)}, int64(b.N*len(event)))), 0)
	var t template
	var k keeper
	for {
		view, err := r.NextView()
		if err != nil {
			return
		}
		c, _ := t.read(asString(view.Data))
		if pending := r.Pending(); pending > 0 && len(k.free) < len(view.Data) {
			k.expect(len(view.Data) + pending)
		}
		e := c.event(asString(view.Data), false, &k)
		if !e.Output {
			b.Fatal(e)
		}
	}
}

type endless struct {
	event string
	at    int
}

func (r *endless) Read(p []byte) (int, error) {
	n := copy(p, r.event[r.at:])
	r.at = (r.at + n) % len(r.event)
	return n, nil
}
