package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gatewright/gateway/internal/sse"
)

// BenchmarkReader reads a burst of events of 250 bytes, as fast as they can be read.
func BenchmarkReader(b *testing.B) {
	data := `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}`
	data += strings.Repeat(" ", 242-len(data))
	for name, event := range map[string]string{
		"data":       "data: " + data + "\n\n",
		"crlf":       "data: " + data + "\r\n\r\n",
		"event+data": "event: message\ndata: " + data + "\n\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(event)))
			r := sse.NewReader(io.NopCloser(&repeated{event: event, left: b.N}), 0)
			for {
				if _, err := r.Next(); errors.Is(err, io.EOF) {
					return
				} else if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeated yields an event many times, 4 KiB a read at most.
type repeated struct {
	event string
	left  int
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for p = p[:min(len(p), 4<<10)]; n < len(p) && r.left > 0; {
		k := copy(p[n:], r.event[r.at:])
		n += k
		if r.at += k; r.at == len(r.event) {
			r.at = 0
			r.left--
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
