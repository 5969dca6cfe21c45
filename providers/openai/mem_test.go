package openai_test

import (
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/gatewright/gateway/providers/openai"
)

// TestMemoryOfOpenStreams bounds what an idle open stream costs: both ends of its connection, as the upstream is in the
// same process.
func TestMemoryOfOpenStreams(t *testing.T) {
	done := make(chan bool)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, frames(textChunk))
		w.(http.Flusher).Flush()
		<-done
	})
	p := newProvider(t, openai.Config{BaseURL: server.URL})
	const streams = 500
	used := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before := used()
	var open []io.Closer
	for range streams {
		res, err := p.Do(t.Context(), streamRequest(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := res.Stream.Next(); err != nil {
			t.Fatal(err)
		}
		open = append(open, res.Stream)
	}
	each := (used() - before) / streams
	for _, stream := range open {
		_ = stream.Close()
	}
	close(done)
	t.Logf("%d bytes an open stream, the upstream's end of it included", each)
	if each > 64<<10 {
		t.Errorf("%d bytes an open stream", each)
	}
}
