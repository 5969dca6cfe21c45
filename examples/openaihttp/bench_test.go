package openaihttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/examples/openaihttp"
)

// discard takes an answer as a connection would, without one.
type discard struct {
	header http.Header
	status int
	bytes  int64
}

func (d *discard) Header() http.Header              { return d.header }
func (d *discard) WriteHeader(status int)           { d.status = status }
func (d *discard) Write(p []byte) (int, error)      { d.bytes += int64(len(p)); return len(p), nil }
func (*discard) FlushError() error                  { return nil }
func (*discard) SetReadDeadline(_ time.Time) error  { return nil }
func (*discard) SetWriteDeadline(_ time.Time) error { return nil }
func (d *discard) reset()                           { clear(d.header); d.status = 0 }

// incoming is a request as net/http hands it on, to be used again and again.
type incoming struct {
	request *http.Request
	body    *bytes.Reader
	text    []byte
}

func newIncoming(b *testing.B, body string) *incoming {
	b.Helper()
	in := &incoming{text: []byte(body), body: new(bytes.Reader)}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, chatPath, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	r.ContentLength = int64(len(body))
	r.Header.Set("Authorization", "Bearer bench-key")
	r.Header.Set("Content-Type", "application/json")
	in.request = r
	return in
}

func (in *incoming) next() *http.Request {
	in.body.Reset(in.text)
	in.request.Body = io.NopCloser(in.body)
	return in.request
}

func benchHandler(b *testing.B, do gateway.HandlerFunc) http.Handler {
	b.Helper()
	client, err := gateway.New(
		gateway.WithProvider(gateway.NewProvider("memory", do)),
		gateway.WithAlias(gateway.Alias{Name: "m", Candidates: []gateway.Candidate{{
			Provider: "memory", Model: "m", Price: &gateway.Price{Input: gateway.USD("2"), Output: gateway.USD("8")},
		}}}))
	if err != nil {
		b.Fatal(err)
	}
	return openaihttp.New(client, openaihttp.WithKeys(openaihttp.Key{Name: "bench", Hash: openaihttp.HashKey("bench-key")}))
}

func serveBench(b *testing.B, handler http.Handler, in *incoming) {
	b.Helper()
	w := &discard{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		w.reset()
		handler.ServeHTTP(w, in.next())
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
	}
}

// BenchmarkPlain is a plain call through the whole handler and Client, with a provider that answers from memory.
func BenchmarkPlain(b *testing.B) {
	answer := []byte(`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
	usage := &gateway.Usage{Input: 100, Output: 50}
	for _, size := range []int{300, 100 << 10} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			handler := benchHandler(b, func(context.Context, *gateway.Request) (*gateway.Response, error) {
				return &gateway.Response{Body: answer, Usage: usage}, nil
			})
			serveBench(b, handler, newIncoming(b, `{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("x", size)+`"}]}`))
		})
	}
}

// BenchmarkStream is a streamed call of 200 events, all at hand at once or each after a wait.
func BenchmarkStream(b *testing.B) {
	list := make([]gateway.Event, 200)
	for i := range list {
		list[i] = gateway.Event{Data: `{"id":"x","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`, Output: true}
	}
	list[len(list)-1].Finished = true
	for name, source := range map[string]func() gateway.EventReader{
		"burst":      func() gateway.EventReader { return gateway.EventSlice(list...) },
		"one by one": func() gateway.EventReader { return oneByOne{gateway.EventSlice(list...)} },
	} {
		b.Run(name, func(b *testing.B) {
			handler := benchHandler(b, func(context.Context, *gateway.Request) (*gateway.Response, error) {
				return &gateway.Response{Stream: gateway.NewStream(source())}, nil
			})
			serveBench(b, handler, newIncoming(b, `{"model":"m","stream":true,"messages":[]}`))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list)), "ns/event")
		})
	}
}

// oneByOne never knows of a next event.
type oneByOne struct{ gateway.EventReader }
