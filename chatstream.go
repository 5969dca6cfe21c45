package gateway

import (
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// ChatStream is a streamed chat answer as typed chunks. Read it with Next or All, and close it in any case.
//
//	stream, err := client.ChatStream(ctx, req)
//	if err != nil { … }
//	for chunk, err := range stream.All() {
//		if err != nil { … }
//		fmt.Print(chunk.Text())
//	}
type ChatStream struct {
	stream *Stream
	record *Record
}

// Next returns the next chunk, io.EOF after an orderly end, and an [*Error] when the stream failed.
func (s *ChatStream) Next() (*ChatChunk, error) {
	event, err := s.stream.Next()
	if err != nil {
		return nil, err
	}
	chunk := new(ChatChunk)
	if err := chunk.decode(jsontext.Value(event.Data)); err != nil {
		return nil, &Error{
			Kind: ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_invalid_answer",
			Outcome: OutcomeInterrupted, Message: "a chunk of the upstream's stream cannot be read", Err: err,
		}
	}
	return chunk, nil
}

// All returns the remaining chunks. The last pair holds the error if the stream failed. The stream is closed when the
// loop ends, however it ends.
func (s *ChatStream) All() iter.Seq2[*ChatChunk, error] {
	return func(yield func(*ChatChunk, error) bool) {
		defer s.Close()
		for {
			chunk, err := s.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(chunk, err) || err != nil {
				return
			}
		}
	}
}

// Close stops the upstream's work if it is still going on, and records the call.
func (s *ChatStream) Close() error { return s.stream.Close() }

// Record describes the call. It is complete once the stream has ended or been closed.
func (s *ChatStream) Record() *Record { return s.record }
