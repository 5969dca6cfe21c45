package upstream

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatewright/gateway"
)

// Answer is an upstream's answer. Its body is bound to the timeouts and to the caller's context. It must be closed.
type Answer struct {
	Status        int
	Header        http.Header
	ContentLength int64 // of the body as Read gives it; -1 if unknown

	caller context.Context //nolint:containedctx // the call's, which tells why an attempt was cancelled
	ctx    context.Context //nolint:containedctx // the attempt's, which ends with this value
	cancel context.CancelCauseFunc
	dog    *watchdog
	stream bool
	body   io.ReadCloser
	reader io.Reader // body, decompressed if need be

	output atomic.Bool // a stream's first output has come
	closed atomic.Bool
	once   sync.Once
}

func newAnswer(
	caller, ctx context.Context, cancel context.CancelCauseFunc, dog *watchdog, r *http.Response, stream bool,
) *Answer {
	a := &Answer{
		Status: r.StatusCode, Header: r.Header, ContentLength: r.ContentLength, caller: caller, ctx: ctx, cancel: cancel,
		dog: dog, stream: stream && r.StatusCode/100 == 2, body: r.Body, reader: r.Body,
	}
	// net/http has undone the compression that it asked for itself, and removed this header then.
	if strings.EqualFold(r.Header.Get("Content-Encoding"), "gzip") {
		a.reader, a.ContentLength = &gunzip{source: r.Body}, -1
	}
	if !a.stream {
		dog.enter(receiving)
	}
	return a
}

// Read reads from the answer's body.
func (a *Answer) Read(p []byte) (int, error) {
	a.dog.begin()
	n, err := a.reader.Read(p)
	a.dog.done()
	if err != nil {
		a.dog.stop()
	}
	return n, err
}

// Output tells that a stream's first output has come: from now on only silence is too long.
func (a *Answer) Output() {
	if !a.output.Swap(true) {
		a.dog.enter(receiving)
	}
}

// Close ends the attempt and with it the upstream's work. It may be called at any time, by any goroutine.
func (a *Answer) Close() error {
	a.once.Do(func() {
		a.closed.Store(true)
		a.dog.stop()
		a.cancel(nil)
		_ = a.body.Close()
	})
	return nil
}

const (
	maxDrain     = 64 << 10
	maxDrainTime = 50 * time.Millisecond
)

// Finish closes an answer whose content has been read, but perhaps not its end. It waits a moment for that end, so that
// the connection can be used again.
func (a *Answer) Finish() error {
	a.once.Do(func() {
		a.closed.Store(true)
		a.dog.stop()
		timer := time.AfterFunc(maxDrainTime, func() { a.cancel(nil) })
		_, _ = io.CopyN(io.Discard, a.body, maxDrain)
		timer.Stop()
		a.cancel(nil)
		_ = a.body.Close()
	})
	return nil
}

// Failure says what an error of Read means.
func (a *Answer) Failure(err error) *gateway.Error {
	if a.closed.Load() {
		return gateway.AsError(context.Canceled)
	}
	return a.classify(err)
}

// gunzip reads what it needs for a start only when it is read.
type gunzip struct {
	source io.Reader
	reader *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.reader == nil {
		reader, err := gzip.NewReader(g.source)
		if err != nil {
			return 0, err
		}
		g.reader = reader
	}
	return g.reader.Read(p)
}
