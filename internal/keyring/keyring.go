// Package keyring picks among the several keys that one upstream is called with. A key that was refused rests while the
// others go on.
package keyring

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatewright/gateway"
)

// Reason is why a key rests.
type Reason int

// The reasons.
const (
	RateLimited Reason = iota + 1 // it comes back by itself
	Exhausted                     // its account has no money left
	Refused                       // the upstream does not accept it
)

// Key is one key of a ring.
type Key struct {
	Secret        gateway.Secret
	Fingerprint   string
	Authorization []string // the header's values

	until  atomic.Int64 // when it can be used again, as time since the ring's epoch; 0: now
	reason atomic.Int32
}

// Ring hands out keys in turn. It is safe for concurrent use.
type Ring struct {
	keys  []*Key
	next  atomic.Uint32
	epoch time.Time

	mu sync.Mutex // held while a key is put to rest
}

// New returns a ring of the given keys.
func New(secrets []gateway.Secret) *Ring {
	r := &Ring{epoch: time.Now()}
	for _, s := range secrets {
		r.keys = append(r.keys, &Key{
			Secret: s, Fingerprint: s.Fingerprint(), Authorization: []string{"Bearer " + s.Reveal()},
		})
	}
	return r
}

// Empty reports whether the ring has no keys at all: then none is needed.
func (r *Ring) Empty() bool { return len(r.keys) == 0 }

// Keys returns all keys.
func (r *Ring) Keys() []*Key { return r.keys }

// Resting says why no key can be used, and for how long.
type Resting struct {
	Wait   time.Duration
	Reason Reason
}

// Next returns the next key that can be used. It is nil when all of them rest: then the second value says for how long.
func (r *Ring) Next() (*Key, Resting) {
	start := int(r.next.Add(1) - 1)
	var now time.Duration
	rest := Resting{Reason: Refused}
	for i := range r.keys {
		k := r.keys[(start+i)%len(r.keys)]
		until := time.Duration(k.until.Load())
		if until == 0 {
			return k, Resting{}
		}
		if now == 0 {
			now = time.Since(r.epoch)
		}
		if until <= now {
			return k, Resting{}
		}
		// A rate limit passes: as long as one key only waits for that, the ring as a whole does.
		reason := Reason(k.reason.Load())
		if i == 0 || reason < rest.Reason || reason == rest.Reason && until-now < rest.Wait {
			rest = Resting{Wait: until - now, Reason: reason}
		}
	}
	return nil, rest
}

// Rest puts a key to rest for d. It reports whether the key was in use until now.
func (r *Ring) Rest(k *Key, d time.Duration, why Reason) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Since(r.epoch)
	old := time.Duration(k.until.Load())
	first = old <= now || Reason(k.reason.Load()) < why
	if until := now + d; until > old {
		k.reason.Store(int32(why))
		k.until.Store(int64(until))
	}
	return first
}

// Usable returns how many keys could be used now.
func (r *Ring) Usable() int {
	now, n := time.Since(r.epoch), 0
	for _, k := range r.keys {
		if time.Duration(k.until.Load()) <= now {
			n++
		}
	}
	return n
}
