package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// gatewayKey is what callers present.
const gatewayKey = "gw-bench-3f9a6c1de07b4852"

// conn is one client's connection. Like the upstream, it is bare, so that the proxies take most of the machine.
type conn struct {
	net.Conn

	in      *bufio.Reader
	scratch []byte
}

func dial(address string) (*conn, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 32<<10), scratch: make([]byte, 32<<10)}, nil
}

// postRequest returns the bytes of a POST with the given key and body.
func postRequest(address, key string, body []byte) []byte {
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nUser-Agent: proxybench\r\n"+
		"Accept: application/json\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		address, key, len(body), body)
}

// call sends a request, reads its answer, and returns the status and the number of the body's bytes. The body is
// appended to *keep unless that is nil.
func (c *conn) call(request []byte, keep *[]byte) (status, size int, err error) {
	if err := c.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return 0, 0, fmt.Errorf("set the deadline: %w", err)
	}
	if _, err := c.Write(request); err != nil {
		return 0, 0, fmt.Errorf("write: %w", err)
	}
	status, length, err := c.readHead()
	if err != nil {
		return 0, 0, err
	}
	if length >= 0 {
		return status, length, c.read(length, keep)
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return status, size, fmt.Errorf("read a chunk's size: %w", err)
		}
		n, err := parseHex(bytes.TrimRight(line, "\r\n"))
		if err != nil {
			return status, size, err
		}
		if n == 0 {
			return status, size, c.skipTrailer()
		}
		size += n
		if err := c.read(n, keep); err != nil {
			return status, size, err
		}
		if _, err := c.in.Discard(len("\r\n")); err != nil {
			return status, size, fmt.Errorf("read a chunk's end: %w", err)
		}
	}
}

// callTimeout is for a call that hangs: no call takes as long.
const callTimeout = 20 * time.Second

// readHead reads an answer up to its body and returns the body's length, -1 for a chunked one.
func (c *conn) readHead() (status, length int, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, fmt.Errorf("read the head: %w", err)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return status, length, nil
		}
		if first {
			if len(line) < len("HTTP/1.1 200") {
				return 0, 0, fmt.Errorf("not an HTTP answer: %q", line)
			}
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, 0, fmt.Errorf("status: %w", err)
			}
			continue
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); len(name) == 14 && strings.EqualFold(string(name), "Content-Length") {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, 0, fmt.Errorf("content length: %w", err)
			}
		}
	}
}

func (c *conn) read(n int, keep *[]byte) error {
	for n > 0 {
		piece := c.scratch[:min(n, len(c.scratch))]
		if _, err := io.ReadFull(c.in, piece); err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
		if keep != nil {
			*keep = append(*keep, piece...)
		}
		n -= len(piece)
	}
	return nil
}

func (c *conn) skipTrailer() error {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("read the trailer: %w", err)
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return nil
		}
	}
}

var errNotHex = errors.New("not a chunk's size")

func parseHex(digits []byte) (n int, err error) {
	if len(digits) == 0 || len(digits) > 8 {
		return 0, errNotHex
	}
	for _, d := range digits {
		switch {
		case d >= '0' && d <= '9':
			n = n<<4 + int(d-'0')
		case d >= 'a' && d <= 'f':
			n = n<<4 + int(d-'a') + 10
		case d >= 'A' && d <= 'F':
			n = n<<4 + int(d-'A') + 10
		default:
			return 0, errNotHex
		}
	}
	return n, nil
}
