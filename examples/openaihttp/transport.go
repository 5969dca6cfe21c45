package openaihttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gatewright/gateway"
)

// Transport returns an [http.RoundTripper] that answers from client inside the process: give it to an official OpenAI
// SDK as its HTTP client's transport, with any base URL that ends in /v1 and any key. Plain and streamed calls behave as
// over [New], but for what needs a socket. The request's context governs the call, a stream's body included, which must
// be closed.
func Transport(client *gateway.Client, options ...Option) http.RoundTripper {
	h := New(client, options...)
	if len(h.keys.byHash) == 0 && h.others == nil {
		h.open = true // nobody but this program can reach it
	}
	return &transport{h}
}

type transport struct{ handler *Handler }

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body := r.Body
	if body == nil {
		body = http.NoBody
	}
	defer body.Close()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.GetBody == nil && body != http.NoBody { // it may wait for somebody
		defer context.AfterFunc(r.Context(), func() { _ = body.Close() })()
	}
	in := r.Clone(r.Context())
	in.Body = body
	if in.ContentLength == 0 && body != http.NoBody {
		in.ContentLength = -1 // net/http's clients say 0 for unknown
	}
	in.URL.Path = routePath(r.URL.Path)
	w := &memoryWriter{header: make(http.Header), status: http.StatusOK}
	a := &answer{ResponseWriter: w, traceID: traceID(in.Header)}
	a.stream = func(res *gateway.Response) { w.stream = res }
	t.handler.serve(a, in)
	if err := r.Context().Err(); err != nil && w.stream == nil {
		return nil, err
	}
	out := &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.header, Request: r,
	}
	if w.stream != nil {
		out.ContentLength, out.Trailer = -1, make(http.Header)
		out.Body = &streamBody{request: r, stream: w.stream.Stream, record: w.stream.Record, trailer: out.Trailer}
		w.header.Del("Trailer")
		return out, nil
	}
	out.ContentLength = int64(w.body.Len())
	out.Body = io.NopCloser(&w.body)
	return out, nil
}

// routePath leaves out what a base URL may have before /v1.
func routePath(p string) string {
	p = path.Clean("/" + p)
	if i := strings.Index(p, "/v1/"); i >= 0 {
		return p[i:]
	}
	return p
}

// memoryWriter keeps an answer in memory.
type memoryWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
	stream *gateway.Response
}

func (w *memoryWriter) Header() http.Header         { return w.header }
func (w *memoryWriter) WriteHeader(status int)      { w.status = status }
func (w *memoryWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// streamBody reads as the text of a stream's events, each as soon as it has come.
type streamBody struct {
	request *http.Request
	stream  *gateway.Stream
	record  *gateway.Record
	trailer http.Header

	events batch
	rest   []byte // of the events, not yet read
	over   bool
	closed atomic.Bool
}

// Read implements [io.Reader].
func (b *streamBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		b.events.free()
		if b.over {
			return 0, b.end()
		}
		if more := b.events.next(b.stream); !more {
			b.over = true
			trailer(b.trailer, b.record)
			if err := b.end(); !errors.Is(err, io.EOF) {
				return 0, err
			}
		}
		b.rest = b.events.bytes()
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// end is what stands at the end of the body: as with net/http's own, the reader's doing is an error of its own.
func (b *streamBody) end() error {
	if b.closed.Load() {
		return http.ErrBodyReadAfterClose
	}
	if err := b.request.Context().Err(); err != nil {
		return err
	}
	return io.EOF
}

// Close implements [io.Closer]. It may be called while Read waits.
func (b *streamBody) Close() error {
	b.closed.Store(true)
	return b.stream.Close()
}
