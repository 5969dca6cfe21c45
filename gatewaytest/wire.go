package gatewaytest

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"github.com/gatewright/gateway"
)

// Sequence plays steps one after the other as the answer to one request. What each has written is on its way before
// the next begins. It stops when the caller goes away.
func Sequence(steps ...http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i, step := range steps {
			if r.Context().Err() != nil {
				return
			}
			step.ServeHTTP(w, r)
			if i < len(steps)-1 {
				_ = http.NewResponseController(w).Flush() // fails after a hijack: there is nothing left to flush
			}
		}
	})
}

// WaitFor waits until ch is closed or has a value, or until the caller goes away.
func WaitFor(ch <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { wait(r.Context(), ch) })
}

// Headers sends the status and headers, given as names and values, at once.
func Headers(status int, namesAndValues ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(namesAndValues); i += 2 {
			w.Header().Add(namesAndValues[i], namesAndValues[i+1])
		}
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush()
	})
}

// Opening sends a stream's first event, which only names the role.
func Opening() http.Handler {
	return events(func(x *exchange) []string { return []string{x.opening()} })
}

// Events sends n events of a stream that carry output: the words "1 ", "2 ", "3 ", and so on.
func Events(n int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeFrom(r.Context())
		for i := 1; i <= n && r.Context().Err() == nil; i++ {
			writeEvents(w, data(x.delta(strconv.Itoa(i)+" ")))
		}
	})
}

// Deltas sends pieces of text, one event each.
func Deltas(texts ...string) http.Handler {
	return events(func(x *exchange) []string {
		documents := make([]string, 0, len(texts))
		for _, text := range texts {
			documents = append(documents, x.delta(text))
		}
		return documents
	})
}

// Finish sends the event that finishes an answer, for a reason such as "stop".
func Finish(reason string) http.Handler {
	return events(func(x *exchange) []string { return []string{x.chunk(`{}`, reason)} })
}

// Usage sends the event that reports usage, whether the request asked for it or not.
func Usage(u gateway.Usage) http.Handler {
	return events(func(x *exchange) []string { return []string{x.usageChunk(&u)} })
}

// Done sends [DONE].
func Done() http.Handler { return Data("[DONE]") }

// ErrorEvent sends an event that holds an error as OpenAI writes it.
func ErrorEvent(message, code string) http.Handler {
	return Data(errorDocument(message, "server_error", code))
}

// Data sends one event with the given data for each argument.
func Data(documents ...string) http.Handler {
	return events(func(*exchange) []string { return documents })
}

// Comment sends a comment line, as servers do to keep a connection alive.
func Comment(text string) http.Handler { return Text(": " + text + "\n\n") }

// Text sends parts of a stream's body just as they are, each on its way before the next is written.
func Text(parts ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeEvents(w, parts...) })
}

// Raw takes the connection over, writes the parts just as they are, one write each, and closes it.
func Raw(parts ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := hijack(w)
		for _, part := range parts {
			if _, err := io.WriteString(c, part); err != nil {
				break
			}
		}
		_ = c.Close()
	})
}

// HangUp closes the connection in good order (FIN) at the place in an answer where it stands. After a whole answer it
// is a server that closes a connection which its client takes for idle and still open.
func HangUp() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = hijack(w).Close() })
}

// Reset breaks the connection (RST) at the place in an answer where it stands.
func Reset() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := hijack(w)
		reset(c)
	})
}

// ResetNext makes the connection a trap when it follows a whole answer: as soon as the first byte of another request
// arrives on it, it is reset. That request is neither read nor counted. Only an [Upstream] can play it.
func ResetNext() http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.trap.Store(true)
		}
	})
}

// BeforeBody plays a step before the Upstream has read the request's body, when it is a step of the script itself. The
// request does not count as one that reached the Upstream as a whole.
func BeforeBody(step http.Handler) http.Handler { return beforeBody{step} }

type beforeBody struct{ http.Handler }

// Fragment plays a step so that what it writes goes out in pieces of n bytes, each in a packet of its own as far as the
// network keeps them apart.
func Fragment(n int, step http.Handler) http.Handler {
	return fragmented(step, func() func(int) int { return func(rest int) int { return min(n, rest) } })
}

// FragmentRandomly plays a step so that what it writes goes out in pieces of random sizes. The same seed gives the same
// sizes.
func FragmentRandomly(seed uint64, step http.Handler) http.Handler {
	return fragmented(step, func() func(int) int {
		random := rand.New(rand.NewPCG(seed, 0))
		return func(rest int) int { return 1 + random.IntN(rest) }
	})
}

func fragmented(step http.Handler, cuts func() func(rest int) int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		step.ServeHTTP(&fragmentWriter{ResponseWriter: w, cut: cuts()}, r)
	})
}

type fragmentWriter struct {
	http.ResponseWriter

	cut func(rest int) int
}

// Write implements [io.Writer].
func (w *fragmentWriter) Write(p []byte) (written int, err error) {
	for len(p) > 0 && err == nil {
		size := w.cut(len(p))
		var n int
		n, err = w.ResponseWriter.Write(p[:size])
		written += n
		p = p[size:]
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
	return written, err
}

// Unwrap lets [http.ResponseController] find what else the writer can do.
func (w *fragmentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func events(documents func(*exchange) []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, document := range documents(exchangeFrom(r.Context())) {
			writeEvents(w, data(document))
		}
	})
}

// data frames a document as an event.
func data(document string) string {
	return "data: " + strings.ReplaceAll(document, "\n", "\ndata: ") + "\n\n"
}

// writeEvents writes parts of a stream, each on its way before the next is written.
func writeEvents(w http.ResponseWriter, parts ...string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
	}
	for _, part := range parts {
		if _, err := io.WriteString(w, part); err != nil {
			return // the caller is gone, which ends the request's context too
		}
		_ = http.NewResponseController(w).Flush()
	}
}

func writeDocument(w http.ResponseWriter, status int, contentType, body string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", contentType)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the caller may be gone
}
