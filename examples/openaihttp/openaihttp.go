// Package openaihttp puts a gateway.Client behind OpenAI's HTTP interface: [New] makes an http.Handler to mount in any
// mux, [Transport] an http.RoundTripper through which an official SDK talks to the Client inside the process.
package openaihttp

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/gatewright/gateway"
)

// The defaults of a Handler.
const (
	DefaultMaxBody     = 32 << 20         // bytes of a request body, also after decompression
	DefaultMaxInFlight = 1 << 30          // bytes of all request bodies in flight
	DefaultWriteStall  = 30 * time.Second // how long a client may take no byte
	DefaultBodyTimeout = 30 * time.Second // how long a client may take for each 16 KiB of its body
)

// Handler serves OpenAI's interface. It is made by [New] and safe for concurrent use.
type Handler struct {
	client    *gateway.Client
	endpoints map[string]endpoint // by path
	keys      keySet
	others    Authenticator // of keys that are not in keys; may be nil
	open      bool          // whoever reaches the handler may use it
	caller    gateway.Caller
	bodies    bodyReader
	stall     time.Duration
	alive     time.Duration
	origins   map[string]bool
	logger    *slog.Logger
}

// Option configures a [Handler].
type Option func(*Handler)

// WithKeys adds gateway keys.
func WithKeys(keys ...Key) Option { return func(h *Handler) { h.keys.add(keys...) } }

// WithAuthenticator asks a for the key of a request that has none of [WithKeys]'s.
func WithAuthenticator(a Authenticator) Option { return func(h *Handler) { h.others = a } }

// WithoutAuth lets everybody use every route who can reach the handler, the admin routes included. It is for programs
// that check their callers before the handler sees them.
func WithoutAuth() Option { return func(h *Handler) { h.open = true } }

// WithCaller says who calls when no key is asked for: with [WithoutAuth], or through [Transport].
func WithCaller(c gateway.Caller) Option { return func(h *Handler) { h.caller = c } }

// WithMaxBody bounds a request body, also after decompression. The default is [DefaultMaxBody].
func WithMaxBody(bytes int64) Option { return func(h *Handler) { h.bodies.max = bytes } }

// WithMaxInFlight bounds the bytes of all request bodies in flight; beyond it calls get 503. The default is
// [DefaultMaxInFlight].
func WithMaxInFlight(bytes int64) Option { return func(h *Handler) { h.bodies.room.size = bytes } }

// WithBodyTimeout bounds how long a client may take for each 16 KiB of its body, or for what is left of it. The default
// is [DefaultBodyTimeout].
func WithBodyTimeout(d time.Duration) Option { return func(h *Handler) { h.bodies.timeout = d } }

// WithWriteStall bounds how long a client may take no byte of its answer before it is dropped and the upstream's work
// cancelled. A slow client that goes on reading, 16 KiB within that time at least, is not dropped. The default is
// [DefaultWriteStall].
func WithWriteStall(d time.Duration) Option { return func(h *Handler) { h.stall = d } }

// WithKeepAlive writes a comment line to a streaming client after each d of silence, so that load balancers do not cut
// the connection of a model that thinks for long. Status 200 then goes out before the upstream has answered, and a
// failure after that is an error event. The default, 0, is off.
func WithKeepAlive(d time.Duration) Option { return func(h *Handler) { h.alive = d } }

// WithCORS lets browsers on these origins, such as https://app.example.com, call the model routes. "*" is any origin.
// The default is none. Admin routes are never opened.
func WithCORS(origins ...string) Option {
	return func(h *Handler) {
		if h.origins == nil {
			h.origins = make(map[string]bool)
		}
		for _, origin := range origins {
			h.origins[origin] = true
		}
	}
}

// WithLogger sets where trouble is logged. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(h *Handler) { h.logger = l } }

// FromConfig returns the options that a configuration describes: its keys and the limits of its server section.
func FromConfig(config gateway.Config) ([]Option, error) {
	var keys []Key
	for i, ref := range config.Master.Keys {
		secret, err := ref.Resolve()
		if err != nil {
			return nil, fmt.Errorf("master.keys[%d]: %w", i, err)
		}
		keys = append(keys, Key{Name: fmt.Sprintf("master-%d", i+1), Hash: HashKey(secret.Reveal()), Admin: true})
	}
	for i, k := range config.Keys {
		key, err := keyFromConfig(k)
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		keys = append(keys, key)
	}
	options := []Option{WithKeys(keys...)}
	if s := config.Server; s.MaxBody != nil {
		options = append(options, WithMaxBody(int64(*s.MaxBody)))
	}
	if s := config.Server; s.WriteStall != nil {
		options = append(options, WithWriteStall(time.Duration(*s.WriteStall)))
	}
	if s := config.Server; s.KeepAlive != nil {
		options = append(options, WithKeepAlive(time.Duration(*s.KeepAlive)))
	}
	return options, nil
}

// New returns a handler for client. Without a key ([WithKeys], [WithAuthenticator]) every route but /health and /ready answers 503, unless
// [WithoutAuth] says otherwise.
//
// Its routes are POST /v1/chat/completions and /v1/embeddings; GET /v1/models and /v1/models/{id}; GET /health and
// /ready, which ask for no key; and, with an admin key, GET /admin/stats and POST /admin/explain. Mount it under a
// prefix with [http.StripPrefix].
func New(client *gateway.Client, options ...Option) *Handler {
	h := &Handler{
		client: client, stall: DefaultWriteStall, logger: slog.Default(),
		bodies: bodyReader{max: DefaultMaxBody, timeout: DefaultBodyTimeout, room: &room{size: DefaultMaxInFlight}},
	}
	for _, option := range options {
		option(h)
	}
	h.endpoints = h.routes()
	return h
}
