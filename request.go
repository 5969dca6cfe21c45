package gateway

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// Request is one call on its way to a provider. Its Body is the JSON document as the caller wrote it; nobody decodes
// or re-encodes it on the way to an upstream that speaks the same dialect.
//
// A Request is made by [NewRequest], or as a literal by in-process callers that have the document already. It belongs
// to one call: it must not be changed once it has been handed to a Handler. Use [Request.Clone] to change one.
type Request struct {
	API    API
	Model  string // an alias towards the Client; the upstream's own name towards a Provider
	Stream bool   // whether the answer is wanted as a stream of events
	Body   []byte // never written to

	// Header holds headers for the upstream. Only those that an upstream may see get there; credentials never do.
	Header http.Header
	// Query is the raw query string for the upstream, without credentials.
	Query string

	Caller  Caller
	TraceID string // identifies the call in records and headers; the Client makes one when it is empty

	object jsonpatch.Object
	parsed bool
	facts  *Facts
}

// NewRequest checks body strictly, learns its model and whether it asks for a stream, and keeps the bytes as they are.
// The error is an [*Error] of kind [ErrInvalidRequest] that says what is wrong and at which byte: malformed JSON,
// duplicate members, invalid UTF-8, a value that is not an object, or a model or stream member of the wrong type.
func NewRequest(api API, body []byte) (*Request, error) {
	req := &Request{API: api, Body: body}
	if err := req.parse(); err != nil {
		return nil, err
	}
	raw, ok := req.object.Get("model")
	if !ok {
		return nil, invalidParam("model", "you must provide a model: the member \"model\" is missing")
	}
	if req.Model, ok = unquote(raw); !ok || req.Model == "" {
		return nil, invalidParam("model", "\"model\" must be a non-empty string")
	}
	switch raw, _ := req.object.Get("stream"); string(raw) {
	case "", "false", "null":
	case "true":
		req.Stream = true
	default:
		return nil, invalidParam("stream", "\"stream\" must be a boolean")
	}
	return req, nil
}

// parse indexes the outermost members of Body once.
func (r *Request) parse() error {
	if r.parsed {
		return nil
	}
	object, err := jsonpatch.Parse(r.Body)
	if err != nil {
		return invalidJSON(err)
	}
	r.object, r.parsed = object, true
	return nil
}

// Clone returns a copy that may be changed: set Model, Body (with [Request.WithBody]), Header and so on.
func (r *Request) Clone() *Request {
	c := *r
	c.Header = r.Header.Clone()
	return &c
}

// WithBody returns a shallow copy of the request that carries another document.
func (r *Request) WithBody(body []byte) *Request {
	c := *r
	c.Body, c.object, c.parsed, c.facts = body, jsonpatch.Object{}, false, nil
	return &c
}

// Member returns the raw text of an outermost member of the body, as the caller wrote it, and whether it is there.
// The text must not be written to.
func (r *Request) Member(name string) (jsontext.Value, bool) {
	if r.parse() != nil {
		return nil, false
	}
	return r.object.Get(name)
}

// Edit changes one outermost member of a body; see [Request.Rewrite].
type Edit = jsonpatch.Edit

// Rewrite returns the body with some outermost members set, removed or renamed. Every byte that no edit touches stays
// the caller's own: unknown members, order, white space, the text of numbers. The request's own Body is not changed.
func (r *Request) Rewrite(edits ...Edit) ([]byte, error) {
	if err := r.parse(); err != nil {
		return nil, err
	}
	return r.object.Apply(edits...), nil
}

func invalidJSON(err error) *Error {
	e := invalidParam("", "the request body is not a valid JSON document: "+err.Error())
	e.Code = "invalid_json"
	e.Err = err
	if syntax, ok := errors.AsType[*jsonpatch.SyntaxError](err); ok && syntax.Path != "" {
		e.Param = pointerPath(jsontext.Pointer(syntax.Path))
	}
	return e
}

// unquote returns the text of a JSON string.
func unquote(raw jsontext.Value) (string, bool) {
	if raw.Kind() != '"' {
		return "", false
	}
	if plain := raw[1 : len(raw)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return string(plain), true
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err == nil
}
