package openai_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers/openai"
)

const benchEvent = `data: {"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_b0b2a7c1d4","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"

// BenchmarkBurst compares what a burst of events costs on its way through the provider, written out again event by
// event, with what it costs through httputil.ReverseProxy. Both include the upstream and the client.
func BenchmarkBurst(b *testing.B) {
	const events = 1000
	for _, flush := range []bool{false, true} {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			for range events {
				_, _ = io.WriteString(w, benchEvent)
				if flush {
					w.(http.Flusher).Flush()
				}
			}
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		}))
		target, _ := url.Parse(upstream.URL)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = &http.Transport{DisableCompression: true}
		provider, err := openai.New(openai.Config{Name: "x", BaseURL: upstream.URL})
		if err != nil {
			b.Fatal(err)
		}
		handlers := map[string]http.Handler{
			"none": http.RedirectHandler(upstream.URL, http.StatusTemporaryRedirect),
			"proxy": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				// net/http closes the body of a request when its answer begins, and the outgoing request with it.
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				proxy.ServeHTTP(w, r)
			}),
			"provider": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				req, err := gateway.NewRequest(gateway.APIChat, body)
				if err != nil {
					b.Error(err)
					return
				}
				res, err := provider.Do(r.Context(), req)
				if err != nil {
					b.Error(err)
					return
				}
				defer res.Stream.Close()
				w.Header().Set("Content-Type", "text/event-stream")
				out := make([]byte, 0, 20<<10)
				for {
					event, err := res.Stream.Next()
					if err != nil {
						break
					}
					out = append(append(append(out, "data: "...), event.Data...), "\n\n"...)
					if buffered := res.Stream.Buffered(); !buffered || len(out) > 16<<10 {
						_, _ = w.Write(out)
						out = out[:0]
						if !buffered {
							w.(http.Flusher).Flush()
						}
					}
				}
				_, _ = w.Write(append(out, "data: [DONE]\n\n"...))
			}),
		}
		name := "batched"
		if flush {
			name = "flushed"
		}
		for _, kind := range []string{"none", "proxy", "provider"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				gate := httptest.NewServer(handlers[kind])
				defer gate.Close()
				address := gate.URL
				if kind == "none" {
					address = upstream.URL
				}
				defer reportCPU(b, "cpu-ns/event", events)()
				for b.Loop() {
					res, err := http.Post(address+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true}`))
					if err != nil {
						b.Fatal(err)
					}
					n, err := io.Copy(io.Discard, res.Body)
					if err != nil || n < int64(events*(len(benchEvent)-20)) {
						b.Fatal(n, err)
					}
					_ = res.Body.Close()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
			})
		}
		_ = provider.Close()
		upstream.Close()
	}
}

// reportCPU returns a function that reports the processor time of the whole process since now: it varies less than the
// elapsed time does on a busy machine.
func reportCPU(b *testing.B, unit string, perLoop int) func() {
	b.Helper()
	used := func() int64 {
		var usage syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N*perLoop), unit) }
}

// BenchmarkPlain is a whole plain call over a loopback connection.
func BenchmarkPlain(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, plainAnswer)
	}))
	defer upstream.Close()
	provider, err := openai.New(openai.Config{Name: "x", BaseURL: upstream.URL, Keys: []gateway.Secret{gateway.NewSecret("k")}})
	if err != nil {
		b.Fatal(err)
	}
	defer provider.Close()
	body := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	b.Run("net/http", func(b *testing.B) {
		b.ReportAllocs()
		defer reportCPU(b, "cpu-ns/op", 1)()
		for b.Loop() {
			res, err := http.Post(upstream.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(res.Body); err != nil {
				b.Fatal(err)
			}
			_ = res.Body.Close()
		}
	})
	b.Run("provider", func(b *testing.B) {
		b.ReportAllocs()
		defer reportCPU(b, "cpu-ns/op", 1)()
		for b.Loop() {
			req, err := gateway.NewRequest(gateway.APIChat, []byte(body))
			if err != nil {
				b.Fatal(err)
			}
			req.Model = "upstream-model"
			if _, err := provider.Do(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
}
