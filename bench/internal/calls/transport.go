package calls

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway/bench/internal/wire"
)

// Transport is an [http.RoundTripper] that answers from memory, at once.
type Transport struct {
	answer []byte
	stream []byte

	text         string // of the answer
	tokens       int64
	chunks       int // of the stream, without [DONE]
	streamedText int
}

// NewTransport returns a Transport whose streams have the given number of events with text.
func NewTransport(events int) *Transport {
	t := &Transport{answer: wire.Answer(), text: wire.Text, tokens: wire.CompletionTokens}
	for _, event := range wire.Events(events) {
		t.stream = append(t.stream, event...)
		data := strings.TrimSpace(strings.TrimPrefix(string(event), "data: "))
		if data == "[DONE]" {
			continue
		}
		t.chunks++
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			panic(err) // the package's own document
		}
		for _, choice := range c.Choices {
			t.streamedText += len(choice.Delta.Content)
		}
	}
	return t
}

// The headers that matter to a client; shared, as no client writes to them.
//
//nolint:gochecknoglobals // tables that never change
var (
	jsonHeader   = http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_7f2f"}}
	streamHeader = http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "X-Request-Id": {"req_7f2f"}}
)

// RoundTrip implements [http.RoundTripper]. It reads the request as a real transport does, and refuses one that does
// not ask for the upstream's model.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body := make([]byte, max(req.ContentLength, 0))
	if _, err := io.ReadFull(req.Body, body); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if err := req.Body.Close(); err != nil {
		return nil, fmt.Errorf("close the request: %w", err)
	}
	response := &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: jsonHeader, ContentLength: int64(len(t.answer)), Request: req,
	}
	switch {
	case !bytes.Contains(body, []byte(wire.Model)) || !bytes.Contains(body, []byte(wire.Question)):
		return nil, fmt.Errorf("not the benchmark's request: %s", body)
	case bytes.Contains(body, []byte(`"stream":true`)):
		response.Header, response.ContentLength = streamHeader, -1
		response.Body = &memory{rest: t.stream}
	default:
		response.Body = &memory{rest: t.answer}
	}
	return response, nil
}

// memory is a body that gives out at most as much at once as net/http does from its own buffer.
type memory struct{ rest []byte }

// Read implements [io.Reader].
func (m *memory) Read(p []byte) (int, error) {
	const atOnce = 4096
	if len(m.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), atOnce)], m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (*memory) Close() error { return nil }
