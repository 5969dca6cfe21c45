package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/gatewright/gateway/bench/internal/wire"
)

// checkedCalls is how many calls checkAnswers makes that are answered.
const checkedCalls = 4

// checkAnswers makes one call of each kind through c and compares what comes back, and what the upstream got, with what
// is right. Nothing is measured before everybody has passed.
func (c *contender) checkAnswers(up *process) error {
	if err := c.dial(1); err != nil {
		return err
	}
	for _, s := range []scenario{
		{mode: modePlain, size: 300}, {mode: modePlain, size: 100_000}, {mode: modeBurst, size: 300}, {mode: modeEach, size: 300},
	} {
		sent := wire.Request(wire.Alias, s.mode, s.size, s.stream())
		var got []byte
		status, _, err := c.conns[0].call(postRequest(c.address, gatewayKey, sent), &got)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.name, s.mode, err)
		}
		want := wire.Answer()
		if s.stream() {
			want = bytes.Join(wire.Events(streamEvents), nil)
		}
		if status != 200 || !bytes.Equal(got, want) {
			return fmt.Errorf("%s: %s: status %d and\n%s\nwant\n%s", c.name, s.mode, status, got, want)
		}
		if err := c.checkArrived(up, sent); err != nil {
			return fmt.Errorf("%s: %s: %w", c.name, s.mode, err)
		}
	}
	return c.checkDuties()
}

// checkArrived compares the document that the upstream got with the one that was sent.
func (c *contender) checkArrived(up *process, sent []byte) error {
	r, err := up.ask(askLast)
	if err != nil {
		return err
	}
	want := string(sent)
	if c.hasDuties() {
		want = strings.Replace(want, wire.Alias, wire.Model, 1)
	}
	if r.Last != want {
		return fmt.Errorf("the upstream got\n%.400s\nwant\n%.400s", r.Last, want)
	}
	return nil
}

// hasDuties reports whether c is a gateway rather than a way for bytes.
func (c *contender) hasDuties() bool {
	return c.process != nil && (c.process.role == roleLean || c.process.role == roleGateway)
}

// checkDuties has a wrong key refused.
func (c *contender) checkDuties() error {
	if !c.hasDuties() {
		return nil
	}
	request := postRequest(c.address, gatewayKey+"x", wire.Request(wire.Alias, modePlain, 300, false))
	status, _, err := c.conns[0].call(request, nil)
	if err != nil {
		return fmt.Errorf("%s: wrong key: %w", c.name, err)
	}
	if status != 401 {
		return fmt.Errorf("%s: a wrong key got status %d", c.name, status)
	}
	return nil
}

// checkCounts compares what a proxy counted in a whole run with what was asked of it: it has done its duties all along.
func (c *contender) checkCounts(calls int64) error {
	if !c.hasDuties() {
		return nil
	}
	r, err := c.process.ask(askCounts)
	if err != nil {
		return err
	}
	if want := calls * (wire.PromptTokens + wire.CompletionTokens); r.Requests != calls || r.Tokens != want || r.Unpriced != 0 {
		return fmt.Errorf("%s counted %d calls, %d tokens, %d without cost; it should be %d, %d, 0",
			c.name, r.Requests, r.Tokens, r.Unpriced, calls, want)
	}
	return nil
}
