package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gatewright/gateway/bench/internal/wire"
)

// memory is what a proxy's process takes.
type memory struct {
	idle    int64   // resident, as it was started
	resting int64   // resident, once it has served something and given back what it does not use
	rss     float64 // resident, per open stream
	live    float64 // the same, after everything has been given back that is not used
	heap    float64 // Go heap in use, per open stream, after the same
	stack   float64 // goroutines' stacks, per open stream
}

// measureMemory starts a proxy of its own for it, serves a little, and then opens n streams that carry an event a second.
func measureMemory(ctx context.Context, role string, up *process, n int, folder string) (m memory, err error) {
	p, err := start(ctx, role, up.address)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	time.Sleep(settle)
	fresh, err := p.ask(askMemory)
	if err != nil {
		return m, err
	}
	m.idle = fresh.RSS

	c := &contender{name: role, process: p, address: p.address}
	defer c.close()
	for _, s := range []scenario{{mode: modePlain, size: 300, conns: 4}, {mode: modeBurst, size: 300, conns: 4}} {
		if _, err := c.window(s, settle); err != nil {
			return m, err
		}
	}
	c.close()
	time.Sleep(settle)
	before, err := p.ask(askLive)
	if err != nil {
		return m, err
	}
	m.resting = before.RSS
	opened, err := openStreams(c, n)
	if err != nil {
		return m, err
	}
	defer opened()
	// Some events pass on each stream, so that buffers are as they are in use.
	time.Sleep(3 * slowPause())
	if open, err := up.ask(askCounts); err != nil || open.Open != int64(n) {
		return m, fmt.Errorf("%s: %d streams are open, want %d: %w", role, open.Open, n, err)
	}
	during, err := p.ask(askMemory)
	if err != nil {
		return m, err
	}
	live, err := p.ask(askLive)
	if err != nil {
		return m, err
	}
	if folder != "" {
		if _, err := p.ask(askHeap + filepath.Join(folder, role+".streams")); err != nil {
			return m, err
		}
	}
	per := func(after, before int64) float64 { return float64(after-before) / float64(n) }
	m.rss = per(during.RSS, before.RSS)
	m.live = per(live.RSS, before.RSS)
	m.heap, m.stack = per(live.Heap, before.Heap), per(live.Stack, before.Stack)
	return m, nil
}

const settle = 200 * time.Millisecond

// openStreams opens n streams and reads them on and on, until the returned function closes them and waits for that.
func openStreams(c *contender, n int) (closeAll func(), err error) {
	if err := c.dial(n); err != nil {
		return nil, err
	}
	request := postRequest(c.address, gatewayKey, wire.Request(wire.Alias, modeSlow, 300, true))
	done := make(chan struct{}, n)
	for i, connection := range c.conns {
		if _, err := connection.Write(request); err != nil {
			return nil, fmt.Errorf("%s: open stream %d: %w", c.name, i, err)
		}
		if status, _, err := connection.readHead(); err != nil || status != 200 {
			return nil, fmt.Errorf("%s: open stream %d: status %d: %w", c.name, i, status, err)
		}
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				if _, err := connection.in.ReadSlice('\n'); err != nil {
					return
				}
			}
		}()
	}
	return func() {
		c.close()
		for range n {
			<-done
		}
	}, nil
}
