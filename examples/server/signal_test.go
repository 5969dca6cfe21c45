//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/gatewright/gateway/gatewaytest"
)

// child is the server as a process of its own.
type child struct {
	*exec.Cmd

	base   string
	exited chan error
	log    output
}

func startChild(t *testing.T, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.CommandContext(t.Context(), self, append([]string{"-listen", "127.0.0.1:0"}, args...)...), exited: make(chan error, 1)}
	c.Env, c.Stderr = []string{childVariable + "=1", "GOCOVERDIR=" + t.TempDir()}, &c.log
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	for c.base == "" {
		line, err := lines.ReadString('\n')
		if m := greeting.FindStringSubmatch(line); m != nil {
			c.base = m[1]
		} else if err != nil {
			_ = c.Wait()
			t.Fatalf("the server ended before it listened:\n%s", &c.log)
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		c.exited <- c.Wait()
	}()
	return c
}

func (c *child) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestSignalDrains(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(s.String(), func(t *testing.T) {
			release := make(chan struct{})
			c := startChild(t, "-config", serving(t, heldStream(t, release), "server: {drain: 1m}\n"))
			stream := begin(t, c.base)
			c.signal(t, s)
			awaitDraining(t, c.base)
			// New calls are told to go elsewhere while the stream goes on.
			refused := send(t, http.MethodPost, c.base+"/v1/chat/completions", "k", `{"model":"m","messages":[]}`)
			if status, body := read(t, refused); status != http.StatusServiceUnavailable || !refused.Close {
				t.Errorf("a call while draining: %d %s, close %v; want 503 and a closed connection", status, body, refused.Close)
			}
			if status, body := get(t, c.base+"/health", ""); status != 200 {
				t.Errorf("alive while draining: %d %s", status, body)
			}
			close(release)
			rest, err := io.ReadAll(stream)
			if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
				t.Errorf("the stream in flight: %s (%v)", rest, err)
			}
			if err := <-c.exited; err != nil {
				t.Errorf("%v, want exit code 0:\n%s", err, &c.log)
			}
			if log := c.log.String(); strings.Contains(log, "were cut") || !strings.Contains(log, `"msg":"stopped"`) {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	c := startChild(t, "-config", serving(t, heldStream(t, release), "server: {drain: 1h}\n"))
	begin(t, c.base)
	c.signal(t, syscall.SIGTERM)
	awaitDraining(t, c.base)
	c.signal(t, syscall.SIGTERM)
	err := <-c.exited
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatalf("%v, want an end by the signal", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("%v, want an end by the signal", exit)
	}
}

// A signal ends a server at once that has nothing to do.
func TestSignalWhenIdle(t *testing.T) {
	upstream := gatewaytest.NewUpstream(t, gatewaytest.Answer("hi"))
	c := startChild(t, "-config", serving(t, upstream, "server: {drain: 1h}\n"))
	if status, body := post(t, c.base+"/v1/chat/completions", "k", `{"model":"m","messages":[]}`); status != 200 { // its connection stays open
		t.Fatalf("%d %s", status, body)
	}
	c.signal(t, syscall.SIGTERM)
	if err := <-c.exited; err != nil {
		t.Errorf("%v, want exit code 0:\n%s", err, &c.log)
	}
}
