package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The roles that a process of this program can have besides the load generator's. Each is a process of its own, so that
// what it takes can be told from what the others take.
const (
	roleUpstream = "upstream"
	roleReverse  = "ReverseProxy"
	rolePooled   = "ReverseProxy+pool"
	roleLean     = "lean"
	roleGateway  = "gateway"
)

// What tells a process its role.
const (
	roleVariable   = "PROXYBENCH_ROLE"
	targetVariable = "PROXYBENCH_TARGET" // the upstream's URL
	pauseVariable  = "PROXYBENCH_PAUSE"  // see slowPause
)

// reply is what a process says of itself when it is asked.
type reply struct {
	CPU     float64 // user and system time so far, µs
	Objects uint64  // allocated so far
	Bytes   uint64  // allocated so far

	RSS   int64 // resident memory
	Heap  int64 // of the Go heap, in use
	Stack int64 // of goroutines

	Requests int64 // answered so far
	Tokens   int64 // counted so far
	Unpriced int64 // requests without a cost
	Open     int64 // streams at the moment
	Last     string

	Error string
}

// runRole serves until in ends. It writes its address to out, and then a reply to each line that it reads.
func runRole(ctx context.Context, role string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	var fill func(*reply)
	served := make(chan error, 1)
	if role == roleUpstream {
		u := newUpstream()
		fill = u.fill
		go func() { served <- u.serve(ctx, l) }()
	} else {
		var handler http.Handler
		if handler, fill, err = newHandler(role); err != nil {
			return err
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		defer server.Close()
		go func() { served <- server.Serve(l) }()
	}
	fmt.Fprintln(out, l.Addr())
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r reply
		if err := obey(lines.Text(), &r, fill); err != nil {
			r.Error = err.Error()
		}
		text, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode the reply: %w", err)
		}
		fmt.Fprintf(out, "%s\n", text)
	}
	select {
	case err := <-served:
		return err
	default:
		return lines.Err()
	}
}

func newHandler(role string) (http.Handler, func(*reply), error) {
	target, err := url.Parse(os.Getenv(targetVariable))
	if err != nil || target.Host == "" {
		return nil, nil, fmt.Errorf("%s is not a URL: %w", targetVariable, err)
	}
	switch role {
	case roleReverse, rolePooled:
		return reverseProxy(target, role == rolePooled), func(*reply) {}, nil
	case roleLean:
		l := newLean(target)
		return l, func(r *reply) { r.Requests, r.Tokens = l.requests.Load(), l.tokens.Load() }, nil
	case roleGateway:
		handler, client, records, err := throughGateway(target)
		return handler, func(r *reply) {
			r.Requests, r.Tokens, r.Unpriced = records.records.Load(), records.tokens.Load(), records.unpriced.Load()
			r.Open = int64(client.Stats().InFlight)
		}, err
	default:
		return nil, nil, fmt.Errorf("there is no role %q", role)
	}
}

func (u *upstream) fill(r *reply) {
	r.Requests, r.Open = u.requests.Load(), u.open.Load()
	u.mu.Lock()
	defer u.mu.Unlock()
	r.Last = string(u.last)
}

// What a process can be asked.
const (
	askUsage   = "usage"        // CPU and allocations
	askMemory  = "memory"       // as it is
	askLive    = "live"         // after everything has been given back that is not used
	askCounts  = "counts"       // requests, tokens, streams
	askLast    = "last"         // the upstream: the latest request
	askProfile = "cpuprofile "  // and a file's name: begin; without a name: end
	askHeap    = "heapprofile " // and a file's name
)

//nolint:gochecknoglobals // the process's own profile
var profile *os.File

func obey(command string, r *reply, fill func(*reply)) error {
	switch {
	case command == askUsage:
		d, err := cpuTime()
		r.CPU = microseconds(d)
		samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(samples)
		r.Objects, r.Bytes = samples[0].Value.Uint64(), samples[1].Value.Uint64()
		return err
	case command == askMemory, command == askLive:
		if command == askLive {
			runtime.GC()
			debug.FreeOSMemory()
		}
		r.RSS = residentSize()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		r.Heap, r.Stack = int64(m.HeapInuse), int64(m.StackInuse)
		return nil
	case command == askCounts, command == askLast:
		fill(r)
		if command != askLast {
			r.Last = ""
		}
		return nil
	case strings.HasPrefix(command, askProfile):
		return cpuProfile(strings.TrimPrefix(command, askProfile))
	case strings.HasPrefix(command, askHeap):
		f, err := os.Create(strings.TrimPrefix(command, askHeap))
		if err != nil {
			return err
		}
		return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
	default:
		return fmt.Errorf("what is %q?", command)
	}
}

func cpuProfile(name string) (err error) {
	if name == "" {
		pprof.StopCPUProfile()
		return profile.Close()
	}
	if profile, err = os.Create(name); err != nil {
		return err
	}
	return pprof.StartCPUProfile(profile)
}

// residentSize returns the process's resident memory, 0 where the system does not say.
func residentSize() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
