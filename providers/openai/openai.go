// Package openai talks to OpenAI and to every server that speaks its wire format.
//
// A caller's document reaches the upstream as it was written, but for its model, for the request for a usage report on
// streams, and for what the configured quirks say. An attempt reaches the upstream at most once: whether it may be
// repeated is for the gateway's retry policy to decide.
package openai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gatewright/gateway"
	dialect "github.com/gatewright/gateway/internal/dialect/openai"
	"github.com/gatewright/gateway/internal/keyring"
	"github.com/gatewright/gateway/internal/upstream"
)

// Config describes one upstream account. Name and BaseURL are required.
type Config struct {
	// Name is the provider's name within a gateway.
	Name string
	// BaseURL is where the interface lives: https://api.openai.com/v1. Without a path, /v1 is added; a base with a path
	// is taken as it is.
	BaseURL string
	// Keys are used in turn. One that the upstream refuses rests. Without keys no Authorization is sent.
	Keys []gateway.Secret
	// Header is sent with every request, and overrides what the caller sent.
	Header http.Header
	// Timeouts bound an attempt.
	Timeouts Timeouts
	// MaxConcurrency is how many attempts may run at once; 0: no bound.
	MaxConcurrency int
	// Proxy is used instead of the one that the environment names.
	Proxy *url.URL
	// Quirks says what the upstream wants otherwise than OpenAI.
	Quirks gateway.QuirksConfig
	// MaxBody bounds a plain answer. 0 means 64 MiB.
	MaxBody int64
	// RequestTimeouts and connections are those of Transport when it is set; Proxy then has no effect.
	Transport http.RoundTripper
	// Logger is told when a key is put to rest. The default is slog.Default().
	Logger *slog.Logger
}

// Timeouts bound an attempt. A zero has the default; a negative one means no bound.
type Timeouts struct {
	Connect   time.Duration // DNS, TCP and TLS; default 10 s
	FirstByte time.Duration // until the answer's headers, on a stream its first output; default 120 s
	Idle      time.Duration // between two reads of an answer; default 60 s
	Total     time.Duration // the whole attempt; default none
}

// Provider is an OpenAI-compatible upstream. Make one with [New].
type Provider struct {
	name           string
	paths          map[gateway.API]*url.URL
	header         http.Header
	client         upstream.Client
	keys           *keyring.Ring
	secrets        []string
	quirks         dialect.Quirks
	maxBody        int64
	maxConcurrency int
	logger         *slog.Logger
	own            *http.Transport // nil when the user brought a RoundTripper
}

const (
	defaultConnect   = 10 * time.Second
	defaultFirstByte = 120 * time.Second
	defaultIdle      = 60 * time.Second
	defaultMaxBody   = 64 << 20
	maxErrorBody     = 64 << 10
)

// New returns a provider.
func New(c Config) (*Provider, error) {
	if c.Name == "" {
		return nil, fmt.Errorf("openai: Name is required")
	}
	endpoints, err := endpoints(c.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("openai: provider %q: BaseURL: %w", c.Name, err)
	}
	p := &Provider{
		name: c.Name, paths: endpoints, header: c.Header.Clone(), maxBody: c.MaxBody, maxConcurrency: c.MaxConcurrency,
		keys: keyring.New(c.Keys), logger: c.Logger,
		quirks: dialect.Quirks{
			Drop: c.Quirks.Drop, Rename: c.Quirks.Rename,
			NoIncludeUsage: c.Quirks.NoIncludeUsage, RepairChunks: c.Quirks.RepairChunks,
		},
	}
	if p.maxBody <= 0 {
		p.maxBody = defaultMaxBody
	}
	if p.logger == nil {
		p.logger = slog.Default()
	}
	for _, k := range c.Keys {
		p.secrets = append(p.secrets, k.Reveal())
	}
	p.client.Timeouts = upstream.Timeouts{
		Connect: orDefault(c.Timeouts.Connect, defaultConnect), FirstByte: orDefault(c.Timeouts.FirstByte, defaultFirstByte),
		Idle: orDefault(c.Timeouts.Idle, defaultIdle), Total: orDefault(c.Timeouts.Total, 0),
	}
	if p.client.RoundTripper = c.Transport; c.Transport == nil {
		p.own = upstream.NewTransport(upstream.TransportOptions{
			Connect: p.client.Timeouts.Connect, MaxConcurrency: c.MaxConcurrency, Proxy: c.Proxy,
		})
		p.client.RoundTripper = p.own
	}
	return p, nil
}

func orDefault(d, def time.Duration) time.Duration {
	switch {
	case d < 0:
		return 0
	case d == 0:
		return def
	default:
		return d
	}
}

// Name implements [gateway.Provider].
func (p *Provider) Name() string { return p.name }

// MaxConcurrency implements [gateway.Bounded].
func (p *Provider) MaxConcurrency() int { return p.maxConcurrency }

// Close closes idle connections.
func (p *Provider) Close() error {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
	return nil
}

// Do implements [gateway.Handler].
func (p *Provider) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	endpoint, ok := p.paths[req.API]
	if !ok {
		return nil, fmt.Errorf("openai: the interface %q is not supported", req.API)
	}
	body, err := dialect.EncodeRequest(req, p.quirks)
	if err != nil {
		return nil, err
	}
	var key *keyring.Key
	if !p.keys.Empty() {
		var rest keyring.Resting
		if key, rest = p.keys.Next(); key == nil {
			return nil, p.allResting(req, rest)
		}
	}
	speaker := dialect.Upstream{Provider: p.name, Model: req.Model, Secrets: p.secrets}
	if key != nil {
		speaker.Fingerprint = key.Fingerprint
	}
	answer, failure := p.client.Do(ctx, p.request(endpoint, req, key), body, req.Stream)
	if failure != nil {
		failure.Provider, failure.Model, failure.KeyFingerprint = p.name, req.Model, speaker.Fingerprint
		return nil, failure
	}
	if answer.Status != http.StatusOK {
		failure := p.refused(answer, speaker)
		p.restKey(ctx, key, failure)
		return nil, failure
	}
	if req.Stream {
		stream := speaker.NewStream(answer, dialect.StreamOptions{
			WantsUsage: dialect.WantsUsage(req), Repair: p.quirks.RepairChunks, MaxBody: p.maxBody,
		})
		return &gateway.Response{
			Header: shownHeader(answer.Header), Stream: gateway.NewStream(stream), KeyFingerprint: speaker.Fingerprint,
		}, nil
	}
	defer answer.Close()
	response, failure := p.plain(answer, speaker)
	if failure != nil {
		p.restKey(ctx, key, failure)
		return nil, failure
	}
	return response, nil
}

func (p *Provider) plain(answer *upstream.Answer, speaker dialect.Upstream) (*gateway.Response, *gateway.Error) {
	body, err := readBody(answer, p.maxBody)
	if err != nil {
		failure := answer.Failure(err)
		failure.Provider, failure.Model, failure.KeyFingerprint = p.name, speaker.Model, speaker.Fingerprint
		return nil, failure
	}
	response, failure := speaker.DecodeResponse(body)
	if failure != nil {
		return nil, failure
	}
	response.Header = shownHeader(answer.Header)
	return response, nil
}

func (p *Provider) refused(answer *upstream.Answer, speaker dialect.Upstream) *gateway.Error {
	defer answer.Close()
	body, _ := io.ReadAll(io.LimitReader(answer, maxErrorBody))
	return speaker.DecodeError(answer.Status, answer.Header, body)
}

func (p *Provider) allResting(req *gateway.Request, rest keyring.Resting) *gateway.Error {
	e := &gateway.Error{
		Kind: gateway.ErrUpstreamAuth, Status: http.StatusBadGateway, Code: "upstream_auth",
		Message: fmt.Sprintf("the upstream %q refused the gateway's credentials a short while ago", p.name),
		Outcome: gateway.OutcomeRejected, Provider: p.name, Model: req.Model,
	}
	if rest.Reason == keyring.RateLimited {
		e.Kind, e.Status, e.Code = gateway.ErrUpstreamLimit, http.StatusTooManyRequests, "upstream_rate_limited"
		e.Message = fmt.Sprintf("the upstream %q limits the gateway's rate", p.name)
		e.Outcome, e.RetryAfter = gateway.OutcomeRefused, rest.Wait
	}
	return e
}

// restDefault is how long a key rests that the upstream does not accept.
const restDefault = 10 * time.Minute

func (p *Provider) restKey(ctx context.Context, key *keyring.Key, failure *gateway.Error) {
	if key == nil {
		return
	}
	switch failure.Kind {
	case gateway.ErrUpstreamAuth, gateway.ErrUpstreamQuota:
		if p.keys.Rest(key, max(restDefault, failure.RetryAfter), keyring.Refused) {
			p.logger.LogAttrs(ctx, slog.LevelWarn, "upstream key set aside",
				slog.String("provider", p.name), slog.String("key", key.Fingerprint), slog.String("why", failure.Code))
		}
	case gateway.ErrUpstreamLimit:
		if failure.RetryAfter > 0 {
			p.keys.Rest(key, failure.RetryAfter, keyring.RateLimited)
		}
	default:
		return
	}
	failure.OtherKey = p.keys.Usable() > 0
}

// request makes the HTTP request, without its body.
func (p *Provider) request(endpoint *url.URL, req *gateway.Request, key *keyring.Key) *http.Request {
	target := *endpoint
	target.RawQuery = joinQuery(target.RawQuery, req.Query)
	header := make(http.Header, 8)
	copyHeader(header, req.Header)
	header["Content-Type"] = []string{"application/json"}
	header["User-Agent"] = []string{"gateway/0.1"}
	if req.Stream {
		header["Accept"] = []string{"text/event-stream"}
		header["Accept-Encoding"] = []string{"identity"}
	} else {
		header["Accept"] = []string{"application/json"}
	}
	if key != nil {
		header["Authorization"] = []string{key.Authorization}
	}
	for name, values := range p.header {
		header[name] = values
	}
	return &http.Request{
		Method: http.MethodPost, URL: &target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

func readBody(answer *upstream.Answer, limit int64) ([]byte, error) {
	if n := answer.ContentLength; n >= 0 && n <= limit {
		body := make([]byte, n)
		_, err := io.ReadFull(answer, body)
		return body, err
	}
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(answer, limit+1))
	if n > limit {
		return nil, fmt.Errorf("the answer is larger than %s bytes", strconv.FormatInt(limit, 10))
	}
	return buf.Bytes(), err
}
