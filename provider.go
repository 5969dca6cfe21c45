package gateway

import (
	"context"
	"net/http"
	"path"
)

// Handler answers one call. Providers, middlewares and the [Client] itself are Handlers, so they nest.
//
// Do must be safe for concurrent use, must not write to req or to req.Body, and must stop as soon as ctx ends. It
// returns either a Response or an error, never both. Errors are best returned as [*Error], whose Outcome decides
// whether the call may be tried again; any other error is taken as [OutcomeUnknown] and is therefore never repeated.
// Whoever receives a Response with a Stream must close that stream.
type Handler interface {
	Do(ctx context.Context, req *Request) (*Response, error)
}

// HandlerFunc makes a function a [Handler].
type HandlerFunc func(ctx context.Context, req *Request) (*Response, error)

// Do calls f.
func (f HandlerFunc) Do(ctx context.Context, req *Request) (*Response, error) { return f(ctx, req) }

// Middleware wraps a Handler: it may change the request before next sees it (on a copy), the response after, or
// answer by itself.
type Middleware func(next Handler) Handler

// Provider is a Handler that talks to one upstream account. Its name is unique within a [Client]; a [Candidate] refers
// to it by that name.
type Provider interface {
	Name() string
	Handler
}

// API says which of the model interfaces a call uses: which document its body is.
type API string

// The interfaces that a call can use.
const (
	APIChat       API = "chat"       // POST /v1/chat/completions
	APIEmbeddings API = "embeddings" // POST /v1/embeddings
)

// Caller is who is asking: what the gateway key stands for, or what an in-process program says of itself.
type Caller struct {
	KeyID  string   // identifies the gateway key; never the key itself
	App    string   // the application that the key belongs to
	Models []string // aliases that may be used, exact or with * for any run of characters but "/"; empty means all
}

// mayUse reports whether the caller's key allows the alias.
func (c Caller) mayUse(alias string) bool {
	if len(c.Models) == 0 {
		return true
	}
	for _, pattern := range c.Models {
		if matched, err := path.Match(pattern, alias); err == nil && matched || pattern == alias {
			return true
		}
	}
	return false
}

// Response answers a Request: either a whole document in Body or a Stream of events.
type Response struct {
	Header http.Header // of the upstream's answer, those that may be shown to a caller; may be nil
	Body   []byte      // the JSON document as the upstream wrote it; nil for a stream
	Stream *Stream     // nil for a plain answer

	// Usage and Finished are what the provider learnt from Body: the reported usage, nil when there was none, and
	// whether it is a finished answer. On a stream the events carry them.
	Usage *Usage
	// OutputBytes is the length of the text in Body as far as it is known, for estimates when Usage is nil.
	OutputBytes int

	// KeyFingerprint names the upstream key that was used, in a form that does not reveal it.
	KeyFingerprint string

	// Record describes the call. The Client sets it; on a stream it is complete once the stream has ended.
	Record *Record
}

// NewProvider makes any Handler a Provider, such as the Client of another gateway.
func NewProvider(name string, h Handler) Provider { return namedHandler{h, name} }

type namedHandler struct {
	Handler

	name string
}

func (n namedHandler) Name() string { return n.name }
