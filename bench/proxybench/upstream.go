package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatewright/gateway/bench/internal/wire"
)

// The modes of the mock upstream: what a request's user member asks it to do.
const (
	modePlain = "plain" // a whole answer
	modeBurst = "burst" // a stream without pauses, burstSize events in a write
	modeEach  = "each"  // a stream without pauses, each event in a write of its own
	modeSlow  = "slow"  // a stream that stays open: an event at once, and then one every slowPause
)

const (
	streamEvents = 200 // events with text in a stream
	burstSize    = 20
)

// slowPause is the time between the events of a slow stream: a second, unless a test says otherwise.
func slowPause() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(pauseVariable)); err == nil && d > 0 {
		return d
	}
	return time.Second
}

// upstream is the mock of a model's server. It speaks just enough HTTP/1.1 over bare connections that it costs next to
// nothing, and answers each mode from bytes that it made before.
type upstream struct {
	plain []byte
	burst [][]byte // the writes of a burst
	each  [][]byte
	slow  [][]byte

	requests atomic.Int64
	open     atomic.Int64 // slow streams

	mu   sync.Mutex
	last []byte // the latest request's body
}

func newUpstream() *upstream {
	const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n" +
		"Transfer-Encoding: chunked\r\n\r\n"
	answer := wire.Answer()
	u := &upstream{
		plain: fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer),
	}
	events := wire.Events(streamEvents)
	for i, event := range events {
		piece := chunked(event)
		if i == 0 {
			piece = append([]byte(streamHead), piece...)
		}
		if i == len(events)-1 {
			piece = append(piece, "0\r\n\r\n"...)
		}
		u.each = append(u.each, piece)
	}
	for i := 0; i < len(u.each); i += burstSize {
		u.burst = append(u.burst, bytes.Join(u.each[i:min(i+burstSize, len(u.each))], nil))
	}
	u.slow = [][]byte{bytes.Join(u.each[:2], nil)}
	u.slow = append(u.slow, u.each[2:]...)
	return u
}

func chunked(p []byte) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(p), p) }

// serve answers connections until ctx ends.
func (u *upstream) serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		go func() {
			defer conn.Close()
			_ = u.answer(ctx, conn) // the proxy or the load generator reports what is wrong
		}()
	}
}

func (u *upstream) answer(ctx context.Context, conn net.Conn) error {
	in := bufio.NewReaderSize(conn, 16<<10)
	var body []byte
	for {
		length, err := readRequestHead(in)
		if err != nil {
			return err
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(in, body); err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
		if u.requests.Add(1) <= kept {
			u.mu.Lock()
			u.last = append(u.last[:0], body...)
			u.mu.Unlock()
		}
		var pieces [][]byte
		switch mode := modeOf(body); mode {
		case modePlain:
			pieces = [][]byte{u.plain}
		case modeBurst:
			pieces = u.burst
		case modeEach:
			pieces = u.each
		case modeSlow:
			if err := u.dribble(ctx, conn); err != nil {
				return err
			}
			continue
		default:
			return fmt.Errorf("no mode %q", mode)
		}
		for _, piece := range pieces {
			if _, err := conn.Write(piece); err != nil {
				return fmt.Errorf("write: %w", err)
			}
		}
	}
}

// kept is how many requests the upstream copies to show them: those of the checks before it is measured.
const kept = 100

func (u *upstream) dribble(ctx context.Context, conn net.Conn) error {
	u.open.Add(1)
	defer u.open.Add(-1)
	tick := time.NewTicker(slowPause())
	defer tick.Stop()
	for _, piece := range u.slow {
		if _, err := conn.Write(piece); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func modeOf(body []byte) string {
	const member = `"user":"`
	_, rest, _ := bytes.Cut(body[:min(len(body), 512)], []byte(member))
	mode, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(mode)
}

// readRequestHead reads up to the body and returns its length.
func readRequestHead(in *bufio.Reader) (length int, err error) {
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, fmt.Errorf("read the head: %w", err)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return length, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case first:
			if !bytes.HasPrefix(line, []byte("POST /v1/chat/completions ")) {
				return 0, fmt.Errorf("not a chat call: %s", line)
			}
		case len(name) == len("Content-Length") && strings.EqualFold(string(name), "Content-Length"):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, fmt.Errorf("content length: %w", err)
			}
		case strings.EqualFold(string(name), "Transfer-Encoding"):
			return 0, errors.New("a request of unknown length")
		}
	}
}
