package openaihttp

import (
	"errors"
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
	out := stallWriter{w: w, stall: h.stall, control: http.NewResponseController(w)}
	b := newBatch()
	defer b.free()
	for more := true; more; {
		more = b.next(res.Stream)
		if more && len(b.bytes()) < maxBatch && res.Stream.Buffered() {
			continue
		}
		if err := out.flush(b.bytes()); err != nil {
			return // the client is gone or takes nothing: closing the stream stops the upstream
		}
		b.free() // an idle stream holds no buffer
	}
	trailer(w.Header(), res.Record)
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

func newBatch() *batch { return &batch{} }

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

// appendEvent adds the text of the stream's next event to out, and reports whether more may follow.
func appendEvent(out []byte, s *gateway.Stream) ([]byte, bool) {
	event, err := s.Next()
	return appendOutcome(out, event, err), err == nil
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

// stallWriter gives a client a bounded time to take each piece of an answer, as long as it keeps taking.
type stallWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	armed   time.Time
}

func (s *stallWriter) write(p []byte) error {
	for len(p) > 0 {
		s.arm()
		n := min(len(p), maxWrite)
		if _, err := s.w.Write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func (s *stallWriter) flush(p []byte) error {
	if err := s.write(p); err != nil {
		return err
	}
	s.arm()
	return s.control.Flush()
}

// arm puts off the deadline, unless it was put off a moment ago: to set it costs about as much as a small write.
func (s *stallWriter) arm() {
	moment := s.stall / 32
	now := time.Now()
	if s.stall <= 0 || now.Sub(s.armed) < moment {
		return
	}
	s.armed = now
	_ = s.control.SetWriteDeadline(now.Add(s.stall + moment)) // net/http takes it off when the answer is done
}

// streamAlive serves a streamed call whose client is told at intervals that the connection is alive, also before the
// upstream has answered.
func (h *Handler) streamAlive(w *answer, r *http.Request, req *gateway.Request) {
	p := &pulse{out: stallWriter{w: w, stall: h.stall, control: http.NewResponseController(w)}, every: h.alive}
	p.begin = func() { startStream(w, nil) }
	if req.TraceID != "" {
		w.traceID = req.TraceID
	}
	p.start()
	res, err := h.client.Do(r.Context(), req)
	if err != nil {
		if begun := p.stop(); !begun {
			w.fail(err)
			return
		}
		_ = p.out.flush([]byte("data: " + string(errorBody(gateway.AsError(err))) + "\n\n"))
		return
	}
	if res.Stream == nil {
		if begun := p.stop(); !begun {
			h.plain(w, res)
		}
		return
	}
	defer res.Stream.Close()
	defer p.stop()
	p.mu.Lock()
	p.begin = func() { startStream(w, res.Record) }
	p.mu.Unlock()
	b := newBatch()
	defer b.free()
	for more := true; more; {
		more = b.next(res.Stream)
		if more && len(b.bytes()) < maxBatch && res.Stream.Buffered() {
			continue
		}
		if err := p.flush(b.bytes()); err != nil {
			return
		}
		b.free()
	}
	p.stop()
	trailer(w.Header(), res.Record)
}

// pulse writes a comment line after each stretch of silence.
type pulse struct {
	every time.Duration

	mu    sync.Mutex // guards the ResponseWriter and what follows
	out   stallWriter
	begin func() // sends the header
	begun bool
	over  bool
	err   error
	timer *time.Timer
}

func (p *pulse) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.every, p.beat)
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.err != nil {
		return
	}
	p.write([]byte(": keep-alive\n\n"))
	p.timer.Reset(p.every)
}

// write is called with mu held.
func (p *pulse) write(text []byte) {
	if !p.begun {
		p.begun = true
		p.begin()
	}
	if p.err == nil {
		p.err = p.out.flush(text)
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
	return p.begun
}
