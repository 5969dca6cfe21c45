// Package leakcheck fails a package's tests when they leave goroutines behind.
//
//	func TestMain(m *testing.M) { leakcheck.Main(m) }
package leakcheck

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
)

// grace is how long goroutines that have been told to stop may take to be gone.
const grace = 5 * time.Second

// Runner runs the tests: it is a [*testing.M].
type Runner interface{ Run() int }

// Main runs the tests and exits the process. When they pass, but goroutines that they started are still alive 5 s later,
// it prints the stacks of these and exits with status 1. Goroutines from before the tests, and those that the standard
// library keeps for the whole process, do not count.
func Main(m Runner) {
	os.Exit(run(m, os.Stderr, grace)) //nolint:forbidigo // it stands in for the main function of the tests
}

func run(m Runner, w io.Writer, wait time.Duration) int {
	before := goroutines()
	code := m.Run()
	if code != 0 || fuzzing() {
		return code // a failed test may well have stopped half way: its own message is the one to read
	}
	// The pool of the whole process, which tests of plain HTTP clients fill.
	http.DefaultClient.CloseIdleConnections() //nolint:forbidigo // it is emptied, not used
	left := leaked(before, wait)
	if len(left) == 0 {
		return code
	}
	_, _ = fmt.Fprintf(w, "leakcheck: %d goroutine(s) still alive %v after the tests:\n\n%s\n",
		len(left), wait, strings.Join(left, "\n\n"))
	return 1
}

// leaked returns the stacks of the goroutines that are not in before and outlive the wait.
func leaked(before map[string]string, wait time.Duration) []string {
	deadline := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		var left []string
		for id, stack := range goroutines() {
			if _, old := before[id]; !old && !permanent(stack) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(pause)
	}
}

// goroutines returns the stack of each goroutine, except the runtime's own, by the goroutine's id. Ids are never reused.
func goroutines() map[string]string {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	stacks := make(map[string]string)
	for stack := range bytes.SplitSeq(bytes.TrimSpace(buf[:n]), []byte("\n\n")) {
		id, _, _ := bytes.Cut(stack, []byte(" [")) // "goroutine 7 [chan receive, 2 minutes]:"
		stacks[string(id)] = string(stack)
	}
	return stacks
}

// permanent reports whether the goroutine is one that the standard library starts once and keeps.
func permanent(stack string) bool {
	return strings.Contains(stack, "os/signal.loop") || strings.Contains(stack, "os/signal.signal_recv")
}

// fuzzing reports whether this process fuzzes: it then ends while its workers, or the input that it runs, may not have.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != "false" {
			return true
		}
	}
	return false
}
