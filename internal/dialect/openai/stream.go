package openai

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/internal/sse"
	"github.com/gatewright/gateway/internal/upstream"
)

// Stream reads an upstream's streamed answer. It implements [gateway.EventReader].
type Stream struct {
	upstream Upstream
	answer   *upstream.Answer
	source   *source
	events   *sse.Reader
	options  StreamOptions
	repair   *repair
	template template
	keep     keeper
	lends    bool // bursts are read with AppendBuffered

	queue    []gateway.Event // made from an answer that was not streamed
	ahead    gateway.Event
	hasAhead bool
	opened   bool
	output   bool // the first output has been seen
	finishes int  // how many finish reasons there were
	err      error
	done     atomic.Bool // the upstream said so: nothing of interest follows
}

// StreamOptions says how a stream is read.
type StreamOptions struct {
	WantsUsage bool  // the caller asked for the usage report
	Choices    int   // how many choices it asked for; 0 means 1
	Repair     bool  // fill in what strict SDKs want
	MaxBody    int64 // of an answer that is not a stream after all
}

// maxKept bounds what is taken for a burst of events.
const maxKept = 32 << 10

// NewStream returns a reader of the answer, which has status 200. It reads nothing yet.
func (u Upstream) NewStream(answer *upstream.Answer, o StreamOptions) *Stream {
	s := &Stream{upstream: u, answer: answer, options: o, source: &source{answer: answer}}
	if o.Repair {
		s.repair = &repair{upstream: u}
	}
	return s
}

// Next implements [gateway.EventReader].
func (s *Stream) Next() (gateway.Event, error) {
	if s.hasAhead {
		event := s.ahead
		s.ahead, s.hasAhead = gateway.Event{}, false
		return event, nil
	}
	if s.err != nil {
		return gateway.Event{}, s.err
	}
	event, err := s.read()
	if err != nil {
		s.err = err
		return gateway.Event{}, err
	}
	return event, nil
}

// Buffered reports whether Next will return without waiting for the upstream.
func (s *Stream) Buffered() bool {
	for !s.hasAhead && s.err == nil {
		if len(s.queue) == 0 && (s.events == nil || !s.events.Buffered()) {
			return false
		}
		event, ok, err := s.step()
		s.ahead, s.hasAhead = event, ok
		s.err = err
	}
	return true
}

// AppendBuffered appends what has arrived to dst, as server-sent events, and returns what it was together.
func (s *Stream) AppendBuffered(dst []byte, limit int) (out []byte, sum gateway.Event) {
	if s.repair != nil {
		return dst, sum // it needs values
	}
	s.keep.lend, s.lends = true, true
	defer func() { s.keep.lend = false }()
	for len(dst) < limit && s.err == nil {
		event, ok := s.ahead, s.hasAhead
		switch {
		case ok:
			s.ahead, s.hasAhead = gateway.Event{}, false
		case s.events == nil || !s.events.Buffered():
			return dst, sum
		default:
			event, ok, s.err = s.step()
		}
		if !ok {
			continue
		}
		if !event.Hidden {
			dst = sse.Append(dst, event.Data)
		}
		sum.Output = sum.Output || event.Output
		sum.OutputBytes += event.OutputBytes
		sum.Finished = sum.Finished || event.Finished
		if event.Usage != nil && (sum.Usage == nil || *event.Usage != (gateway.Usage{})) {
			sum.Usage = event.Usage
		}
	}
	return dst, sum
}

// Close implements [gateway.EventReader].
func (s *Stream) Close() error {
	if s.done.Load() {
		return s.answer.Finish()
	}
	return s.answer.Close()
}

func (s *Stream) read() (gateway.Event, error) {
	if !s.opened {
		s.opened = true
		if err := s.open(); err != nil {
			return gateway.Event{}, err
		}
	}
	for {
		if event, ok, err := s.step(); ok || err != nil {
			return event, err
		}
	}
}

// open looks at how the answer begins: some servers answer with a plain document, or with an error, all the same.
func (s *Stream) open() error {
	first, err := s.source.peek()
	if err != nil && !errors.Is(err, io.EOF) {
		return s.failure(err)
	}
	if first != '{' && first != '[' && first != '<' {
		s.events = sse.NewReader(s.source, 0)
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(s.source, s.options.MaxBody))
	if err != nil {
		return s.failure(err)
	}
	response, failure := s.upstream.DecodeResponse(body)
	if failure != nil {
		return failure
	}
	s.queue = eventsOf(response.Body, s.options.WantsUsage)
	return nil
}

// step takes one event. It is not ok when that event means nothing.
func (s *Stream) step() (event gateway.Event, ok bool, err error) {
	if s.events == nil {
		if len(s.queue) == 0 {
			return event, false, io.EOF
		}
		event, s.queue = s.queue[0], s.queue[1:]
		return event, true, nil
	}
	view, err := s.events.NextView()
	data := asString(view.Data) // only lent: it is overwritten when more is read
	switch {
	case errors.Is(err, io.EOF):
		if s.complete() {
			return event, false, io.EOF
		}
		return event, false, s.cut(nil)
	case err != nil:
		return event, false, s.failure(err)
	case data == "[DONE]" || strings.TrimSpace(data) == "[DONE]":
		s.done.Store(true)
		s.events.Release()
		return event, false, io.EOF
	case isLiveness(data):
		return event, false, nil
	}
	c, isObject := s.template.read(data)
	if !isObject || c.err != "" || c.failed || view.Type == "error" {
		return event, false, s.failed(data)
	}
	if pending := s.events.Pending(); !s.lends && len(s.keep.free) < len(data) && pending > 0 && pending <= maxKept {
		s.keep.expect(len(data) + pending) // a burst: what has come with this event is kept next to it
	}
	event = c.event(data, s.options.WantsUsage, &s.keep)
	event.Type = view.Type
	if s.repair != nil && !event.Hidden {
		event.Data = s.repair.chunk(event.Data)
	}
	if c.output && !s.output {
		s.output = true
		s.answer.Output()
	}
	s.finishes += c.finishes
	return event, true, nil
}

// complete reports whether all choices are finished. Then it does not matter how the stream ends.
func (s *Stream) complete() bool { return s.finishes >= max(s.options.Choices, 1) }

// failed makes an error event an error.
func (s *Stream) failed(data string) error {
	f := readFailure(data)
	err := s.upstream.classify(statusOf(f), f)
	if said := s.upstream.clean(f.message); err.Kind == gateway.ErrUpstream {
		err.Message = fmt.Sprintf("the upstream %q failed: %s", s.upstream.Provider, orNoReason(said))
	}
	err.UpstreamStatus = http.StatusOK
	if s.output {
		err.Kind, err.Outcome = gateway.ErrInterrupted, gateway.OutcomeInterrupted
	}
	return err
}

// cut is the error of a stream that ended without a finish.
func (s *Stream) cut(cause error) *gateway.Error {
	err := &gateway.Error{
		Kind: gateway.ErrInterrupted, Status: http.StatusBadGateway, Code: "upstream_stream_truncated",
		Message:  fmt.Sprintf("the stream of the upstream %q ended before the answer was complete", s.upstream.Provider),
		Outcome:  gateway.OutcomeUnknown,
		Provider: s.upstream.Provider, Model: s.upstream.Model, KeyFingerprint: s.upstream.Fingerprint,
		UpstreamStatus: http.StatusOK, Err: cause,
	}
	if s.output {
		err.Outcome = gateway.OutcomeInterrupted
	}
	return err
}

// failure says what an error of reading means.
func (s *Stream) failure(err error) error {
	if errors.Is(err, sse.ErrTooLarge) {
		failure := s.cut(err)
		failure.Code = "upstream_event_too_large"
		failure.Message = fmt.Sprintf("the upstream %q sent an event above the limit of %d bytes",
			s.upstream.Provider, sse.DefaultMaxEvent)
		return failure
	}
	failure := s.answer.Failure(err)
	if s.complete() && failure.Outcome != gateway.OutcomeCanceled {
		return io.EOF
	}
	failure.Provider, failure.Model = s.upstream.Provider, s.upstream.Model
	failure.KeyFingerprint, failure.UpstreamStatus = s.upstream.Fingerprint, http.StatusOK
	return failure
}

// source is the answer's body, whose first byte that is no white space can be seen before it is read.
type source struct {
	answer *upstream.Answer
	head   []byte
}

func (s *source) peek() (byte, error) {
	var buf [512]byte
	for {
		n, err := s.answer.Read(buf[:])
		s.head = append(s.head, buf[:n]...)
		for _, c := range s.head {
			switch c {
			case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
			default:
				return c, nil
			}
		}
		if len(s.head) > len(buf) {
			s.head = s.head[len(s.head)-1:] // white space only; the last may be half of a line end
		}
		if err != nil {
			return 0, err
		}
	}
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.head) > 0 {
		n := copy(p, s.head)
		if s.head = s.head[n:]; len(s.head) == 0 {
			s.head = nil
		}
		return n, nil
	}
	return s.answer.Read(p)
}

func (s *source) Close() error { return s.answer.Close() }
