// Package gateway stands between a program and every large language model that it calls. The program names a model
// alias; the [Client] knows the providers behind it, their keys, limits and prices, and what to do when one is slow,
// full, broken or lying.
//
// A Client is built from Go values or from a [Config]:
//
//	client, err := gateway.New(
//		gateway.WithProvider(provider),
//		gateway.WithAlias(gateway.Alias{
//			Name:       "chat-smart",
//			Candidates: []gateway.Candidate{{Provider: "cloud", Model: "gpt-4o-2024-08-06"}},
//		}),
//	)
//
// Everything is a [Handler]: providers, middlewares and the Client itself. A [Request] carries the caller's JSON
// document as it was written, so a field that the gateway has never heard of reaches the upstream unchanged. Typed
// values ([ChatRequest], [ChatResponse], [ChatChunk], …) lie on top and are lossless too.
//
// Three promises shape the rest. A call whose result is unknown is never silently repeated (see [Outcome] and
// [RetryPolicy]). Money is exact, and comes only from usage that a provider reported (see [Usage], [Price], [Cost]).
// A caller who goes away stops the upstream's work at once.
package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Client routes calls to providers: it resolves aliases, admits, retries, fails over, costs and records. It is a
// [Handler], safe for concurrent use, and made by [New].
type Client struct {
	routes    map[string]*route
	aliases   []string // in the order in which they were given
	providers []Provider
	handler   Handler // the middlewares around dispatch
	limiter   Limiter
	meter     CostMeter
	unpriced  Unpriced
	recorders []Recorder
	logger    *slog.Logger
	created   time.Time
	calls     registry
	closeOnce sync.Once
	closeErr  error
}

// Do answers one call: it resolves the alias, runs the middlewares, admits the call, tries the alias's candidates as
// its strategy and retry policy say, and records what happened. The error is always an [*Error].
//
// A plain answer comes back when it is complete. A stream comes back with its first output; the context then governs
// the whole stream, and the caller must close it. The call is recorded when the answer is complete.
func (c *Client) Do(ctx context.Context, req *Request) (res *Response, err error) {
	call, err := c.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	// A panic in a middleware or a provider must not leave anything behind; it becomes an internal error.
	defer func() {
		if cause := recover(); cause != nil {
			res, err = nil, call.abort(panicError(cause))
		}
	}()
	if call.route, err = c.resolve(req); err != nil {
		return nil, call.abort(err)
	}
	res, err = c.handler.Do(call.context(), req)
	switch {
	case err != nil:
		return nil, call.abort(err)
	case res == nil || res.Stream == nil && res.Body == nil:
		return nil, call.abort(errNoResponse)
	case res.Stream != nil:
		return call.streaming(res), nil
	default:
		call.complete(res)
		return res, nil
	}
}

var errNoResponse = errors.New("the provider or a middleware returned neither a response nor an error")

// Chat answers a chat call with typed values. It asks for a plain answer, whatever req.Stream says.
func (c *Client) Chat(ctx context.Context, req ChatRequest) (*ChatResponse, error) {
	req.Stream = nil
	res, err := c.do(ctx, &Request{API: APIChat, Model: req.Model}, &req)
	if err != nil {
		return nil, err
	}
	answer := new(ChatResponse)
	return answer, unreadable(answer.decode(res.Body))
}

// ChatStream answers a chat call with a typed stream, which the caller must close. It asks for a stream, whatever
// req.Stream says.
func (c *Client) ChatStream(ctx context.Context, req ChatRequest) (*ChatStream, error) {
	req.Stream = Bool(true)
	res, err := c.do(ctx, &Request{API: APIChat, Model: req.Model, Stream: true}, &req)
	if err != nil {
		return nil, err
	}
	return &ChatStream{stream: res.Stream, record: res.Record}, nil
}

// Embed answers an embeddings call with typed values.
func (c *Client) Embed(ctx context.Context, req EmbeddingRequest) (*EmbeddingResponse, error) {
	res, err := c.do(ctx, &Request{API: APIEmbeddings, Model: req.Model}, &req)
	if err != nil {
		return nil, err
	}
	answer := new(EmbeddingResponse)
	return answer, unreadable(answer.decode(res.Body))
}

// do encodes a typed value and makes the call.
func (c *Client) do(ctx context.Context, req *Request, document object) (*Response, error) {
	if req.Model == "" {
		return nil, invalidParam("model", "you must provide a model")
	}
	var err error
	req.Body, err = encodeDocument(document)
	if err != nil {
		e := invalidParam("", "the request cannot be encoded as JSON")
		e.Err = err
		return nil, e
	}
	return c.Do(ctx, req)
}

// unreadable makes the error of decoding an answer one for the caller.
func unreadable(err error) error {
	if err == nil {
		return nil
	}
	return &Error{
		Kind: ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_invalid_answer", Outcome: OutcomeUnknown,
		Message: "the upstream's answer cannot be read as the typed value", Err: err,
	}
}

// Model describes an alias to callers.
type Model struct {
	ID      string
	Created time.Time
}

// Models returns the aliases that the caller may use, in the order in which they were configured.
func (c *Client) Models(caller Caller) []Model {
	models := make([]Model, 0, len(c.aliases))
	for _, name := range c.aliases {
		if caller.mayUse(name) {
			models = append(models, Model{ID: name, Created: c.created})
		}
	}
	return models
}

// Ready returns nil while the Client takes calls, and [ErrClosed] as an [*Error] from the moment that Close begins.
func (c *Client) Ready() error {
	if c.calls.isClosed() {
		return errClosed()
	}
	return nil
}

// Close refuses new calls and waits until those in flight, streams included, have ended. When ctx ends first, it
// cancels what is left, waits for that to wind up, and returns ctx's error. In the end it closes the providers. Further
// calls of Close return the same error.
func (c *Client) Close(ctx context.Context) error {
	c.closeOnce.Do(func() {
		c.closeErr = c.calls.drain(ctx)
		for _, p := range c.providers {
			if closer, ok := p.(io.Closer); ok {
				c.closeErr = errors.Join(c.closeErr, closer.Close())
			}
		}
	})
	return c.closeErr
}

func errClosed() *Error {
	return &Error{
		Kind: ErrClosed, Status: http.StatusServiceUnavailable, Code: "gateway_closed", Outcome: OutcomeNotSent,
		Message: "the gateway is shutting down",
	}
}

// resolve finds the alias's route. The aliases are an allow-list: nothing else is ever sent anywhere.
func (c *Client) resolve(req *Request) (*route, error) {
	if r, ok := c.routes[req.Model]; ok && req.Caller.mayUse(req.Model) {
		return r, nil
	}
	return nil, &Error{
		Kind: ErrUnknownModel, Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
		Outcome: OutcomeRejected,
		Message: "the model " + quoteForMessage(req.Model) + " does not exist or you do not have access to it",
	}
}

// NewTraceID returns a fresh id for [Request.TraceID]: 16 random bytes in hexadecimal, as W3C trace ids are.
func NewTraceID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
