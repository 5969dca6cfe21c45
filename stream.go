package gateway

import (
	"errors"
	"io"
	"iter"
	"sync"
)

// Event is one event of a streamed answer, as the provider sent it, with what the provider's dialect learnt from it.
type Event struct {
	Type string // the "event:" field; empty on OpenAI's chat streams
	Data string // the payload: a JSON document

	Output      bool // carries output: text, reasoning, a tool call, a refusal, audio
	OutputBytes int  // length of that output's text, for estimates
	Finished    bool // carries a finish reason: an end after it is not a cut
	Usage       *Usage
	Hidden      bool // asked for by the gateway itself (a usage report): not shown to the caller
}

// EventReader is a source of events. Next returns io.EOF after an orderly end and an [*Error] otherwise. Close ends the
// upstream's work at once, may be called more than once and from another goroutine than Next, and makes a blocked Next
// return.
type EventReader interface {
	Next() (Event, error)
	Close() error
}

// bufferedReader is implemented by an EventReader that knows whether its next event has arrived already.
type bufferedReader interface{ Buffered() bool }

// bufferAppender is implemented by an EventReader that can hand on the events which have arrived already as text, without
// making a value of each. AppendBuffered never blocks. It appends as many as are at hand, hidden ones excepted, until
// dst has at least limit bytes, and returns what they were together. What ends the stream is left to Next.
type bufferAppender interface {
	AppendBuffered(dst []byte, limit int) (out []byte, sum Event)
}

// Stream is a streamed answer: read it with [Stream.Next] or [Stream.All], and close it in any case. Next must be
// called by one goroutine at a time; Close may be called at any time.
type Stream struct {
	reader EventReader
	closed sync.Once
	err    error
}

// NewStream returns a Stream over r.
func NewStream(r EventReader) *Stream { return &Stream{reader: r} }

// Next returns the next event, io.EOF after an orderly end, and an [*Error] when the stream failed.
func (s *Stream) Next() (Event, error) { return s.reader.Next() }

// Buffered reports whether the next event is here already, so that Next will not block. Writers flush when it is false.
func (s *Stream) Buffered() bool {
	b, ok := s.reader.(bufferedReader)
	return ok && b.Buffered()
}

// AppendBuffered appends events that have arrived already to dst, as server-sent events, until it has at least limit
// bytes. It never blocks. It need not take them all: what it leaves comes from Next. It is for those who pass a stream
// on as text, and costs less than Next for each event of a burst.
func (s *Stream) AppendBuffered(dst []byte, limit int) []byte {
	if a, ok := s.reader.(bufferAppender); ok {
		dst, _ = a.AppendBuffered(dst, limit)
	}
	return dst
}

// Close gives back everything that the stream holds and stops the upstream's work if it is still going on.
func (s *Stream) Close() error {
	s.closed.Do(func() { s.err = s.reader.Close() })
	return s.err
}

// All returns the remaining events. The last pair holds the error if the stream failed. The stream is closed when the
// loop ends, however it ends.
func (s *Stream) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		defer s.Close()
		for {
			event, err := s.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// EventSlice returns an EventReader that yields the given events and then io.EOF.
func EventSlice(events ...Event) EventReader { return &eventSlice{events: events} }

type eventSlice struct{ events []Event }

func (s *eventSlice) Next() (Event, error) {
	if len(s.events) == 0 {
		return Event{}, io.EOF
	}
	event := s.events[0]
	s.events = s.events[1:]
	return event, nil
}

func (s *eventSlice) Buffered() bool { return len(s.events) > 0 }
func (s *eventSlice) Close() error   { return nil }
