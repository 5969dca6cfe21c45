// Package calls makes the same chat call in a program's own process through several libraries, over a transport in
// memory, so that nothing but the libraries' own work is measured.
package calls

import (
	"context"
	"errors"
	"fmt"
)

// Contender is a library, set up once and used for all calls.
type Contender struct {
	Name string
	// Chat makes one call and returns the answer's text and its completion tokens.
	Chat func(ctx context.Context) (text string, tokens int64, err error)
	// Stream makes one streamed call and returns the number of its chunks, the length of their text, and the completion
	// tokens.
	Stream func(ctx context.Context) (chunks, text int, tokens int64, err error)
}

// Reference is the name of the contender that the others are compared with: the least that a Go program has to do.
const Reference = "floor"

// All returns all contenders, the reference first. Streams have the given number of events with text.
func All(events int) ([]Contender, error) {
	transport := NewTransport(events)
	var all []Contender
	var errs error
	for _, open := range []func(*Transport) (Contender, error){floor, viaGateway, goOpenAI, openAIGo, anyLLM} {
		c, err := open(transport)
		all, errs = append(all, c), errors.Join(errs, err)
	}
	return all, errs
}

// Check makes one call of each kind and says what is wrong with the result.
func (c *Contender) Check(ctx context.Context, t *Transport) error {
	text, tokens, err := c.Chat(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%s: chat: %w", c.Name, err)
	case text != t.text || tokens != t.tokens:
		return fmt.Errorf("%s: chat: got %q and %d tokens", c.Name, text, tokens)
	}
	chunks, length, tokens, err := c.Stream(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%s: stream: %w", c.Name, err)
	case chunks != t.chunks || length != t.streamedText || tokens != t.tokens:
		return fmt.Errorf("%s: stream: got %d chunks with %d bytes of text and %d tokens, want %d with %d and %d",
			c.Name, chunks, length, tokens, t.chunks, t.streamedText, t.tokens)
	}
	return nil
}
