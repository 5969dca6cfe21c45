package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/bench/internal/wire"
)

// lean is what one would write by hand for the least of a gateway's duties: check the key, put the upstream's model and
// key into the request, pass the answer on, and count its tokens. It knows one upstream, never retries, limits, prices
// or records, and trusts both sides.
type lean struct {
	target    *url.URL
	key       [sha256.Size]byte
	transport http.RoundTripper
	buffers   sync.Pool // *[]byte

	requests, tokens atomic.Int64
}

func newLean(target *url.URL) *lean {
	endpoint := *target
	endpoint.Path = "/v1/chat/completions"
	return &lean{
		target: &endpoint, key: sha256.Sum256([]byte("Bearer " + gatewayKey)), transport: newTransport(),
		buffers: sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }},
	}
}

// ServeHTTP implements [http.Handler].
func (l *lean) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	presented := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	if subtle.ConstantTimeCompare(presented[:], l.key[:]) != 1 {
		http.Error(w, `{"error":{"message":"wrong key"}}`, http.StatusUnauthorized)
		return
	}
	in, out := l.buffer(), l.buffer()
	defer l.buffers.Put(in)
	defer l.buffers.Put(out)
	var err error
	if *in, err = appendAll(*in, r.Body, r.ContentLength); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var stream bool
	if *out, stream, err = withModel(*out, *in, wire.Model); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req := (&http.Request{
		Method: http.MethodPost, URL: l.target, Host: l.target.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sk-upstream"}},
		Body:   io.NopCloser(bytes.NewReader(*out)), ContentLength: int64(len(*out)),
	}).WithContext(r.Context())
	res, err := l.transport.RoundTrip(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	l.requests.Add(1)
	header := w.Header()
	header["Content-Type"] = res.Header["Content-Type"]
	if stream {
		l.stream(w, res, in)
		return
	}
	if *in, err = appendAll((*in)[:0], res.Body, res.ContentLength); err != nil {
		panic(http.ErrAbortHandler)
	}
	l.count(*in)
	header["Content-Length"] = []string{strconv.Itoa(len(*in))}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(*in)
}

// stream passes on what each read brings and flushes it, and looks into whole lines for the usage report.
func (l *lean) stream(w http.ResponseWriter, res *http.Response, buffer *[]byte) {
	w.WriteHeader(res.StatusCode)
	flush := http.NewResponseController(w)
	piece := (*buffer)[:cap(*buffer)]
	kept := 0 // of a line that has not ended yet
	for {
		n, err := res.Body.Read(piece[kept:])
		if n > 0 {
			if _, err := w.Write(piece[kept : kept+n]); err != nil {
				return
			}
			if flush.Flush() != nil {
				return
			}
			seen := piece[:kept+n]
			end := bytes.LastIndexByte(seen, '\n') + 1
			if i := bytes.Index(seen[:end], []byte(`"usage":{`)); i >= 0 {
				usage, _, _ := bytes.Cut(seen[i:end], []byte("\n"))
				l.count(append([]byte{'{'}, usage...))
			}
			if kept = copy(piece, seen[end:]); kept == len(piece) {
				kept = 0 // a line that long has no usage
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// count adds an answer's tokens.
func (l *lean) count(document []byte) {
	var answer struct {
		Usage struct {
			Total int64 `json:"total_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(document, &answer) == nil {
		l.tokens.Add(answer.Usage.Total)
	}
}

func (l *lean) buffer() *[]byte {
	b, _ := l.buffers.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

// appendAll appends what r holds, which is likely to be length bytes.
func appendAll(b []byte, r io.Reader, length int64) ([]byte, error) {
	if need := len(b) + int(max(length, 0)) + 1; cap(b) < need {
		b = append(make([]byte, 0, need), b...)
	}
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// withModel appends the document with another model to b. It checks the document as a whole.
func withModel(b, document []byte, model string) (out []byte, stream bool, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(document))
	if _, err := d.ReadToken(); err != nil {
		return b, false, err
	}
	var from, to int64
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return b, false, err
		}
		isModel, isStream := string(name) == `"model"`, string(name) == `"stream"`
		value, err := d.ReadValue()
		if err != nil {
			return b, false, err
		}
		if isModel {
			to = d.InputOffset()
			from = to - int64(len(value))
		}
		stream = stream || isStream && string(value) == "true"
	}
	if _, err := d.ReadToken(); err != nil {
		return b, false, err
	}
	if to == 0 {
		return b, false, errors.New("no model")
	}
	b = append(b, document[:from]...)
	b = strconv.AppendQuote(b, model)
	return append(b, document[to:]...), stream, nil
}
