package gateway

import (
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Option configures a [Client]. Options given later add to, or replace, those given earlier.
type Option func(*setup)

// setup collects what the options say, until New has checked it as a whole.
type setup struct {
	providers   []Provider
	aliases     []Alias
	middlewares []Middleware
	limiter     Limiter
	meter       CostMeter
	unpriced    Unpriced
	recorders   []Recorder
	logger      *slog.Logger
	maxWait     time.Duration
	maxWaiting  int
	problems    Problems
}

// Unpriced says what happens to a call when no price is known for the model that would serve it.
type Unpriced int

// The ways to treat a model without a price.
const (
	UnpricedAllow  Unpriced = iota // serve it; the record has no cost and says no_price
	UnpricedRefuse                 // do not send it
)

// WithProvider adds providers. Their names must differ. The Client closes those that have a Close method.
func WithProvider(providers ...Provider) Option {
	return func(s *setup) { s.providers = append(s.providers, providers...) }
}

// WithAlias adds aliases. Their names must differ, and their candidates' providers must exist.
func WithAlias(aliases ...Alias) Option {
	return func(s *setup) { s.aliases = append(s.aliases, aliases...) }
}

// WithMiddleware adds middlewares around admission and dispatch. The first one is the outermost.
func WithMiddleware(middlewares ...Middleware) Option {
	return func(s *setup) { s.middlewares = append(s.middlewares, middlewares...) }
}

// WithLimiter sets the limiter that admits every call. The default admits all.
func WithLimiter(l Limiter) Option { return func(s *setup) { s.limiter = l } }

// WithCostMeter sets the meter for candidates that have no Price of their own. The default knows no price.
func WithCostMeter(m CostMeter) Option { return func(s *setup) { s.meter = m } }

// WithUnpriced says what happens to models without a price. The default is [UnpricedAllow].
func WithUnpriced(u Unpriced) Option { return func(s *setup) { s.unpriced = u } }

// WithRecorder adds recorders. Each gets the record of every call.
func WithRecorder(recorders ...Recorder) Option {
	return func(s *setup) { s.recorders = append(s.recorders, recorders...) }
}

// WithLogger sets where the Client logs failovers and its own trouble. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(s *setup) { s.logger = l } }

// WithQueue bounds the wait for a free slot of an alias, provider or candidate that is at its MaxConcurrency: how long
// a call waits (0: not at all) and how many calls may wait for one slot. The default is 5 s and 1000.
func WithQueue(maxWait time.Duration, maxWaiting int) Option {
	return func(s *setup) { s.maxWait, s.maxWaiting = maxWait, maxWaiting }
}

// WithConfig adds everything that a configuration says. The function opens its providers: [providers.Open] knows all
// that come with this module.
//
// [providers.Open]: https://pkg.go.dev/github.com/gatewright/gateway/providers#Open
func WithConfig(config Config, open func(ProviderConfig) (Provider, error)) Option {
	return func(s *setup) {
		for i, pc := range config.Providers {
			p, err := open(pc)
			if err != nil {
				s.problems.joinBelow(fmt.Sprintf("providers[%d]", i), err)
				continue
			}
			s.providers = append(s.providers, p)
		}
		for _, mc := range config.Models {
			s.aliases = append(s.aliases, mc.alias())
		}
		if config.Prices.Unpriced == "refuse" {
			s.unpriced = UnpricedRefuse
		}
		if wait := config.Queue.MaxWait; wait != nil {
			s.maxWait = time.Duration(*wait)
		}
		if waiting := config.Queue.MaxWaiting; waiting != nil {
			s.maxWaiting = *waiting
		}
	}
}

// New builds a Client. When something is wrong, the error is [Problems] and lists all of it, each with its path.
func New(options ...Option) (*Client, error) {
	s := setup{logger: slog.Default(), maxWait: 5 * time.Second, maxWaiting: 1000}
	for _, option := range options {
		option(&s)
	}
	c := &Client{
		routes: make(map[string]*route, len(s.aliases)), providers: s.providers, limiter: s.limiter, meter: s.meter,
		unpriced: s.unpriced, recorders: s.recorders, logger: s.logger, created: time.Now(),
	}
	problems := s.problems
	failed := len(problems) > 0 // providers are missing because they did not open: not a second problem
	providers := make(map[string]*upstream, len(s.providers))
	for i, p := range s.providers {
		at := fmt.Sprintf("providers[%d].name", i)
		switch {
		case p == nil:
			problems.addf(at, "the provider is nil")
		case p.Name() == "":
			problems.addf(at, "a provider needs a name")
		case providers[p.Name()] != nil:
			problems.addf(at, "there are two providers %q", p.Name())
		default:
			providers[p.Name()] = newUpstream(p, s.maxWaiting)
		}
	}
	known := func(name string) bool { return failed || providers[name] != nil }
	for i, alias := range s.aliases {
		at := fmt.Sprintf("models[%d]", i)
		problems.join(at, alias.validate(at, known))
		if c.routes[alias.Name] != nil {
			problems.addf(at+".alias", "there are two aliases %q", alias.Name)
		}
		c.routes[alias.Name] = newRoute(alias, providers, s.maxWait, s.maxWaiting)
		c.aliases = append(c.aliases, alias.Name)
	}
	if s.maxWait < 0 || s.maxWaiting < 0 {
		problems.addf("queue", "max_wait and max_waiting must not be negative")
	}
	if s.logger == nil {
		problems.addf("log", "the logger is nil")
	}
	if err := problems.err(); err != nil {
		closeAll(s.providers)
		return nil, err
	}
	c.handler = HandlerFunc(c.dispatch)
	for _, middleware := range slices.Backward(s.middlewares) {
		c.handler = middleware(c.handler)
	}
	return c, nil
}
