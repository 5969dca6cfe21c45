// Inprocess compares the gateway's library with other Go libraries, and with the least that a program has to do, on the
// same calls over a transport in memory. All take turns in short windows; ratios to the floor are taken round by round.
//
//	go run ./bench/inprocess          # about half a minute
//	go run ./bench/inprocess -quick   # a few seconds
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/gatewright/gateway/bench/internal/calls"
	"github.com/gatewright/gateway/bench/internal/sample"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "inprocess:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("inprocess", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "be done in a few seconds")
	rounds := flags.Int("rounds", 51, "`number` of rounds")
	window := flags.Duration("window", 50*time.Millisecond, "length of a window")
	events := flags.Int("events", 200, "events with text in a stream")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *quick {
		*rounds, *window = 11, 20*time.Millisecond
	}
	contenders, err := calls.All(*events)
	if err != nil {
		return err
	}
	transport := calls.NewTransport(*events)
	for i := range contenders {
		if err := contenders[i].Check(ctx, transport); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d cores, %s, %s; %d rounds of %s\n", runtime.NumCPU(), runtime.Version(),
		time.Now().Format(time.DateOnly), *rounds, *window)
	for _, k := range []kind{
		{"A plain call", "call", 1.35, func(ctx context.Context, c *calls.Contender) (int, error) {
			_, _, err := c.Chat(ctx)
			return 1, err
		}},
		{"An event of a stream", "event", 1.5, func(ctx context.Context, c *calls.Contender) (int, error) {
			n, _, _, err := c.Stream(ctx)
			return n, err
		}},
	} {
		if err := k.compare(ctx, contenders, *rounds, *window, out); err != nil {
			return err
		}
	}
	return nil
}

// kind is a kind of call. Once makes one and returns how many units it was.
type kind struct {
	title, unit string
	mark        float64
	once        func(context.Context, *calls.Contender) (units int, err error)
}

// series holds a contender's numbers of all rounds, per unit.
type series struct{ nanoseconds, objects, bytes []float64 }

func (k *kind) compare(ctx context.Context, contenders []calls.Contender, rounds int, window time.Duration, out io.Writer) error {
	all := make([]series, len(contenders))
	for round := -1; round < rounds; round++ { // the first one only warms up
		for _, i := range sample.Rotation(len(contenders), round+1) {
			if err := k.measure(ctx, &contenders[i], window, &all[i]); err != nil {
				return err
			}
			if round < 0 {
				all[i] = series{}
			}
		}
	}
	fmt.Fprintf(out, "\n**%s**\n\n| | ns/%s | × %s (quartiles) | allocations/%s | B/%s |\n| --- | ---: | ---: | ---: | ---: |\n",
		k.title, k.unit, calls.Reference, k.unit, k.unit)
	for i, c := range contenders {
		ratio := sample.Compare(all[i].nanoseconds, all[0].nanoseconds)
		fmt.Fprintf(out, "| %s | %.0f | %.2f (%.2f–%.2f) | %.1f | %.0f |\n", c.Name, sample.Median(all[i].nanoseconds),
			ratio.Median, ratio.Low, ratio.High, sample.Median(all[i].objects), sample.Median(all[i].bytes))
	}
	fmt.Fprintf(out, "\nMark for the gateway: at most %.2f × %s.\n", k.mark, calls.Reference)
	return nil
}

// measure makes calls for about as long as window.
func (k *kind) measure(ctx context.Context, c *calls.Contender, window time.Duration, to *series) error {
	runtime.GC() // nobody pays for what the one before left
	objects, bytes := allocated()
	units := 0
	began := time.Now()
	elapsed := time.Duration(0)
	for elapsed < window {
		n, err := k.once(ctx, c)
		if err != nil {
			return err
		}
		units += n
		elapsed = time.Since(began)
	}
	moreObjects, moreBytes := allocated()
	per := func(v float64) float64 { return v / float64(units) }
	to.nanoseconds = append(to.nanoseconds, per(float64(elapsed.Nanoseconds())))
	to.objects = append(to.objects, per(float64(moreObjects-objects)))
	to.bytes = append(to.bytes, per(float64(moreBytes-bytes)))
	return nil
}

// allocated returns how many objects and bytes the process has allocated so far.
func allocated() (objects, bytes uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}
