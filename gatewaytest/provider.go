package gatewaytest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/gatewright/gateway"
)

// Provider is a [gateway.Provider] that plays a script and notes what it was asked. It is safe for concurrent use.
type Provider struct {
	name  string
	steps []gateway.Handler

	mu       sync.Mutex
	bound    int
	requests []gateway.Request
	running  int
	peak     int
	closed   bool
	changed  chan struct{} // closed at the next change
}

// NewProvider returns a Provider that plays the steps, one a call, and then the last one for ever. Without steps it
// answers "ok".
func NewProvider(name string, steps ...gateway.Handler) *Provider {
	if len(steps) == 0 {
		steps = []gateway.Handler{Answer("ok")}
	}
	return &Provider{name: name, steps: slices.Clone(steps), changed: make(chan struct{})}
}

// Bound sets what MaxConcurrency returns, and returns p. Call it before a Client gets the Provider.
func (p *Provider) Bound(n int) *Provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound = n
	return p
}

// Name implements [gateway.Provider].
func (p *Provider) Name() string { return p.name }

// MaxConcurrency implements [gateway.Bounded].
func (p *Provider) MaxConcurrency() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bound
}

// Do implements [gateway.Handler]. A call whose context has ended already is noted and fails with the context's error.
func (p *Provider) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	n := p.begin(req)
	streaming := false
	defer func() {
		if !streaming {
			p.end()
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x := &exchange{id: fmt.Sprintf("chatcmpl-%s-%d", p.name, n+1)}
	own := *req // learning about the request's body writes to it
	res, err := script(p.steps, n).Do(x.context(ctx), &own)
	if err != nil || res == nil || res.Stream == nil {
		return res, err
	}
	streaming = true
	out := *res
	out.Stream = gateway.NewStream(&watchedStream{source: res.Stream, ended: sync.OnceFunc(p.end)})
	return &out, nil
}

func (p *Provider) begin(req *gateway.Request) (n int) {
	seen := *req.Clone()
	p.mu.Lock()
	defer p.mu.Unlock()
	n = len(p.requests)
	p.requests = append(p.requests, seen)
	p.running++
	p.peak = max(p.peak, p.running)
	p.notify()
	return n
}

func (p *Provider) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.notify()
}

// notify wakes those who wait for a change. The caller holds mu.
func (p *Provider) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Close notes that the Provider was closed, as a [gateway.Client] does in the end.
func (p *Provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.notify()
	return nil
}

// Closed reports whether Close was called.
func (p *Provider) Closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Calls returns how often the Provider was called.
func (p *Provider) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// Requests returns copies of what the Provider was asked, in order.
func (p *Provider) Requests() []gateway.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Running returns how many calls are being answered now. A stream is being answered until it has ended or been closed.
func (p *Provider) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Peak returns the most calls that were being answered at once.
func (p *Provider) Peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// Await waits until the Provider has been called at least calls times in all and just running of them are being
// answered, or until ctx has ended, whose error it then returns.
func (p *Provider) Await(ctx context.Context, calls, running int) error {
	for {
		p.mu.Lock()
		done, changed := len(p.requests) >= calls && p.running == running, p.changed
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("gatewaytest: provider %s: %d calls, %d running: %w", p.name, p.Calls(), p.Running(), ctx.Err())
		}
	}
}

// watchedStream tells when a stream is over.
type watchedStream struct {
	source *gateway.Stream
	ended  func()
}

// Next implements [gateway.EventReader].
func (s *watchedStream) Next() (gateway.Event, error) {
	event, err := s.source.Next()
	if err != nil {
		s.ended()
	}
	return event, err
}

// Buffered tells a writer that Next will not block.
func (s *watchedStream) Buffered() bool { return s.source.Buffered() }

// Close implements [gateway.EventReader].
func (s *watchedStream) Close() error {
	defer s.ended()
	return s.source.Close()
}
