package slots_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/internal/slots"
)

func TestAcquireIsBoundedAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slots.New(1, 10)
		if err := p.Acquire(t.Context(), 0); err != nil {
			t.Fatalf("first Acquire: %v", err)
		}
		var mu sync.Mutex
		var order []int
		for i := range 3 {
			go func() {
				if err := p.Acquire(t.Context(), time.Minute); err != nil {
					t.Errorf("Acquire %d: %v", i, err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				p.Release()
			}()
			synctest.Wait() // each is in the queue before the next comes
		}
		if p.InUse() != 1 || p.Waiting() != 3 || !p.Full() {
			t.Errorf("in use %d, waiting %d, full %v; want 1, 3, true", p.InUse(), p.Waiting(), p.Full())
		}
		p.Release()
		synctest.Wait()
		if diff := cmp.Diff([]int{0, 1, 2}, order); diff != "" {
			t.Errorf("order of admission (-want +got):\n%s", diff)
		}
		if p.InUse() != 0 {
			t.Errorf("%d slots in use at the end, want 0", p.InUse())
		}
	})
}

func TestAcquireFails(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name       string
		ctx        context.Context
		maxWait    time.Duration
		maxWaiting int
		want       error
		waited     time.Duration
	}{
		{"no wait allowed", t.Context(), 0, 10, slots.ErrTimeout, 0},
		{"wait is over", t.Context(), 3 * time.Second, 10, slots.ErrTimeout, 3 * time.Second},
		{"queue is full", t.Context(), time.Second, 0, slots.ErrQueueFull, 0},
		{"caller is gone", canceled, time.Second, 10, context.Canceled, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := slots.New(1, test.maxWaiting)
				if !p.TryAcquire() {
					t.Fatal("TryAcquire on a new pool: false")
				}
				ctx := t.Context()
				if test.ctx == canceled {
					c, cancel := context.WithCancel(ctx)
					cancel()
					ctx = c
				}
				began := time.Now()
				err := p.Acquire(ctx, test.maxWait)
				if !errors.Is(err, test.want) || time.Since(began) != test.waited {
					t.Errorf("Acquire: %v after %v, want %v after %v", err, time.Since(began), test.want, test.waited)
				}
				if p.Waiting() != 0 || p.InUse() != 1 {
					t.Errorf("waiting %d, in use %d; want 0, 1", p.Waiting(), p.InUse())
				}
			})
		})
	}
}

func TestNilPoolHasNoBound(t *testing.T) {
	p := slots.New(0, 0)
	for range 100 {
		if err := p.Acquire(t.Context(), 0); err != nil || !p.TryAcquire() {
			t.Fatalf("Acquire on a pool without bound: %v", err)
		}
	}
	p.Release()
	if p.InUse() != 0 || p.Waiting() != 0 || p.Full() {
		t.Error("a pool without bound counts something")
	}
}

// Slots are handed over while their takers time out and go away: none may be lost or made twice.
func TestNoSlotIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 3
		p := slots.New(size, 1000)
		var wg sync.WaitGroup
		var mu sync.Mutex
		running, most := 0, 0
		for i := range 2000 {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(50))*time.Millisecond)
				defer cancel()
				if p.Acquire(ctx, time.Duration(random.IntN(50))*time.Millisecond) != nil {
					return
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				<-time.After(time.Duration(random.IntN(3)) * time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				p.Release()
			})
		}
		wg.Wait()
		if most != size {
			t.Errorf("at most %d ran at once, want %d", most, size)
		}
		if p.InUse() != 0 || p.Waiting() != 0 {
			t.Errorf("in use %d, waiting %d at the end, want 0", p.InUse(), p.Waiting())
		}
	})
}

func TestReleaseOfNothingPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	slots.New(1, 0).Release()
}
