// Package openai talks to OpenAI and to every server that speaks its wire format.
//
// A caller's document reaches the upstream as it was written, but for its model, for the request for a usage report on
// streams, and for what the configured quirks say. An attempt reaches the upstream at most once: whether it may be
// repeated is for the gateway's retry policy to decide.
package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
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
	// Transport makes the connections instead of the provider's own. It must not send requests again by itself.
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
	endpoints      map[gateway.API]*url.URL
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

// New returns a provider. The error names every field that is wrong.
func New(c Config) (*Provider, error) {
	endpoints, err := endpoints(c.BaseURL)
	if err = errors.Join(c.check(), err); err != nil {
		return nil, fmt.Errorf("openai: provider %q: %w", c.Name, err)
	}
	p := &Provider{
		name: c.Name, endpoints: endpoints, header: canonical(c.Header), maxBody: c.MaxBody,
		maxConcurrency: c.MaxConcurrency, keys: keyring.New(c.Keys), logger: c.Logger,
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
	for name, values := range p.header {
		if credential(name) {
			p.secrets = append(p.secrets, values...)
		}
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

// check reports everything that is wrong with c but for its BaseURL.
func (c Config) check() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Name == "" {
		problem("Name is required")
	}
	if c.MaxConcurrency < 0 {
		problem("MaxConcurrency is negative")
	}
	for i, key := range c.Keys {
		if text := key.Reveal(); text == "" || !validValue(text) || strings.TrimSpace(text) != text {
			problem("Keys[%d] is empty, or has white space around it or control characters in it", i)
		}
	}
	for name, values := range c.Header {
		if !validName(name) {
			problem("Header: %q is not a header name", name)
		}
		for _, value := range values {
			if !validValue(value) {
				problem("Header: the value of %s has control characters in it", name)
			}
		}
	}
	if c.Proxy != nil {
		switch c.Proxy.Scheme {
		case "http", "https", "socks5", "socks5h":
		default:
			problem("Proxy must begin with http://, https:// or socks5://")
		}
		if c.Transport != nil {
			problem("Proxy has no effect together with Transport")
		}
	}
	for from, to := range c.Quirks.Rename {
		if from == "" || to == "" {
			problem("Quirks.Rename: a member without a name")
		}
	}
	return errors.Join(problems...)
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
	endpoint, ok := p.endpoints[req.API]
	if !ok {
		return nil, p.unsupported(req)
	}
	body, err := dialect.EncodeRequest(req, p.quirks)
	if err != nil {
		return nil, err
	}
	key, rest := p.keys.Next()
	if key == nil && !p.keys.Empty() {
		return nil, p.allResting(req, rest)
	}
	speaker := dialect.Upstream{Provider: p.name, Model: req.Model, Secrets: p.secrets, Host: endpoint.Host}
	if key != nil {
		speaker.Fingerprint = key.Fingerprint
	}
	answer, failure := p.client.Do(ctx, p.request(endpoint, req, key), body, req.Stream)
	switch {
	case failure != nil:
	case answer.Status/100 != 2:
		failure = refused(answer, speaker)
	case req.Stream:
		stream := speaker.NewStream(answer, dialect.StreamOptions{
			WantsUsage: dialect.WantsUsage(req), Choices: dialect.Choices(req), Repair: p.quirks.RepairChunks, MaxBody: p.maxBody,
		})
		return &gateway.Response{
			Header: shownHeader(answer.Header), Stream: gateway.NewStream(stream), KeyFingerprint: speaker.Fingerprint,
		}, nil
	default:
		var response *gateway.Response
		if response, failure = p.plain(answer, speaker); failure == nil {
			if req.API == gateway.APIEmbeddings {
				response.Body = dialect.ConvertEmbeddings(req, response.Body)
			}
			return response, nil
		}
	}
	failure.Provider, failure.Model, failure.KeyFingerprint = p.name, req.Model, speaker.Fingerprint
	p.restKey(ctx, key, failure)
	return nil, failure
}

// plain reads an answer that is one document.
func (p *Provider) plain(answer *upstream.Answer, speaker dialect.Upstream) (*gateway.Response, *gateway.Error) {
	defer answer.Close()
	body, err := readBody(answer, p.maxBody)
	if errors.Is(err, errTooLarge) {
		return nil, &gateway.Error{
			Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_response_too_large",
			Message: fmt.Sprintf("the answer of the upstream %q is above the limit of %d bytes", p.name, p.maxBody),
			Outcome: gateway.OutcomeUnknown, UpstreamStatus: answer.Status,
		}
	}
	if err != nil {
		return nil, answer.Failure(err)
	}
	response, failure := speaker.DecodeResponse(body)
	if failure != nil {
		return nil, failure
	}
	response.Header = shownHeader(answer.Header)
	return response, nil
}

// refused reads an error answer.
func refused(answer *upstream.Answer, speaker dialect.Upstream) *gateway.Error {
	defer answer.Close()
	// What can be read of it is better than nothing.
	body, _ := io.ReadAll(io.LimitReader(answer, maxErrorBody))
	return speaker.DecodeError(answer.Status, answer.Header, body)
}

func (p *Provider) unsupported(req *gateway.Request) *gateway.Error {
	return &gateway.Error{
		Kind: gateway.ErrInvalidRequest, Status: http.StatusBadRequest, Code: "unsupported_interface",
		Message: fmt.Sprintf("the provider %q does not have the interface %q", p.name, req.API),
		Outcome: gateway.OutcomeRejected, Provider: p.name, Model: req.Model,
	}
}

// allResting is the error of a call for which no key is left. The upstream is not asked.
func (p *Provider) allResting(req *gateway.Request, rest keyring.Resting) *gateway.Error {
	e := &gateway.Error{
		Kind: gateway.ErrUpstreamAuth, Status: http.StatusBadGateway, Code: "upstream_auth",
		Message: fmt.Sprintf("the upstream %q refused the gateway's credentials not long ago", p.name),
		Outcome: gateway.OutcomeRejected, Provider: p.name, Model: req.Model,
	}
	switch rest.Reason {
	case keyring.RateLimited:
		e.Kind, e.Status, e.Code = gateway.ErrUpstreamLimit, http.StatusTooManyRequests, "upstream_rate_limited"
		e.Message = fmt.Sprintf("the upstream %q limits the gateway's rate and asked to wait", p.name)
		e.Outcome, e.RetryAfter = gateway.OutcomeRefused, rest.Wait
	case keyring.Exhausted:
		e.Kind, e.Code = gateway.ErrUpstreamQuota, "upstream_quota_exhausted"
		e.Message = fmt.Sprintf("the gateway's account at the upstream %q was found exhausted not long ago", p.name)
	case keyring.Refused:
	}
	return e
}

const (
	// restLong is how long a key rests that the upstream does not accept, or whose account is exhausted.
	restLong = 10 * time.Minute
	// restShort is how long a key rests after a 429 that does not say how long, as long as there is another one.
	restShort = time.Second
)

// restKey puts the key of a failed attempt to rest if the key is at fault, and notes whether another one is left.
func (p *Provider) restKey(ctx context.Context, key *keyring.Key, failure *gateway.Error) {
	if key == nil {
		return
	}
	switch failure.Kind {
	case gateway.ErrUpstreamAuth, gateway.ErrUpstreamQuota:
		why := keyring.Refused
		if failure.Kind == gateway.ErrUpstreamQuota {
			why = keyring.Exhausted
		}
		rest := max(restLong, failure.RetryAfter)
		if p.keys.Rest(key, rest, why) {
			p.logger.LogAttrs(ctx, slog.LevelWarn, "upstream key set aside",
				slog.String("provider", p.name), slog.String("key", key.Fingerprint),
				slog.String("why", failure.Error()), slog.Duration("for", rest))
		}
	case gateway.ErrUpstreamLimit:
		switch {
		case failure.NoRetry && failure.RetryAfter <= 0:
			return // the request is at fault: it is larger than the limit
		case failure.RetryAfter > 0:
			p.keys.Rest(key, failure.RetryAfter, keyring.RateLimited)
		case p.keys.Usable() > 1:
			p.keys.Rest(key, restShort, keyring.RateLimited)
		default:
			return // the only key goes on: how soon, the retry policy says
		}
	default:
		return
	}
	failure.OtherKey = p.keys.Usable() > 0
}

// The values of headers that are always the same. Nobody writes to them.
//
//nolint:gochecknoglobals // tables that never change
var (
	jsonValues        = []string{"application/json"}
	eventStreamValues = []string{"text/event-stream"}
	identityValues    = []string{"identity"}
	agentValues       = []string{agent}
)

// request makes the HTTP request, without its body.
func (p *Provider) request(endpoint *url.URL, req *gateway.Request, key *keyring.Key) *http.Request {
	target := *endpoint
	target.RawQuery = joinQuery(target.RawQuery, req.Query)
	header := make(http.Header, 8+len(req.Header))
	copyHeader(header, req.Header)
	header["Content-Type"] = jsonValues
	header["Accept"] = jsonValues
	if req.Stream {
		header["Accept"] = eventStreamValues
		header["Accept-Encoding"] = identityValues // compression would hold events back
	}
	header["User-Agent"] = userAgent(req.Header)
	if key != nil {
		header["Authorization"] = key.Authorization
	}
	maps.Copy(header, p.header)
	host := target.Host
	if named := p.header.Get("Host"); named != "" {
		host = named
	}
	return &http.Request{
		Method: http.MethodPost, URL: &target, Host: host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

var errTooLarge = errors.New("answer too large")

// readBody reads the whole body, into a buffer of its size if that is known.
func readBody(answer *upstream.Answer, limit int64) ([]byte, error) {
	n := answer.ContentLength
	if n > limit {
		return nil, errTooLarge
	}
	if n >= 0 {
		body := make([]byte, n)
		_, err := io.ReadFull(answer, body)
		return body, err
	}
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(answer, limit+1))
	if n > limit {
		return nil, errTooLarge
	}
	return buf.Bytes(), err
}
