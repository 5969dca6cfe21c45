package openaihttp

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gatewright/gateway"
)

// bodyReader reads request bodies within bounds of size, of time, and of what all of them take together.
type bodyReader struct {
	max     int64
	timeout time.Duration
	room    *room
}

// room is the memory that all bodies in flight may take.
type room struct {
	size int64
	used atomic.Int64
}

func (r *room) take(n int64) bool {
	if r.used.Add(n) > r.size {
		r.used.Add(-n)
		return false
	}
	return true
}

// reserved is what one body takes of the room.
type reserved struct {
	room *room
	n    int64
}

func (r *reserved) grow(n int64) error {
	if n <= r.n {
		return nil
	}
	if !r.room.take(n - r.n) {
		return errNoRoom
	}
	r.n = n
	return nil
}

func (r *reserved) release() { r.room.used.Add(-r.n); r.n = 0 }

var (
	errNoRoom   = errors.New("no room for the body")
	errTooLarge = errors.New("the body is too large")
)

// read reads the body of r. The reservation is released by the caller when the body is no longer needed.
func (b *bodyReader) read(w http.ResponseWriter, r *http.Request, held *reserved) ([]byte, *gateway.Error) {
	if err := checkContentType(r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	if r.ContentLength > b.max {
		return nil, b.tooLarge()
	}
	source := io.Reader(r.Body)
	length := r.ContentLength
	if b.timeout > 0 {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.timeout)); err == nil {
			// Without a deadline the connection stays readable for the client's next request, and for noticing its end.
			defer func() { _ = http.NewResponseController(w).SetReadDeadline(time.Time{}) }()
			if length < 0 || length > stretch {
				source = &pacedReader{Reader: r.Body, w: w, timeout: b.timeout}
			}
		}
	}
	var err error
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		// What comes in is bounded too: an endless row of empty members unzips to nothing.
		source, err = gzip.NewReader(&cappedReader{source, b.max})
		length = -1
	default:
		return nil, unsupported("the content encoding " + quoted(encoding) + " is not supported; use gzip or none")
	}
	var body []byte
	if err == nil {
		body, err = readAll(source, length, b.max, held)
	}
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, errTooLarge):
		return nil, b.tooLarge()
	case errors.Is(err, errNoRoom):
		return nil, &gateway.Error{
			Kind: gateway.ErrOverloaded, Status: http.StatusServiceUnavailable, Code: "gateway_overloaded",
			Message: "the gateway holds too many request bodies at the moment", RetryAfter: time.Second,
			Outcome: gateway.OutcomeNotSent,
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &gateway.Error{
			Kind: gateway.ErrInvalidRequest, Status: http.StatusRequestTimeout, Code: "request_timeout",
			Message: "the request body did not arrive in time", Outcome: gateway.OutcomeRejected, Err: err,
		}
	case r.Context().Err() != nil:
		return nil, gateway.AsError(r.Context().Err())
	case isCorrupt(err):
		return nil, badBody("the request body is not valid gzip data", err)
	default:
		return nil, badBody("the request body cannot be read", err)
	}
}

// readAll reads source into one buffer. A declared length is believed only so far as the client keeps to it: up to a
// MiB at once, and eight times as much as has come.
func readAll(source io.Reader, length, limit int64, held *reserved) ([]byte, error) {
	const trusted = 1 << 20
	size := min(max(length, 0)+1, trusted)
	if length < 0 {
		size = 4 << 10
	}
	if err := held.grow(size); err != nil {
		return nil, err
	}
	body := make([]byte, 0, size)
	for {
		if len(body) == cap(body) {
			next := int64(cap(body)) * 2
			if length >= 0 { // one byte more, to see the end without growing again
				next = max(min(int64(cap(body))*8, length+1), int64(cap(body))+1)
			}
			if err := held.grow(next); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, next), body...)
		}
		n, err := source.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > limit {
			return nil, errTooLarge
		}
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// stretch is how much of a body a client must send within the timeout. Were it a single byte, a body could drip for days.
const stretch = 16 << 10

// pacedReader gives the client the timeout anew for each stretch of its body.
type pacedReader struct {
	io.Reader

	w       http.ResponseWriter
	timeout time.Duration
	got     int // of the present stretch
}

func (r *pacedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.got += n; r.got >= stretch {
		r.got = 0
		_ = http.NewResponseController(r.w).SetReadDeadline(time.Now().Add(r.timeout))
	}
	return n, err
}

// cappedReader fails when more comes than is left.
type cappedReader struct {
	io.Reader

	left int64
}

func (r *cappedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return n, errTooLarge
	}
	return n, err
}

func checkContentType(value string) *gateway.Error {
	if value == "" || value == contentTypeJSON {
		return nil
	}
	media, _, err := mime.ParseMediaType(value)
	if err == nil && (media == contentTypeJSON || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return unsupported("the content type " + quoted(value) + " is not supported; send application/json")
}

func unsupported(message string) *gateway.Error {
	return &gateway.Error{
		Kind: gateway.ErrInvalidRequest, Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
		Message: message, Outcome: gateway.OutcomeRejected,
	}
}

func (b *bodyReader) tooLarge() *gateway.Error {
	return &gateway.Error{
		Kind: gateway.ErrInvalidRequest, Status: http.StatusRequestEntityTooLarge, Code: "request_too_large",
		Message: fmt.Sprintf("the request body is larger than %d bytes", b.max), Outcome: gateway.OutcomeRejected,
	}
}

func badBody(message string, err error) *gateway.Error {
	return &gateway.Error{
		Kind: gateway.ErrInvalidRequest, Status: http.StatusBadRequest, Code: "invalid_body",
		Message: message, Outcome: gateway.OutcomeRejected, Err: err,
	}
}

// isCorrupt reports whether the error is one of unzipping.
func isCorrupt(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}

// refuse answers with an error before the body has been read, and reads on for a moment: a connection that is closed with
// unread bytes is reset, and the reset can overtake the answer.
func refuse(w *answer, r *http.Request, err error) {
	const (
		moment = 500 * time.Millisecond
		most   = 8 << 20
	)
	control := http.NewResponseController(w)
	bounded := control.SetReadDeadline(time.Now().Add(moment)) == nil // also for what net/http itself reads on
	w.fail(err)
	if !bounded {
		return // there is no connection
	}
	_ = control.Flush()
	_, _ = io.CopyN(io.Discard, r.Body, most)
}
