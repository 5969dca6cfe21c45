package openaihttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gatewright/gateway"
)

const (
	maxBatch = 32 << 10 // events that arrived together are written together, up to this much
	maxWrite = 16 << 10 // the most that a client must take within the write stall
)

// stream writes a streamed answer. An event is written as soon as no further one is at hand: a client never waits for
// what has arrived, and events that arrived together cost one write.
func (h *Handler) stream(w *answer, res *gateway.Response) {
	defer res.Stream.Close()
	startStream(w, res.Record)
	if pass(res.Stream, w.flush) == nil {
		trailer(w.Header(), res.Record)
	}
}

// pass writes a stream's events to the end. An error means that the client is gone or takes nothing: closing the stream
// then stops the upstream.
func pass(s *gateway.Stream, flush func([]byte) error) error {
	var b batch
	defer b.free()
	for more := true; more; {
		more = b.next(s)
		if more && len(b.bytes()) < maxBatch && s.Buffered() {
			continue
		}
		if err := flush(b.bytes()); err != nil {
			return err
		}
		b.free() // an idle stream holds no buffer
	}
	return nil
}

func startStream(w *answer, r *gateway.Record) {
	header := w.Header()
	header["Content-Type"] = []string{contentTypeStream}
	header["Cache-Control"] = []string{"no-cache"}
	header["X-Accel-Buffering"] = []string{"no"}
	header["Trailer"] = []string{strings.Join([]string{headerCost, trailerPrompt, trailerCompletion, trailerOutcome}, ", ")}
	if r != nil {
		setTraceID(header, r.TraceID)
		header[headerProvider] = []string{r.Provider}
		header[headerModel] = []string{r.ModelUpstream}
		header[headerAttempts] = []string{strconv.Itoa(len(r.Attempts) + 1)}
		header[headerLatency] = []string{strconv.FormatInt(time.Since(r.Time).Milliseconds(), 10)}
	}
	w.WriteHeader(http.StatusOK)
}

// trailer says what is known only at the end of a stream.
func trailer(header http.Header, r *gateway.Record) {
	header[trailerOutcome] = []string{r.Outcome.String()}
	if r.UsageSource == gateway.UsageReported {
		header[trailerPrompt] = []string{strconv.FormatInt(r.Usage.PromptTokens(), 10)}
		header[trailerCompletion] = []string{strconv.FormatInt(r.Usage.CompletionTokens(), 10)}
	}
	if r.CostUSD != nil {
		header[headerCost] = []string{r.CostUSD.StringFixed(6)}
	}
}

// batch collects the text of events.
type batch struct{ buf *[]byte }

//nolint:gochecknoglobals // buffers for batches; a benchmark shows the gain
var batches = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

func (b *batch) bytes() []byte {
	if b.buf == nil {
		return nil
	}
	return *b.buf
}

func (b *batch) free() {
	if b.buf != nil && cap(*b.buf) <= 2*maxBatch {
		*b.buf = (*b.buf)[:0]
		batches.Put(b.buf)
	}
	b.buf = nil
}

// next adds the stream's next event, waiting for it, and those that came with it, and reports whether more may follow.
func (b *batch) next(s *gateway.Stream) bool {
	event, err := s.Next() // before a buffer is taken: it may take long
	if b.buf == nil {
		b.buf, _ = batches.Get().(*[]byte)
	}
	*b.buf = appendOutcome(*b.buf, event, err)
	if err == nil {
		*b.buf = s.AppendBuffered(*b.buf, maxBatch)
	}
	return err == nil
}

// appendOutcome adds what Next returned: an event, the end, or an error, which is an event of its own and no end that
// could be taken for a good one.
func appendOutcome(out []byte, event gateway.Event, err error) []byte {
	out = append(out, "data: "...)
	switch {
	case err == nil:
		out = appendLine(out, event.Data)
	case errors.Is(err, io.EOF):
		out = append(out, "[DONE]"...)
	default:
		out = append(out, errorBody(gateway.AsError(err))...)
	}
	return append(out, "\n\n"...)
}

// appendLine adds a JSON document as one line. A line end in it can only stand between tokens, where a space means the
// same.
func appendLine(out []byte, data string) []byte {
	if strings.IndexByte(data, '\n') < 0 && strings.IndexByte(data, '\r') < 0 {
		return append(out, data...)
	}
	for _, c := range []byte(data) {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		out = append(out, c)
	}
	return out
}

// streamAlive serves a streamed call whose client is told at intervals that the connection is alive, also before the
// upstream has answered.
func (h *Handler) streamAlive(w *answer, r *http.Request, req *gateway.Request) {
	p := &pulse{w: w, every: h.alive}
	p.start()
	defer p.stop()
	res, err := h.client.Do(r.Context(), req)
	if err == nil && res.Stream != nil {
		defer res.Stream.Close()
		p.answered(res.Record)
		if pass(res.Stream, p.flush) == nil {
			p.stop()
			trailer(w.Header(), res.Record)
		}
		return
	}
	begun := p.stop()
	switch {
	case !begun && err != nil:
		w.fail(err)
	case !begun:
		h.plain(w, res)
	case err == nil:
		err = &gateway.Error{
			Kind: gateway.ErrUpstream, Code: "upstream_invalid_answer", Message: "the upstream did not answer with a stream",
		}
		fallthrough
	default: // it is too late for a status
		_ = w.flush(appendOutcome(nil, gateway.Event{}, err))
	}
}

// pulse writes a comment line after each stretch of silence.
type pulse struct {
	every time.Duration

	mu     sync.Mutex // guards the ResponseWriter and what follows
	w      *answer
	record *gateway.Record // nil until the upstream has answered
	over   bool
	err    error
	timer  *time.Timer
}

func (p *pulse) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.every, p.beat)
}

// answered tells of whom the header is to speak, if it has not gone out yet.
func (p *pulse) answered(r *gateway.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record = r
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.err != nil {
		return
	}
	defer func() { // a ResponseWriter that panics must not take the process with it
		if cause := recover(); cause != nil {
			p.err = fmt.Errorf("panic while writing: %v", cause)
		}
	}()
	p.write([]byte(": keep-alive\n\n"))
	p.timer.Reset(p.every)
}

// write is called with mu held.
func (p *pulse) write(text []byte) {
	if !p.w.wroteHeader {
		startStream(p.w, p.record)
	}
	if p.err == nil {
		p.err = p.w.flush(text)
	}
}

func (p *pulse) flush(text []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(text)
	p.timer.Reset(p.every)
	return p.err
}

// stop ends the pulse and reports whether the header has gone out.
func (p *pulse) stop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
	return p.w.wroteHeader
}
