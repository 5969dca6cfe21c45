package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/gatewright/gateway/bench/internal/sample"
	"github.com/gatewright/gateway/bench/internal/wire"
)

// scenario is a kind of load.
type scenario struct {
	name  string
	mode  string
	size  int // of a request's body
	conns int
}

func (s *scenario) stream() bool { return s.mode != modePlain }

// units is how much one call of the scenario counts for: 1, or the number of its events.
func (s *scenario) units() int {
	if s.stream() {
		return len(wire.Events(streamEvents))
	}
	return 1
}

func scenarios() []scenario {
	var all []scenario
	for _, conns := range []int{1, 16, 64} {
		all = append(all, scenario{fmt.Sprintf("plain, 300 B, %d conns", conns), modePlain, 300, conns})
	}
	for _, conns := range []int{1, 16, 64} {
		all = append(all, scenario{fmt.Sprintf("plain, 100 KB, %d conns", conns), modePlain, 100_000, conns})
	}
	for _, conns := range []int{1, 16, 64} {
		all = append(all, scenario{fmt.Sprintf("stream, %d a write, %d conns", burstSize, conns), modeBurst, 300, conns})
	}
	return append(all, scenario{"stream, 1 a write, 16 conns", modeEach, 300, 16})
}

// contender is a way to the upstream: through a proxy, or none.
type contender struct {
	name    string
	process *process // nil: the way is direct
	address string
	conns   []*conn
}

// dial sees to it that there are at least n connections.
func (c *contender) dial(n int) error {
	for len(c.conns) < n {
		connection, err := dial(c.address)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.conns = append(c.conns, connection)
	}
	return nil
}

func (c *contender) close() {
	for _, connection := range c.conns {
		_ = connection.Close()
	}
	c.conns = nil
}

// reading is what one window of load showed. A unit is a call, or an event of a stream.
type reading struct {
	calls   int
	rate    float64 // units per second
	cpu     float64 // of the proxy, µs per unit
	latency float64 // median of a call, µs
	objects float64 // that the proxy allocated, per call
	bytes   float64 // that the proxy allocated, per call
}

// window puts the scenario's load on a contender for about d.
func (c *contender) window(s scenario, d time.Duration) (reading, error) {
	if err := c.dial(s.conns); err != nil {
		return reading{}, err
	}
	request := postRequest(c.address, gatewayKey, wire.Request(wire.Alias, s.mode, s.size, s.stream()))
	before, err := c.usage()
	if err != nil {
		return reading{}, err
	}
	latencies := make([][]float64, s.conns)
	failures := make([]error, s.conns)
	var all sync.WaitGroup
	began := time.Now()
	for i, connection := range c.conns[:s.conns] {
		all.Go(func() { latencies[i], failures[i] = load(connection, request, expectedSize(s.mode), began.Add(d)) })
	}
	all.Wait()
	elapsed := time.Since(began)
	after, err := c.usage()
	if err != nil {
		return reading{}, err
	}
	var merged []float64
	for i := range latencies {
		if failures[i] != nil {
			return reading{}, fmt.Errorf("%s: %s: %w", c.name, s.name, failures[i])
		}
		merged = append(merged, latencies[i]...)
	}
	calls := float64(len(merged))
	units := calls * float64(s.units())
	return reading{
		calls: len(merged), rate: units / elapsed.Seconds(), cpu: (after.CPU - before.CPU) / units,
		latency: sample.Median(merged), objects: float64(after.Objects-before.Objects) / calls,
		bytes: float64(after.Bytes-before.Bytes) / calls,
	}, nil
}

func (c *contender) usage() (reply, error) {
	if c.process == nil {
		return reply{}, nil
	}
	return c.process.ask(askUsage)
}

// load makes one call after the other until the deadline, and returns how long each took in µs. It makes one at least.
func load(c *conn, request []byte, want int, deadline time.Time) ([]float64, error) {
	latencies := make([]float64, 0, 4096)
	for began := time.Now(); ; {
		status, size, err := c.call(request, nil)
		if err != nil {
			return nil, err
		}
		if status != 200 || size != want {
			return nil, fmt.Errorf("got status %d and %d bytes, want 200 and %d", status, size, want)
		}
		now := time.Now()
		latencies = append(latencies, microseconds(now.Sub(began)))
		if began = now; now.After(deadline) {
			return latencies, nil
		}
	}
}

// expectedSize is how many bytes an answer has, whoever passes it on.
func expectedSize(mode string) int {
	if mode == modePlain {
		return len(wire.Answer())
	}
	size := 0
	for _, event := range wire.Events(streamEvents) {
		size += len(event)
	}
	return size
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
