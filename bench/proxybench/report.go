package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/gatewright/gateway/bench/internal/sample"
)

// results are all readings: by scenario, by contender, by round.
type results struct {
	scenarios  []scenario
	contenders []string
	readings   map[string]map[string][]reading
	memory     map[string]memory
	streams    int // open for the measure of memory
	rounds     int
	window     time.Duration
	began      time.Time
}

func (r *results) add(s scenario, contender string, got reading) {
	if r.readings[s.name] == nil {
		r.readings[s.name] = make(map[string][]reading)
	}
	r.readings[s.name][contender] = append(r.readings[s.name][contender], got)
}

// series returns one number of all rounds.
func (r *results) series(s scenario, contender string, number func(reading) float64) []float64 {
	var values []float64
	for _, got := range r.readings[s.name][contender] {
		values = append(values, number(got))
	}
	return values
}

func rateOf(r reading) float64    { return r.rate }
func cpuOf(r reading) float64     { return r.cpu }
func latencyOf(r reading) float64 { return r.latency }
func objectsOf(r reading) float64 { return r.objects }
func bytesOf(r reading) float64   { return r.bytes / 1024 }

// write writes the results as Markdown.
func (r *results) write(w io.Writer) {
	fmt.Fprintf(w, "%s, %d cores, %s, %s; %d rounds of %s, load average %s\n\n", processor(), runtime.NumCPU(),
		runtime.Version(), r.began.Format(time.DateOnly), r.rounds, r.window.Round(time.Millisecond), loadAverage())
	for _, s := range r.scenarios {
		unit := "call"
		if s.stream() {
			unit = "event"
		}
		fmt.Fprintf(w, "**%s**\n\n", s.name)
		fmt.Fprintf(w, "| | %ss/s | × ReverseProxy (quartiles) | CPU µs/%s | × ReverseProxy | median call, µs | × ReverseProxy | allocations/call | KiB/call |\n",
			unit, unit)
		fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
		for _, c := range r.contenders {
			r.row(w, s, c)
		}
		fmt.Fprintln(w)
	}
	r.writeMemory(w)
}

func (r *results) row(w io.Writer, s scenario, c string) {
	median := func(number func(reading) float64) float64 { return sample.Median(r.series(s, c, number)) }
	ratio := func(number func(reading) float64) sample.Ratio {
		return sample.Compare(r.series(s, c, number), r.series(s, roleReverse, number))
	}
	rate := ratio(rateOf)
	cells := []string{
		c, fmt.Sprintf("%.0f", median(rateOf)), fmt.Sprintf("%.2f (%.2f–%.2f)", rate.Median, rate.Low, rate.High),
		decimals(median(cpuOf)), fmt.Sprintf("%.2f", ratio(cpuOf).Median),
		fmt.Sprintf("%.0f", median(latencyOf)), fmt.Sprintf("%.2f", ratio(latencyOf).Median),
		fmt.Sprintf("%.0f", median(objectsOf)), fmt.Sprintf("%.1f", median(bytesOf)),
	}
	if c == nameDirect {
		cells[3], cells[4], cells[7], cells[8] = "", "", "", ""
	}
	fmt.Fprintf(w, "| %s |\n", strings.ReplaceAll(strings.Join(cells, " | "), "NaN", "–"))
}

// decimals shows a number with about three digits.
func decimals(v float64) string {
	switch {
	case math.Abs(v) < 10:
		return fmt.Sprintf("%.2f", v)
	case math.Abs(v) < 100:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

func (r *results) writeMemory(w io.Writer) {
	if len(r.memory) == 0 {
		return
	}
	fmt.Fprintf(w, "**Memory, %d open streams**\n\n", r.streams)
	fmt.Fprintln(w, "| | started, MiB | after a little work, MiB | KiB/stream, resident | the same after a GC | Go heap, KiB/stream | stacks, KiB/stream |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range r.contenders {
		if m, ok := r.memory[c]; ok {
			fmt.Fprintf(w, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", c, float64(m.idle)/mib, float64(m.resting)/mib,
				m.rss/kib, m.live/kib, m.heap/kib, m.stack/kib)
		}
	}
	fmt.Fprintln(w)
}

// mark is what the gateway is to reach.
type mark struct {
	what  string
	got   float64
	limit float64
	least bool // the limit is a minimum
}

func (m mark) reached() bool { return m.least == (m.got >= m.limit) || m.got == m.limit }

// marks returns what can be said of the gateway's marks from what was measured.
func (r *results) marks() []mark {
	var all []mark
	for _, s := range r.scenarios {
		ratio := func(number func(reading) float64) float64 {
			return sample.Compare(r.series(s, roleGateway, number), r.series(s, roleReverse, number)).Median
		}
		rate, cpu := mark{s.name + ": calls/s", ratio(rateOf), 1.1, true}, mark{s.name + ": CPU/call", ratio(cpuOf), 0.95, false}
		if s.stream() {
			rate, cpu = mark{s.name + ": events/s", ratio(rateOf), 0.95, true}, mark{s.name + ": CPU/event", ratio(cpuOf), 1.1, false}
		}
		all = append(all, rate, cpu)
		if s.conns == 1 && !s.stream() {
			all = append(all, mark{s.name + ": median latency", ratio(latencyOf), 1, false})
		}
	}
	if m, ok := r.memory[roleGateway]; ok {
		all = append(all, mark{"KiB per open stream", m.rss / (1 << 10), 45, false}, mark{"MiB idle", float64(m.idle) / (1 << 20), 15, false})
	}
	return all
}

func (r *results) writeMarks(w io.Writer) {
	fmt.Fprintln(w, "**Marks**\n\n| gateway | × ReverseProxy | mark | |\n| --- | ---: | ---: | --- |")
	for _, m := range r.marks() {
		if math.IsNaN(m.got) {
			continue
		}
		sign, verdict := "≤", "missed"
		if m.least {
			sign = "≥"
		}
		if m.reached() {
			verdict = "reached"
		}
		fmt.Fprintf(w, "| %s | %.2f | %s %g | %s |\n", m.what, m.got, sign, m.limit, verdict)
	}
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
