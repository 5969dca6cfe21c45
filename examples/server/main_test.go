package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatewright/gateway/internal/leakcheck"
)

// childVariable makes the test binary be the server, for tests of signals.
const childVariable = "GATEWAY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, nothing()))
	}
	leakcheck.Main(m)
}

// nothing is a machine with no variables set and no provider within reach.
func nothing() system {
	return system{
		getenv: func(string) string { return "" },
		probe:  func(context.Context, string, string) ([]string, error) { return nil, errors.New("not there") },
	}
}

// with is a machine with these variables set, for the server and for what it asks of the environment itself.
func with(t *testing.T, variables map[string]string) system {
	t.Helper()
	for name, value := range variables {
		t.Setenv(name, value)
	}
	sys := nothing()
	sys.getenv = func(name string) string { return variables[name] }
	return sys
}

// output collects what the server prints and tells when it listens.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan string // the address, once
}

var greeting = regexp.MustCompile(`interface on (http://[^/\s]+)/v1`)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if m := greeting.FindSubmatch(p); m != nil {
		o.ready <- string(m[1])
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs the server until the test ends, or until stop is called, which returns the exit code.
func start(t *testing.T, sys system, args ...string) (base string, out *output, stop func() int) {
	t.Helper()
	out = &output{ready: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), out, out, sys)
	}()
	stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { stop() })
	select {
	case base = <-out.ready:
	case c := <-code:
		code <- c
		t.Fatalf("the server ended with %d:\n%s", c, out)
	}
	return base, out, stop
}

// send sends a request that the end of the test's context does not cut: the server is what is to end it.
func send(t *testing.T, method, url, key, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func get(t *testing.T, url, key string) (status int, body string) {
	t.Helper()
	return read(t, send(t, http.MethodGet, url, key, ""))
}

func post(t *testing.T, url, key, body string) (status int, answer string) {
	t.Helper()
	return read(t, send(t, http.MethodPost, url, key, body))
}

func read(t *testing.T, res *http.Response) (status int, body string) {
	t.Helper()
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCommandLine(t *testing.T) {
	keyless := write(t, "g.yaml", "log: {}\nlisten: 0.0.0.0:0\nproviders: [{name: a, type: echo}]\n")
	base, _, _ := start(t, nothing())
	taken := strings.TrimPrefix(base, "http://")
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-listen", taken}, 1, "server: " + taken + " is in use by another program; choose another address with -listen HOST:PORT\n"},
		{[]string{"-listen", "nonsense"}, 1, "server: cannot listen on nonsense: listen tcp: address nonsense: missing port in address; choose another address with -listen HOST:PORT\n"},
		{[]string{"-config", "/nonexistent.yaml"}, 1, "server: cannot read the configuration: open /nonexistent.yaml: no such file or directory\n"},
		{[]string{"-config", keyless}, 1, keyless + ":2: listen: 0.0.0.0:0 can be reached from other machines, but no key is configured: add master.keys or keys, set GATEWAY_API_KEY, or say -without-keys"},
		{[]string{"-check", "-config", keyless}, 1, keyless + ":2: listen: 0.0.0.0:0 can be reached from other machines"},
		{[]string{"-config", keyless, "-listen", ":0"}, 1, "server: -listen: :0 can be reached from other machines"},
		{[]string{"-check", "-config", keyless, "-without-keys"}, 0, "no key is configured: every call is refused with 503 until there is one; add master.keys or keys, or set GATEWAY_API_KEY\n"},
		{[]string{"-check"}, 2, "server: -check needs -config FILE\n"},
		{[]string{"-what"}, 2, "flag provided but not defined: -what"},
		{[]string{"serve"}, 2, `server: unexpected argument "serve"`},
		{[]string{"-version"}, 0, "gateway server "},
		{[]string{"-help"}, 0, "Usage: server [flags]"},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for one that serves against expectation
			defer cancel()
			var out bytes.Buffer
			if code := run(ctx, test.args, &out, &out, nothing()); code != test.code || !strings.HasPrefix(out.String(), test.want) {
				t.Errorf("exit code %d and\n%s\nwant %d and\n%s", code, out.String(), test.code, test.want)
			}
		})
	}
}
