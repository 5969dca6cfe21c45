// Proxybench compares the gateway's HTTP handler with httputil.ReverseProxy, with a lean proxy written by hand, and with
// no proxy at all, in front of one mock upstream.
//
// The upstream and each proxy are processes of their own, which this program starts from itself; the load comes from
// bare connections. All contenders take turns in short windows, each round in another order, so that whatever else the
// machine does meets all of them; results are medians, and ratios are taken round by round. Before anything is measured,
// every contender's answers are compared byte by byte, and in the end the proxies' own counts of calls and tokens with
// what was asked of them.
//
//	go run ./bench/proxybench                # about three minutes
//	go run ./bench/proxybench -quick         # half a minute
//	go run ./bench/proxybench -run 'plain, 300 B, 16' -roles gateway -rounds 1 -window 10s -profile /tmp/profiles
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gatewright/gateway/bench/internal/sample"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if role := os.Getenv(roleVariable); role != "" {
		err = runRole(context.WithoutCancel(ctx), role, os.Stdin, os.Stdout) // it ends with the parent
	} else {
		err = run(ctx, os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "proxybench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// nameDirect is the contender without a proxy.
const nameDirect = "none"

// settings are what the command line says.
type settings struct {
	rounds  int
	window  time.Duration
	only    *regexp.Regexp
	roles   []string
	streams int
	profile string
}

func parse(arguments []string) (settings, error) {
	flags := flag.NewFlagSet("proxybench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "be done in half a minute")
	rounds := flags.Int("rounds", 0, "`number` of rounds (default 11, quick: 3)")
	window := flags.Duration("window", 0, "length of a window of load (default 350ms, quick: 150ms)")
	only := flags.String("run", "", "only the scenarios that match the `expression`")
	roles := flags.String("roles", strings.Join([]string{roleReverse, roleLean, roleGateway, nameDirect}, ","),
		"`contenders`; there is "+rolePooled+" too")
	streams := flags.Int("streams", -1, "open streams for the measure of memory; 0: none (default 1000, quick: 200)")
	folder := flags.String("profile", "", "write CPU and allocation profiles of the proxies to the `folder`")
	if err := flags.Parse(arguments); err != nil {
		return settings{}, err
	}
	s := settings{rounds: 11, window: 350 * time.Millisecond, streams: 1000, profile: *folder}
	if *quick {
		s.rounds, s.window, s.streams = 3, 150*time.Millisecond, 200
	}
	if *rounds > 0 {
		s.rounds = *rounds
	}
	if *window > 0 {
		s.window = *window
	}
	if *streams >= 0 {
		s.streams = *streams
	}
	for role := range strings.SplitSeq(*roles, ",") {
		s.roles = append(s.roles, strings.TrimSpace(role))
	}
	var err error
	s.only, err = regexp.Compile(*only)
	return s, err
}

func run(ctx context.Context, arguments []string) error {
	s, err := parse(arguments)
	if err != nil {
		return err
	}
	r, err := measure(ctx, s)
	if err != nil {
		return err
	}
	r.write(os.Stdout)
	r.writeMarks(os.Stdout)
	return nil
}

// measure does it all.
func measure(ctx context.Context, s settings) (_ *results, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	up, err := start(ctx, roleUpstream, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, up.stop()) }()
	contenders, err := open(ctx, s.roles, up)
	defer func() {
		for _, c := range contenders {
			c.close()
			if c.process != nil {
				err = errors.Join(err, c.process.stop())
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	r := &results{
		contenders: s.roles, readings: make(map[string]map[string][]reading), memory: make(map[string]memory),
		streams: s.streams, rounds: s.rounds, window: s.window, began: time.Now(),
	}
	for _, scenario := range scenarios() {
		if s.only.MatchString(scenario.name) {
			r.scenarios = append(r.scenarios, scenario)
		}
	}
	if err := measureLoad(ctx, s, contenders, r); err != nil {
		return nil, err
	}
	if s.streams == 0 {
		return r, nil
	}
	for _, c := range contenders {
		if c.process == nil {
			continue
		}
		if r.memory[c.name], err = measureMemory(ctx, c.name, up, s.streams, s.profile); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// open starts the contenders and checks them.
func open(ctx context.Context, roles []string, up *process) ([]*contender, error) {
	var all []*contender
	for _, role := range roles {
		c := &contender{name: role, address: up.address}
		if role != nameDirect {
			p, err := start(ctx, role, up.address)
			if err != nil {
				return all, err
			}
			c.process, c.address = p, p.address
		}
		all = append(all, c)
		if err := c.checkAnswers(up); err != nil {
			return all, err
		}
	}
	return all, nil
}

// measureLoad has the contenders take turns.
func measureLoad(ctx context.Context, s settings, contenders []*contender, r *results) error {
	calls := make(map[string]int64)
	turn := func(c *contender, scenario scenario, d time.Duration) (reading, error) {
		if err := ctx.Err(); err != nil {
			return reading{}, err
		}
		got, err := c.window(scenario, d)
		calls[c.name] += int64(got.calls)
		return got, err
	}
	for _, scenario := range r.scenarios { // first of all every connection is made, and every pool filled
		for _, c := range contenders {
			if _, err := turn(c, scenario, s.window/4); err != nil {
				return err
			}
		}
	}
	if err := profiles(s.profile, contenders, true); err != nil {
		return err
	}
	for round := range s.rounds {
		for _, scenario := range r.scenarios {
			for _, i := range sample.Rotation(len(contenders), round) {
				got, err := turn(contenders[i], scenario, s.window)
				if err != nil {
					return err
				}
				r.add(scenario, contenders[i].name, got)
			}
		}
		fmt.Fprintf(os.Stderr, "proxybench: round %d of %d\n", round+1, s.rounds)
	}
	if err := profiles(s.profile, contenders, false); err != nil {
		return err
	}
	for _, c := range contenders {
		if err := c.checkCounts(calls[c.name] + checkedCalls); err != nil {
			return err
		}
	}
	return nil
}

// profiles begins or ends the proxies' profiles.
func profiles(folder string, contenders []*contender, begin bool) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	for _, c := range contenders {
		if c.process == nil {
			continue
		}
		if begin {
			if _, err := c.process.ask(askProfile + filepath.Join(folder, c.name+".cpu")); err != nil {
				return err
			}
			continue
		}
		if _, err := c.process.ask(askProfile); err != nil {
			return err
		}
		if _, err := c.process.ask(askHeap + filepath.Join(folder, c.name+".allocs")); err != nil {
			return err
		}
	}
	return nil
}
