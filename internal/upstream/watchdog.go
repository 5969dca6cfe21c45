package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Timeouts bounds one attempt. A zero has no effect.
type Timeouts struct {
	Connect   time.Duration // until there is a connection
	FirstByte time.Duration // from then on until the answer's headers; on a stream until its first output
	Idle      time.Duration // between two reads of the answer after that
	Total     time.Duration // the whole attempt
}

// phase is what an attempt is waiting for.
type phase int32

const (
	connecting phase = iota
	waiting          // for the headers, on a stream for the first output
	receiving        // between two reads
	ended
)

// timeout is the cause with which a watchdog ends an attempt.
type timeout struct {
	phase phase
	total bool // the whole attempt took too long
	after time.Duration
}

func (t *timeout) Error() string {
	what := [...]string{"no connection", "no answer", "no further data", "not done"}[t.phase]
	if t.total {
		what = "not done"
	}
	return what + " within " + t.after.String()
}

// watchdog ends an attempt that takes too long. What happens only stores the time; its one timer looks at that when it
// fires, and is set anew only then or when a phase with an earlier deadline begins.
type watchdog struct {
	timeouts Timeouts
	cancel   context.CancelCauseFunc
	started  time.Time
	active   atomic.Int64 // when something last happened, as time since started
	reading  atomic.Bool  // somebody waits for the upstream; otherwise it is the reader who takes its time

	mu    sync.Mutex
	phase phase
	since time.Time // when it began
	fires time.Time // when timer fires; zero: it is stopped
	timer *time.Timer
}

func newWatchdog(timeouts Timeouts, first phase, cancel context.CancelCauseFunc) *watchdog {
	w := &watchdog{timeouts: timeouts, cancel: cancel, started: time.Now(), phase: first}
	w.since = w.started
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arm(w.started)
	return w
}

func (w *watchdog) touch() { w.active.Store(int64(time.Since(w.started))) }

// begin and done stand around each read.
func (w *watchdog) begin() {
	w.touch()
	w.reading.Store(true)
}

func (w *watchdog) done() {
	w.reading.Store(false)
	w.touch()
}

// enter begins a later phase. It is a no-op when that phase has begun already.
func (w *watchdog) enter(p phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p <= w.phase {
		return
	}
	now := time.Now()
	w.phase, w.since = p, now
	w.touch()
	w.arm(now)
}

// deadline returns when the attempt has taken too long, and why; zero for never. The caller holds mu.
func (w *watchdog) deadline() (time.Time, timeout) {
	var limit time.Duration
	since := w.since
	switch w.phase {
	case connecting:
		limit = w.timeouts.Connect
	case waiting:
		limit = w.timeouts.FirstByte // whatever else arrives meanwhile
	case receiving:
		limit = w.timeouts.Idle
		since = w.started.Add(time.Duration(w.active.Load()))
	case ended:
		return time.Time{}, timeout{}
	}
	var at time.Time
	var why timeout
	if limit > 0 {
		at = since.Add(limit)
		why = timeout{phase: w.phase, after: limit}
	}
	if total := w.timeouts.Total; total > 0 && (at.IsZero() || w.started.Add(total).Before(at)) {
		at = w.started.Add(total)
		why = timeout{phase: w.phase, total: true, after: total}
	}
	return at, why
}

// arm sees to it that the timer fires no later than the deadline. The caller holds mu.
func (w *watchdog) arm(now time.Time) {
	at, _ := w.deadline()
	switch {
	case at.IsZero():
		if w.timer != nil {
			w.timer.Stop()
		}
		w.fires = time.Time{}
	case w.timer == nil:
		w.fires = at
		w.timer = time.AfterFunc(at.Sub(now), w.fire)
	case w.fires.IsZero() || at.Before(w.fires):
		w.fires = at
		w.timer.Reset(at.Sub(now))
	}
}

func (w *watchdog) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fires = time.Time{}
	if w.phase == receiving && !w.reading.Load() {
		w.touch() // nobody waits for the upstream
	}
	at, why := w.deadline()
	if at.IsZero() {
		return
	}
	now := time.Now()
	if at.After(now) {
		w.arm(now)
		return
	}
	w.phase = ended
	w.cancel(&why)
}

func (w *watchdog) stop() { w.enter(ended) }
