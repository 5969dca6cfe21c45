package leakcheck

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

type runnerFunc func() int

func (f runnerFunc) Run() int { return f() }

func TestRun(t *testing.T) {
	release := make(chan struct{})
	go blockedFromBefore(release)
	t.Cleanup(func() { close(release) })

	tests := []struct {
		name  string
		tests runnerFunc
		wait  time.Duration
		want  int
		print string
	}{
		{"nothing left", func() int { return 0 }, 0, 0, ""},
		{"a goroutine left", func() int { go blockedByTest(release); return 0 }, 50 * time.Millisecond, 1, "leakcheck.blockedByTest("},
		{"failed tests keep their status", func() int { go blockedByTest(release); return 2 }, 0, 2, ""},
		{"one that ends within the grace", func() int {
			started := make(chan struct{})
			go func() { close(started); <-time.After(20 * time.Millisecond) }()
			<-started
			return 0
		}, grace, 0, ""},
		{"the standard library's own", func() int {
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, os.Interrupt)
			signal.Stop(signals)
			return 0
		}, 0, 0, ""},
		{"idle connections of the default client", func() int {
			server := httptest.NewServer(http.NotFoundHandler())
			defer server.Config.Close()
			resp, err := http.Get(server.URL)
			if err != nil {
				t.Error(err)
				return 1
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			return 0
		}, grace, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if got := run(tt.tests, &out, tt.wait); got != tt.want {
				t.Errorf("status %d, want %d\n%s", got, tt.want, &out)
			}
			if !strings.Contains(out.String(), tt.print) || (tt.print == "") != (out.Len() == 0) {
				t.Errorf("printed %q, want %q in it", &out, tt.print)
			}
			if strings.Contains(out.String(), "blockedFromBefore") {
				t.Error("a goroutine from before the tests was counted")
			}
		})
	}
}

func blockedFromBefore(release <-chan struct{}) { <-release }
func blockedByTest(release <-chan struct{})     { <-release }
