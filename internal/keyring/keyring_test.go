package keyring_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/internal/keyring"
)

func newRing(texts ...string) *keyring.Ring {
	var secrets []gateway.Secret
	for _, text := range texts {
		secrets = append(secrets, gateway.NewSecret(text))
	}
	return keyring.New(secrets)
}

func next(t *testing.T, r *keyring.Ring) string {
	t.Helper()
	k, rest := r.Next()
	if k == nil {
		t.Fatalf("no key: %+v", rest)
	}
	return k.Secret.Reveal()
}

func TestKeysAreUsedInTurn(t *testing.T) {
	r := newRing("a", "b", "c")
	count := map[string]int{}
	for range 300 {
		count[next(t, r)]++
	}
	if count["a"] != 100 || count["b"] != 100 || count["c"] != 100 {
		t.Error(count)
	}
	k, _ := r.Next()
	if k.Fingerprint != k.Secret.Fingerprint() || k.Authorization[0] != "Bearer "+k.Secret.Reveal() {
		t.Errorf("%+v", k)
	}
}

func TestEmpty(t *testing.T) {
	r := newRing()
	if k, _ := r.Next(); k != nil || !r.Empty() || r.Usable() != 0 {
		t.Error("a key out of nothing")
	}
}

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing("a", "b")
		a, b := r.Keys()[0], r.Keys()[1]
		if !r.Rest(a, time.Minute, keyring.RateLimited) {
			t.Error("the first time is not noted")
		}
		for range 4 {
			if got := next(t, r); got != "b" {
				t.Fatal(got)
			}
		}
		if r.Usable() != 1 {
			t.Error(r.Usable())
		}
		if r.Rest(a, time.Second, keyring.RateLimited) {
			t.Error("it rested already")
		}
		time.Sleep(30 * time.Second)
		r.Rest(b, 10*time.Second, keyring.RateLimited)
		if k, rest := r.Next(); k != nil || rest.Wait != 10*time.Second || rest.Reason != keyring.RateLimited {
			t.Errorf("want the earliest time: %+v", rest)
		}
		time.Sleep(10 * time.Second)
		if got := next(t, r); got != "b" {
			t.Error(got)
		}
		time.Sleep(20 * time.Second)
		if r.Usable() != 2 {
			t.Error("a is not back after its minute, which the shorter rest must not change")
		}
	})
}

func TestWhyNoKeyIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing("a", "b")
		a, b := r.Keys()[0], r.Keys()[1]
		r.Rest(a, time.Minute, keyring.Refused)
		r.Rest(b, time.Hour, keyring.RateLimited)
		for range 2 { // whichever is looked at first
			if _, rest := r.Next(); rest.Reason != keyring.RateLimited || rest.Wait != time.Hour {
				t.Errorf("a limit passes, a refusal does not: %+v", rest)
			}
		}
		if !r.Rest(b, 2*time.Hour, keyring.Refused) {
			t.Error("a refusal is news for a key that was only limited")
		}
		if _, rest := r.Next(); rest.Reason != keyring.Refused || rest.Wait != time.Minute {
			t.Errorf("%+v", rest)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	r := newRing("a", "b", "c")
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for range 1000 {
				if k, _ := r.Next(); k != nil && i%4 == 0 {
					r.Rest(k, time.Microsecond, keyring.RateLimited)
				}
				r.Usable()
			}
		})
	}
	wait.Wait()
}

func TestNextDoesNotAllocate(t *testing.T) {
	r := newRing("a", "b")
	if n := testing.AllocsPerRun(100, func() { r.Next() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNext(b *testing.B) {
	r := newRing("a", "b", "c")
	b.ReportAllocs()
	for b.Loop() {
		r.Next()
	}
}
