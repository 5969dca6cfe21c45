package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/internal/sse"
)

// reference interprets a whole stream as section 9.2.6 of the HTML standard says, a step at a time, with our own rule
// for the end and for empty data.
func reference(stream string) []sse.Event {
	stream = strings.TrimPrefix(stream, "\uFEFF")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	stream += "\n\n" // the end ends the last line and the last event
	var events []sse.Event
	var data, typ string
	for line := range strings.SplitSeq(stream, "\n") {
		switch name, value, _ := strings.Cut(line, ":"); {
		case line == "":
			if data = strings.TrimSuffix(data, "\n"); data != "" {
				events = append(events, sse.Event{Type: typ, Data: data})
			}
			data, typ = "", ""
		case name == "data":
			data += strings.TrimPrefix(value, " ") + "\n"
		case name == "event":
			typ = strings.TrimPrefix(value, " ")
		}
	}
	return events
}

func TestReference(t *testing.T) {
	got := reference("\uFEFF: hi\ndata:1\r\rdata: 2\r\ndata:  3\nevent: x\nid: 7\n\nevent: y\n\ndata\n\ndata:\ndata\n\ndata:4")
	want := []sse.Event{{Data: "1"}, {Type: "x", Data: "2\n 3"}, {Data: "\n"}, {Data: "4"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

var streams = []string{
	"",
	"data: a\n\ndata: b\n\n",
	"data: a\r\n\r\ndata: b\r\n\r\n",
	"data: a\r\rdata: b\r\r",
	"data: a\n\r\ndata: b\r\n\n\n\r\rdata: c\n\n",
	"\uFEFFdata: a\n\n\uFEFFdata: b\n\ndata: c\n\n",
	"\uFEFF", "\xEF\xBBdata: a\n\n", "\xEFdata:x\n\n\n",
	"data:{\"a\":1}\n\n",
	"data: last without a blank line\n",
	"data: last without any line end",
	"data: last\r",
	"data: one\ndata: two\ndata:\ndata: four\n\n",
	"data\ndata: two\n\n",
	"data: 日本語 👩‍🚀 é\n\n",
	"data: payload\nevent: after\n\nevent: before\ndata: payload\n\n",
	"event: ping\n\nevent: ping\ndata:\n\ndata: x\n\n",
	": comment\n:\n\n\n\ndata: a\n: inside\n:\ndata: b\nid: 1\nretry: 10\nunknown: x\n\n",
	"data: a\nevent: x\nevent: y\n\nevents: z\ndatax: 1\ndat: 2\ne\nd\nevent\ndata: b\n\n",
	"id: 1\n\ndata:  two spaces\n\ndata:\ttab\n\ndata : no\n\n",
	": a comment that goes on and on without an end",
	"data: [DONE]\n\ndata: after\n\n",
	"data: nul \x00 \xff\xfe invalid UTF-8\n\n",
}

func TestEveryCut(t *testing.T) {
	for _, stream := range streams {
		want := reference(stream)
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(stream), "bytes": iotest.OneByteReader(strings.NewReader(stream)),
			"half": iotest.HalfReader(strings.NewReader(stream)), "data with EOF": iotest.DataErrReader(strings.NewReader(stream)),
		} {
			if diff := cmp.Diff(want, readAll(t, r)); diff != "" {
				t.Errorf("%q %s:\n%s", stream, name, diff)
			}
		}
		for cut := range len(stream) {
			r := io.MultiReader(strings.NewReader(stream[:cut]), strings.NewReader(stream[cut:]))
			if diff := cmp.Diff(want, readAll(t, r)); diff != "" {
				t.Errorf("%q cut at %d:\n%s", stream, cut, diff)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, stream := range streams {
		f.Add([]byte(stream), []byte{1, 2, 7})
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		if diff := cmp.Diff(reference(string(stream)), readAll(t, &cutReader{stream, cuts, 0})); diff != "" {
			t.Error(diff)
		}
	})
}

// cutReader hands out its text in pieces of the given sizes, over and over.
type cutReader struct {
	text, cuts []byte
	next       int
}

func (r *cutReader) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	size := len(r.text)
	if len(r.cuts) > 0 {
		size = int(r.cuts[r.next%len(r.cuts)]) + 1
		r.next++
	}
	n := copy(p, r.text[:min(size, len(r.text))])
	r.text = r.text[n:]
	return n, nil
}

func readAll(t *testing.T, source io.Reader) (events []sse.Event) {
	t.Helper()
	r := sse.NewReader(io.NopCloser(source), 0)
	defer r.Close()
	for i := 0; ; i++ {
		if i%2 == 0 {
			r.Buffered() // changes nothing
		}
		event, err := r.Next()
		if errors.Is(err, io.EOF) {
			if _, again := r.Next(); !errors.Is(again, io.EOF) {
				t.Fatalf("after the end: %v", again)
			}
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
}

func TestLargeEvents(t *testing.T) {
	for _, size := range []int{70_000, 1_100_000, 9_000_000, 16 << 20} {
		payload := strings.Repeat("x", size)
		for _, packet := range []int{1, 1400, 4 << 10} {
			if packet == 1 && size > 2_000_000 {
				packet = 16
			}
			stream := "data: " + payload + "\n\ndata: [DONE]\n\n"
			r := sse.NewReader(io.NopCloser(&packets{stream, packet}), 0)
			began := time.Now()
			event, err := r.Next()
			if err != nil || event.Data != payload {
				t.Fatalf("%d in %d: %d bytes, %v", size, packet, len(event.Data), err)
			}
			if event, err := r.Next(); err != nil || event.Data != "[DONE]" {
				t.Fatal(event, err)
			}
			t.Logf("%d bytes in packets of %d: %v", size, packet, time.Since(began))
		}
	}
}

// TestLinear fails when the time for an event grows with the square of its size.
func TestLinear(t *testing.T) {
	measure := func(size int) time.Duration {
		best := time.Hour
		for range 3 {
			r := sse.NewReader(io.NopCloser(&packets{"data: " + strings.Repeat("x", size) + "\n\n", 16}), 0)
			began := time.Now()
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	small, large := measure(500_000), measure(8_000_000)
	if large > 16*5*small {
		t.Errorf("16 times the size took %v instead of %v: %d times as long", large, small, large/small)
	}
}

type packets struct {
	text string
	size int
}

func (p *packets) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

func TestTooLarge(t *testing.T) {
	for name, stream := range map[string]string{
		"one line":   "data: ok\n\ndata: " + strings.Repeat("x", 20_000) + "\n\n",
		"many lines": "data: ok\n\n" + strings.Repeat("data: xxxxxxxxxxxx\n", 1_500) + "\n",
	} {
		r := sse.NewReader(io.NopCloser(strings.NewReader(stream)), 10_000)
		if event, err := r.Next(); err != nil || event.Data != "ok" {
			t.Fatal(name, event, err)
		}
		for range 2 {
			if _, err := r.Next(); !errors.Is(err, sse.ErrTooLarge) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	long := strings.Repeat(":"+strings.Repeat("x", 20_000)+"\n", 3)
	r := sse.NewReader(io.NopCloser(strings.NewReader(long+"data: ok\n\n")), 10_000)
	if event, err := r.Next(); err != nil || event.Data != "ok" {
		t.Fatal("comments have no limit:", event, err)
	}
}

func TestSilenceCostsNoMemory(t *testing.T) {
	noise := strings.Repeat("\n", 5_000) + strings.Repeat(": keep-alive\n", 5_000) + strings.Repeat(":\n", 5_000)
	inside := strings.Repeat(": keep-alive\n", 5_000)
	stream := noise + "data: a\n" + inside + "data: b\n" + inside + "\n" + noise + "data: c\n\n" + noise
	source := &watched{Reader: strings.NewReader(stream)}
	r := sse.NewReader(source, 0)
	for _, want := range []string{"a\nb", "c"} {
		if event, err := r.Next(); err != nil || event.Data != want {
			t.Fatal(event, err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if source.largest > 32<<10 {
		t.Errorf("the buffer grew to %d bytes", source.largest)
	}
}

// watched notes the largest buffer that it was asked to fill.
type watched struct {
	io.Reader

	largest int
}

func (w *watched) Read(p []byte) (int, error) {
	w.largest = max(w.largest, cap(p))
	return w.Reader.Read(p)
}
func (w *watched) Close() error { return nil }

func TestLargeBufferIsGivenBack(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	go func() {
		_, _ = io.WriteString(out, "data: "+strings.Repeat("x", 8<<20)+"\n\n")
		_, _ = io.WriteString(out, "data: small\n\n: silence\n")
	}()
	r := sse.NewReader(in, 0)
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapInuse > 6<<20 {
		t.Errorf("%d KiB in use after a large event", m.HeapInuse>>10)
	}
	runtime.KeepAlive(r)
}

func TestBuffered(t *testing.T) {
	in, out := io.Pipe()
	r := sse.NewReader(in, 0)
	if r.Buffered() {
		t.Error("before the first read")
	}
	go func() {
		_, _ = io.WriteString(out, "data: a\n\ndata: b\n\n: x\n\nevent: y\n\ndata: c")
		_ = out.Close()
	}()
	for _, want := range []struct {
		data     string
		buffered bool
	}{{"a", true}, {"b", false}, {"c", true}} {
		event, err := r.Next()
		if err != nil || event.Data != want.data {
			t.Fatal(event, err)
		}
		for range 2 {
			if r.Buffered() != want.buffered {
				t.Errorf("after %s: Buffered is %t", want.data, !want.buffered)
			}
		}
	}
}

func TestBodyErrors(t *testing.T) {
	boom := errors.New("boom")
	source := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n\ndata: cut"), iotest.ErrReader(boom))
	r := sse.NewReader(io.NopCloser(source), 0)
	for _, want := range []string{"a", "b"} {
		if event, err := r.Next(); err != nil || event.Data != want {
			t.Fatal(event, err)
		}
	}
	for range 2 {
		if event, err := r.Next(); !errors.Is(err, boom) {
			t.Fatalf("an event that was cut is none: %v %v", event, err)
		}
	}
	r = sse.NewReader(io.NopCloser(bytes.NewReader(nil)), 0)
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	r = sse.NewReader(io.NopCloser(stuck{}), 0)
	if _, err := r.Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Fatal(err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestCloseWakesNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		defer out.Close()
		r := sse.NewReader(in, 0)
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := r.Next(); !errors.Is(err, io.ErrClosedPipe) {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 3 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		wait.Wait()
	})
}

func ExampleReader() {
	body := io.NopCloser(strings.NewReader(": waiting\n\ndata: {\"a\":1}\n\ndata: [DONE]\n\n"))
	r := sse.NewReader(body, 0)
	defer r.Close()
	for {
		event, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Data)
	}
	// Output:
	// {"a":1}
	// [DONE]
	// EOF
}
