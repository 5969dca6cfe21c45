package openai_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
	"github.com/gatewright/gateway/providers/openai"
)

const (
	roleChunk   = `{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`
	textChunk   = `{"id":"1","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}],"usage":null}`
	finishChunk = `{"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`
	usageChunk  = `{"id":"1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
)

func frames(events ...string) string {
	var b strings.Builder
	for _, event := range events {
		b.WriteString("data: " + event + "\n\n")
	}
	return b.String()
}

// result is all that a stream gave.
type result struct {
	visible  []string // what the caller sees
	usage    *gateway.Usage
	finished bool
	err      *gateway.Error
}

func collect(t *testing.T, p *openai.Provider, req *gateway.Request) (r result) {
	t.Helper()
	res, err := p.Do(t.Context(), req)
	if err != nil {
		r.err = failureOf(t, err)
		return r
	}
	for event, err := range res.Stream.All() {
		if err != nil {
			r.err = failureOf(t, err)
			return r
		}
		if !event.Hidden {
			r.visible = append(r.visible, event.Data)
		}
		if event.Usage != nil {
			r.usage = event.Usage
		}
		r.finished = r.finished || event.Finished
	}
	return r
}

// streamServer answers with the text, and then ends the body as it should end.
func streamServer(t *testing.T, text string) *openai.Provider {
	t.Helper()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	})
	return newProvider(t, openai.Config{BaseURL: server.URL})
}

func TestUsageOfStreams(t *testing.T) {
	var got atomic.Pointer[string]
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		got.Store(&text)
		if !strings.Contains(text, `"stream":true`) {
			_, _ = io.WriteString(w, plainAnswer)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, frames(roleChunk, textChunk, finishChunk, usageChunk, "[DONE]"))
	})
	cut := func(chunk string) string { return strings.Replace(chunk, `,"usage":null`, "", 1) }
	quiet := []string{cut(roleChunk), cut(textChunk), cut(finishChunk)}
	loud := []string{roleChunk, textChunk, finishChunk, usageChunk}
	for _, test := range []struct {
		name, sent, want string
		noUsage          bool
		visible          []string
	}{
		{"absent", `{"model":"m","stream":true}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, false, quiet},
		{"false", `{"model":"m","stream":true,"stream_options":{"include_usage":false}}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, false, quiet},
		{"true", `{"model":"m","stream":true,"stream_options":{ "include_usage" : true, "x":1e400 }}`, `{"model":"m","stream":true,"stream_options":{ "include_usage" : true, "x":1e400 }}`, false, loud},
		{"other", `{"model":"m","stream":true,"stream_options":{"include_obfuscation" : false}}`, `{"model":"m","stream":true,"stream_options":{"include_obfuscation" : false,"include_usage":true}}`, false, quiet},
		{"null", `{"model":"m","stream":true,"stream_options":null}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, false, quiet},
		{"quirk", `{"model":"m","stream":true}`, `{"model":"m","stream":true}`, true, quiet},
		{"plain", `{"model":"m","stream":false,"stream_options":null}`, `{"model":"m","stream":false,"stream_options":null}`, false, nil},
		{"null stream", `{"model":"m","stream":null}`, `{"model":"m","stream":null}`, false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newProvider(t, openai.Config{BaseURL: server.URL, Quirks: gateway.QuirksConfig{NoIncludeUsage: test.noUsage}})
			req := chat(t, test.sent)
			if !req.Stream {
				if _, err := p.Do(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			} else {
				r := collect(t, p, req)
				if diff := cmp.Diff(test.visible, r.visible); diff != "" || r.err != nil {
					t.Error(diff, r.err)
				}
				if r.usage == nil || *r.usage != (gateway.Usage{Input: 3, Output: 2}) || !r.finished {
					t.Errorf("%+v", r)
				}
			}
			if diff := cmp.Diff(test.want, *got.Load()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBodyIsKept(t *testing.T) {
	var got atomic.Pointer[string]
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		got.Store(&text)
		_, _ = io.WriteString(w, plainAnswer)
	})
	sent := "{ \"z\":1.0,\t\"model\" : \"alias\",\"a\":9007199254740993 , \"m\":[1e400,-0,0.1e-2,\"\\u2028\u2028<>&\",{\"model\":\"alias\"}],\"max_tokens\":5,\"seed\":1,\n\"tools\":[],\"stop\":null}\n"
	for _, test := range []struct {
		name   string
		quirks gateway.QuirksConfig
		body   string
		want   string
	}{
		{"as it is", gateway.QuirksConfig{}, sent, strings.Replace(sent, `"model" : "alias"`, `"model" : "up/m"`, 1)},
		{
			"quirks", gateway.QuirksConfig{Drop: []string{"seed", "none"}, Rename: map[string]string{"max_tokens": "max_completion_tokens"}},
			`{"model":"alias","seed":1,"max_tokens":5}`, `{"model":"up/m","max_completion_tokens":5}`,
		},
		{
			"the upstream's name wins", gateway.QuirksConfig{Rename: map[string]string{"max_tokens": "max_completion_tokens"}},
			`{"model":"alias","max_completion_tokens":7,"max_tokens":5}`, `{"model":"up/m","max_completion_tokens":7}`,
		},
	} {
		p := newProvider(t, openai.Config{BaseURL: server.URL, Quirks: test.quirks})
		req := chat(t, test.body)
		req.Model = "up/m"
		if _, err := p.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, *got.Load()); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestStreamEnds(t *testing.T) {
	text := strings.Replace(textChunk, `,"usage":null`, "", 1)
	finish := strings.Replace(finishChunk, `,"usage":null`, "", 1)
	for _, test := range []struct {
		name    string
		stream  string
		visible int
		outcome gateway.Outcome // success: no error
		code    string
		kind    error
		says    string
	}{
		{name: "done", stream: frames(text, finish, "[DONE]"), visible: 2},
		{name: "two dones", stream: frames(text, finish, "[DONE]", "[DONE]"), visible: 2},
		{name: "no done", stream: frames(text, finish), visible: 2},
		{name: "done without finish", stream: frames(text, "[DONE]"), visible: 1},
		{name: "data after done", stream: frames(text, finish, "[DONE]", text), visible: 2},
		{name: "no blank line at the end", stream: frames(text) + "data: " + finish + "\n", visible: 2},
		{name: "no line end at the end", stream: frames(text) + "data: " + finish, visible: 2},
		{name: "liveness", stream: ": x\n\ndata:\n\ndata: null\n\ndata: {}\n\ndata: : keepalive\n\nevent: ping\n\ndata:   \n\n" + frames(text) + ":\n\n" + frames(finish), visible: 2},
		{name: "cut", stream: frames(text, text), visible: 2, outcome: gateway.OutcomeInterrupted, code: "upstream_stream_truncated", kind: gateway.ErrInterrupted},
		{name: "cut before output", stream: frames(roleChunk), visible: 1, outcome: gateway.OutcomeUnknown, code: "upstream_stream_truncated", kind: gateway.ErrInterrupted},
		{name: "empty", stream: "", outcome: gateway.OutcomeUnknown, code: "upstream_stream_truncated", kind: gateway.ErrInterrupted},
		{
			name: "error in mid-stream", stream: frames(text, `{"error":{"message":"boom sk-abcdef123456","type":"server_error","code":"internal","param":null}}`),
			visible: 1, outcome: gateway.OutcomeInterrupted, kind: gateway.ErrInterrupted, says: "boom ***",
		},
		{name: "error event", stream: frames(text) + "event: error\ndata: {\"message\":\"boom\",\"status_code\":503}\n\n", visible: 1, outcome: gateway.OutcomeInterrupted, kind: gateway.ErrInterrupted, says: "boom"},
		{name: "error as text", stream: frames(text) + "data: Internal Server Error\n\n", visible: 1, outcome: gateway.OutcomeInterrupted, kind: gateway.ErrInterrupted, says: "Internal Server Error"},
		{name: "error in a list", stream: frames(text, `[{"error":{"message":"boom","code":500}}]`), visible: 1, outcome: gateway.OutcomeInterrupted, kind: gateway.ErrInterrupted, says: "boom"},
		{name: "error beside choices", stream: frames(text, `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}],"error":{"message":"boom","code":502}}`), visible: 1, outcome: gateway.OutcomeInterrupted, kind: gateway.ErrInterrupted, says: "boom"},
		{name: "error that is null", stream: frames(strings.Replace(text, `{`, `{"error":null,`, 1), finish), visible: 2},
		{name: "error before output", stream: frames(roleChunk, `{"error":{"message":"busy","type":"overloaded_error"}}`), visible: 1, outcome: gateway.OutcomeRefused, code: "upstream_overloaded", kind: gateway.ErrUpstream, says: "busy"},
		{name: "limit before output", stream: frames(`{"error":{"message":"slow","code":429}}`), outcome: gateway.OutcomeRefused, code: "upstream_rate_limited", kind: gateway.ErrUpstreamLimit},
		{name: "context before output", stream: frames(`{"error":{"message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","code":400}}`), outcome: gateway.OutcomeRejected, code: "context_length_exceeded", kind: gateway.ErrContextLength},
		{name: "JSON error instead of a stream", stream: `{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}`, outcome: gateway.OutcomeRejected, code: "model_not_found", kind: gateway.ErrInvalidRequest, says: "no such model"},
		{name: "HTML instead of a stream", stream: "<html>busy</html>", outcome: gateway.OutcomeUnknown, code: "upstream_invalid_response", kind: gateway.ErrUpstream, says: "HTML"},
		{name: "half a chunk", stream: frames(text) + `data: {"choices":[{"index":0,"delta":{"con`, visible: 1, outcome: gateway.OutcomeInterrupted, kind: gateway.ErrInterrupted},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := collect(t, streamServer(t, test.stream), streamRequest(t))
			if len(r.visible) != test.visible {
				t.Errorf("events: %q", r.visible)
			}
			if test.outcome == gateway.OutcomeSuccess {
				if r.err != nil {
					t.Error(r.err)
				}
				return
			}
			if r.err == nil {
				t.Fatal("no error")
			}
			if r.err.Outcome != test.outcome || !errors.Is(r.err, test.kind) || test.code != "" && r.err.Code != test.code {
				t.Errorf("got %s %v %q: %v", r.err.Outcome, r.err.Kind, r.err.Code, r.err)
			}
			if !strings.Contains(r.err.Message, test.says) || r.err.Provider != "up" || r.err.Status < 400 {
				t.Errorf("%+v", r.err)
			}
		})
	}
}

// eventStream sends the head of a streamed answer.
var eventStream = gatewaytest.Headers(http.StatusOK, "Content-Type", "text/event-stream")

func TestStreamIsReset(t *testing.T) {
	server := gatewaytest.NewUpstream(t, gatewaytest.Sequence(
		eventStream, gatewaytest.Text(frames(textChunk, textChunk, textChunk)), gatewaytest.Reset()))
	r := collect(t, newProvider(t, openai.Config{BaseURL: server.URL()}), streamRequest(t))
	if r.err == nil || r.err.Outcome != gateway.OutcomeInterrupted || r.err.Code != "upstream_stream_truncated" || len(r.visible) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestEndAfterFinish(t *testing.T) {
	two := `{"model":"m","stream":true,"n":2}`
	for _, test := range []struct {
		name, body string
		end        http.Handler
		cut        bool
	}{
		{"reset", `{"model":"m","stream":true}`, gatewaytest.Reset(), false},
		{"silence", `{"model":"m","stream":true}`, gatewaytest.Hang(), false},
		{"end", `{"model":"m","stream":true}`, gatewaytest.HangUp(), false},
		{"end with another choice open", two, gatewaytest.HangUp(), true},
		{"reset with another choice open", two, gatewaytest.Reset(), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := gatewaytest.NewUpstream(t, gatewaytest.Sequence(
				eventStream, gatewaytest.Text(frames(textChunk, finishChunk)), test.end))
			r := collect(t, newProvider(t, openai.Config{BaseURL: server.URL(), Timeouts: quick}), chat(t, test.body))
			if len(r.visible) != 2 || (r.err != nil) != test.cut || test.cut && r.err.Outcome != gateway.OutcomeInterrupted {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestStreamTimeouts(t *testing.T) {
	for _, test := range []struct {
		name     string
		sent     string
		timeouts openai.Timeouts
		outcome  gateway.Outcome
		code     string
		status   int
	}{
		{"no output", frames(roleChunk), quick, gateway.OutcomeUnknown, "upstream_timeout", 504},
		{"silence", frames(roleChunk, textChunk), quick, gateway.OutcomeInterrupted, "upstream_idle_timeout", 504},
		{"total", frames(roleChunk, textChunk), openai.Timeouts{Total: 100 * time.Millisecond}, gateway.OutcomeInterrupted, "upstream_total_timeout", 504},
		{"total before output", "", openai.Timeouts{Total: 100 * time.Millisecond}, gateway.OutcomeUnknown, "upstream_total_timeout", 504},
	} {
		t.Run(test.name, func(t *testing.T) {
			left := make(chan bool, 1)
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, test.sent)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				left <- true
			})
			r := collect(t, newProvider(t, openai.Config{BaseURL: server.URL, Timeouts: test.timeouts}), streamRequest(t))
			if r.err == nil || r.err.Outcome != test.outcome || r.err.Code != test.code || r.err.Status != test.status {
				t.Errorf("%+v", r.err)
			}
			<-left
		})
	}
}

func TestSlowStreamLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := gatewaytest.NewPipeUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range 10 {
				_, _ = io.WriteString(w, frames(textChunk))
				w.(http.Flusher).Flush()
				<-time.After(40 * time.Second)
			}
			_, _ = io.WriteString(w, frames(finishChunk, "[DONE]"))
		}))
		transport := server.Transport()
		defer transport.CloseIdleConnections()
		r := collect(t, newProvider(t, openai.Config{
			BaseURL: server.URL(), Transport: transport, Timeouts: openai.Timeouts{Idle: time.Minute},
		}), streamRequest(t))
		if r.err != nil || len(r.visible) != 11 {
			t.Errorf("%+v", r)
		}
	})
}

func TestReaderTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := gatewaytest.NewPipeUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, frames(textChunk))
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, frames(finishChunk, "[DONE]"))
		}))
		transport := server.Transport()
		defer transport.CloseIdleConnections()
		res, err := newProvider(t, openai.Config{
			BaseURL: server.URL(), Transport: transport, Timeouts: openai.Timeouts{Idle: time.Minute},
		}).Do(t.Context(), streamRequest(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range res.Stream.All() {
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour) // more than the idle timeout, but nobody waits for the upstream
		}
	})
}

func TestStreamIsClosed(t *testing.T) {
	left := make(chan bool, 2)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, frames(textChunk))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		left <- true
	})
	p := newProvider(t, openai.Config{BaseURL: server.URL})
	t.Run("abandoned", func(t *testing.T) {
		res, err := p.Do(t.Context(), streamRequest(t))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Stream.Close()
		<-left
	})
	t.Run("while it is read", func(t *testing.T) {
		res, err := p.Do(t.Context(), streamRequest(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := res.Stream.Next(); err != nil {
			t.Fatal(err)
		}
		go func() { _ = res.Stream.Close() }()
		if _, err := res.Stream.Next(); failureOf(t, err).Outcome != gateway.OutcomeCanceled {
			t.Error(err)
		}
		<-left
	})
	t.Run("caller leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := p.Do(ctx, streamRequest(t))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Stream.Close()
		if _, err := res.Stream.Next(); err != nil {
			t.Fatal(err)
		}
		go cancel()
		if _, err := res.Stream.Next(); failureOf(t, err).Status != gateway.StatusClientClosedRequest {
			t.Error(err)
		}
		<-left
	})
}

func TestPlainAnswerToStream(t *testing.T) {
	body := `{"id":"c1","object":"chat.completion","created":7,"model":"m-1","system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":"a<b","refusal":null,"reasoning":"hm"},"logprobs":null,"finish_reason":"stop"},` +
		`{"index":1,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
	head, tail := `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[`, `],"system_fingerprint":"fp"}`
	want := []string{
		head + `{"index":0,"delta":{"role":"assistant"},"finish_reason":null}` + tail,
		head + `{"index":0,"delta":{"content":"a<b","reasoning":"hm"},"finish_reason":null,"logprobs":null}` + tail,
		head + `{"index":0,"delta":{},"finish_reason":"stop"}` + tail,
		head + `{"index":1,"delta":{"role":"assistant"},"finish_reason":null}` + tail,
		head + `{"index":1,"delta":{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}` + tail,
		head + `{"index":1,"delta":{},"finish_reason":"tool_calls"}` + tail,
	}
	for _, leading := range []string{"", "\n\n  \n", strings.Repeat("\n", 5000)} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, leading)
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, body)
		})
		p := newProvider(t, openai.Config{BaseURL: server.URL})
		r := collect(t, p, streamRequest(t))
		if diff := cmp.Diff(want, r.visible); diff != "" || r.err != nil || r.usage == nil || !r.finished {
			t.Errorf("%s\n%+v", diff, r)
		}
		if res, err := p.Do(t.Context(), plainRequest(t)); err != nil || string(res.Body) != leading+body {
			t.Error(err)
		}
	}
}

func TestRepairedChunks(t *testing.T) {
	sent := []string{
		`{"id":"","choices":[],"prompt_filter_results":[{"x":1}]}`,
		`{"id":"a","choices":[{"delta":{"role":"","content":"he"}}]}`,
		`{"id":"b","model":"m","choices":[{"index":null,"delta":{"role":"assistant","content":"llo"},"finish_reason":""}]}`,
		`{"id":"b","choices":[{"index":0,"delta":{"tool_calls":[{"id":"","function":{"name":"f","arguments":{"a":1}}}]}}]}`,
		`{"id":"b","choices":[{"index":0,"delta":{"tool_calls":[{"index":null,"id":"x2","function":{"name":"g"}}]}}]}`,
		`{"id":"b","choices":[{"index":0,"delta":{"tool_calls":[{"index":null,"id":"","function":{"name":null,"arguments":"{}"}}]}}]}`,
		`{"id":"b","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"id":"b","usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
	}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, frames(sent...)) })
	p := newProvider(t, openai.Config{BaseURL: server.URL, Quirks: gateway.QuirksConfig{RepairChunks: true}})
	r := collect(t, p, chat(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`))
	if r.err != nil {
		t.Fatal(r.err)
	}
	id := strings.Split(r.visible[0], `"`)[3]
	call := ""
	if _, rest, ok := strings.Cut(r.visible[3], `"id":"call_`); ok {
		call, _, _ = strings.Cut(rest, `"`)
	}
	head := fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","created":0,"model":"m","choices":[`, id)
	want := []string{
		head + `],"prompt_filter_results":[{"x":1}]}`,
		head + `{"index":0,"delta":{"role":"assistant","content":"he"},"finish_reason":null}]}`,
		head + `{"index":0,"delta":{"content":"llo"},"finish_reason":null}]}`,
		head + `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_` + call + `","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}]}`,
		head + `{"index":0,"delta":{"tool_calls":[{"index":1,"id":"x2","type":"function","function":{"name":"g","arguments":""}}]},"finish_reason":null}]}`,
		head + `{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":null}]}`,
		head + `{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		head + `],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
	}
	if diff := cmp.Diff(want, r.visible); diff != "" || id == "" || call == "" {
		t.Error(diff)
	}
}

func TestGiantChunk(t *testing.T) {
	for _, size := range []int{70_000, 1_100_000, 9_000_000} {
		chunk := `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + strings.Repeat("x", size) + `"}}]}}]}`
		r := collect(t, streamServer(t, frames(chunk, finishChunk, usageChunk, "[DONE]")), streamRequest(t))
		if r.err != nil || len(r.visible) != 2 || r.visible[0] != chunk || r.usage == nil {
			t.Errorf("%d: %v", size, r.err)
		}
	}
	r := collect(t, streamServer(t, frames(textChunk)+"data: "+strings.Repeat("x", 33<<20)+"\n\n"), streamRequest(t))
	if r.err == nil || r.err.Code != "upstream_event_too_large" || r.err.Outcome != gateway.OutcomeInterrupted {
		t.Errorf("%+v", r.err)
	}
}

func TestBuffered(t *testing.T) {
	next := make(chan string)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for part := range next {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	})
	res, err := func() (*gateway.Response, error) {
		go func() { next <- frames(textChunk, textChunk) + ": keep-alive\n\ndata: {}\n\n" }()
		return newProvider(t, openai.Config{BaseURL: server.URL}).Do(t.Context(), streamRequest(t))
	}()
	if err != nil {
		t.Fatal(err)
	}
	defer close(next)
	defer res.Stream.Close()
	var buffered []bool
	for range 2 {
		if _, err := res.Stream.Next(); err != nil {
			t.Fatal(err)
		}
		buffered = append(buffered, res.Stream.Buffered())
	}
	// What follows the second event is only there to keep the connection alive: reading on would wait.
	if !slices.Equal(buffered, []bool{true, false}) {
		t.Errorf("Buffered: %v", buffered)
	}
	next <- frames(finishChunk, "[DONE]")
	if event, err := res.Stream.Next(); err != nil || !event.Finished {
		t.Fatal(event, err)
	}
	if _, err := res.Stream.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestGzip(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Encoding", "gzip") // whatever was asked for
		z := gzip.NewWriter(w)
		defer z.Close()
		if !strings.Contains(string(body), `"stream":true`) {
			_, _ = io.WriteString(z, plainAnswer)
			return
		}
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Error("a stream was asked for in", r.Header.Get("Accept-Encoding"))
		}
		_, _ = io.WriteString(z, frames(textChunk, finishChunk, "[DONE]"))
	})
	p := newProvider(t, openai.Config{BaseURL: server.URL})
	if res, err := p.Do(t.Context(), plainRequest(t)); err != nil || string(res.Body) != plainAnswer {
		t.Error(err)
	}
	if r := collect(t, p, streamRequest(t)); r.err != nil || len(r.visible) != 2 {
		t.Error(r)
	}
}
