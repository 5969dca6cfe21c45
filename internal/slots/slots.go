// Package slots bounds how many things run at once, with a bounded first-come, first-served queue in front.
package slots

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Why Acquire can fail, beside the context's own error.
var (
	ErrQueueFull = errors.New("too many are waiting for a free slot")
	ErrTimeout   = errors.New("no slot became free in time")
)

// Pool holds a number of slots. A nil Pool has no bound: every call succeeds at once. It is safe for concurrent use.
type Pool struct {
	mu         sync.Mutex
	size       int
	inUse      int
	maxWaiting int
	waiters    list.List // of chan struct{}, closed when a slot has been handed over
}

// New returns a Pool of size slots for whose release at most maxWaiting may wait, or nil when size is 0: no bound.
func New(size, maxWaiting int) *Pool {
	if size <= 0 {
		return nil
	}
	return &Pool{size: size, maxWaiting: maxWaiting}
}

// TryAcquire takes a slot if one is free now and nobody waits for it.
func (p *Pool) TryAcquire() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tryAcquire()
}

func (p *Pool) tryAcquire() bool {
	if p.inUse >= p.size || p.waiters.Len() > 0 {
		return false
	}
	p.inUse++
	return true
}

// Acquire takes a slot, waiting for at most maxWait. It returns [ErrQueueFull], [ErrTimeout] or the context's error when
// it got none.
func (p *Pool) Acquire(ctx context.Context, maxWait time.Duration) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if p.tryAcquire() {
		p.mu.Unlock()
		return nil
	}
	switch {
	case maxWait <= 0:
		p.mu.Unlock()
		return ErrTimeout
	case p.waiters.Len() >= p.maxWaiting:
		p.mu.Unlock()
		return ErrQueueFull
	}
	ready := make(chan struct{})
	waiter := p.waiters.PushBack(ready)
	p.mu.Unlock()

	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	err := ErrTimeout
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-ready: // handed over at the last moment: pass it on
		p.release()
	default:
		p.waiters.Remove(waiter)
	}
	return err
}

// Release gives a slot back.
func (p *Pool) Release() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
}

func (p *Pool) release() {
	if next := p.waiters.Front(); next != nil {
		p.waiters.Remove(next)
		close(next.Value.(chan struct{})) //nolint:forcetypeassert // nothing else is in the list; the slot passes to the next
		return
	}
	if p.inUse == 0 {
		panic("slots: released more often than acquired")
	}
	p.inUse--
}

// Full reports whether the next Acquire would have to wait.
func (p *Pool) Full() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse >= p.size
}

// InUse returns how many slots are taken.
func (p *Pool) InUse() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse
}

// Waiting returns how many are waiting.
func (p *Pool) Waiting() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters.Len()
}
