package openai_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers/openai"
)

const recorded = "../../../shared/wire/recorded"

// recording is a real exchange and what an answer made of it must hold.
type recording struct {
	API      string `json:"api"`
	Provider string `json:"provider"`
	Stream   bool   `json:"stream"`
	Request  struct {
		BodyFile string `json:"body_file"`
	} `json:"request"`
	Response struct {
		Status   int               `json:"status"`
		Headers  map[string]string `json:"headers"`
		BodyFile string            `json:"body_file"`
	} `json:"response"`

	request, response []byte
	expect            expectation
}

type expectation struct {
	Choices []struct {
		FinishReason   []string `json:"finish_reason"`
		UpstreamFinish *string  `json:"upstream_finish"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Cached     int64 `json:"cached_tokens"`
		Written    int64 `json:"cache_write_tokens"`
		Reasoning  int64 `json:"reasoning_tokens"`
		AudioIn    int64 `json:"audio_input_tokens"`
		AudioOut   int64 `json:"audio_output_tokens"`
	} `json:"usage"`
	Error       jsontext.Value `json:"error"`
	StreamError jsontext.Value `json:"stream_error"`
}

func recordings(t *testing.T) map[string]recording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(recorded, "*", "*", "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("SKIPPED: no recorded exchanges in " + recorded)
	}
	all := make(map[string]recording)
	for _, file := range files {
		folder := filepath.Dir(file)
		var r recording
		decode(t, file, &r)
		if r.API != "chat" && r.API != "embeddings" || strings.HasPrefix(r.Response.BodyFile, "response.e") {
			continue
		}
		r.request = fmt.Appendf(nil, `{"model":"x","messages":[],"stream":%t}`, r.Stream) // some were recorded without it
		if r.Request.BodyFile != "" {
			r.request = read(t, filepath.Join(folder, r.Request.BodyFile))
		}
		r.response = read(t, filepath.Join(folder, r.Response.BodyFile))
		decode(t, filepath.Join(folder, "expect.json"), &r.expect)
		all[filepath.Base(folder)] = r
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	if err := json.Unmarshal(read(t, file), into); err != nil {
		t.Fatal(file, err)
	}
}

func TestRecorded(t *testing.T) {
	type script struct {
		recording

		packet int
	}
	var current atomic.Pointer[script]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		serve := current.Load()
		for name, value := range serve.Response.Headers {
			switch strings.ToLower(name) {
			case "content-length", "content-encoding", "transfer-encoding", "connection", "date":
			default:
				w.Header().Set(name, value)
			}
		}
		w.WriteHeader(serve.Response.Status)
		body := serve.response
		for serve.packet > 0 && len(body) > 0 {
			n := min(serve.packet, len(body))
			_, _ = w.Write(body[:n])
			if len(serve.response) < 20_000 {
				w.(http.Flusher).Flush()
			}
			body = body[n:]
		}
		_, _ = w.Write(body)
	}))
	defer server.Close()
	provider, err := openai.New(openai.Config{Name: "recorded", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	count := 0
	for name, r := range recordings(t) {
		count++
		t.Run(name, func(t *testing.T) {
			for _, variant := range []struct {
				name   string
				packet int
				crlf   bool
			}{{"whole", 0, false}, {"1 byte", 1, false}, {"7 bytes", 7, false}, {"CRLF", 7, true}} {
				serve := &script{r, variant.packet}
				if variant.crlf && r.Stream {
					serve.response = bytes.ReplaceAll(bytes.ReplaceAll(r.response, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
				}
				current.Store(serve)
				checkRecorded(t, provider, r, variant.name)
			}
		})
	}
	t.Logf("%d exchanges", count)
}

func checkRecorded(t *testing.T, provider *openai.Provider, r recording, variant string) {
	t.Helper()
	api := gateway.APIChat
	if r.API == "embeddings" {
		api = gateway.APIEmbeddings
	}
	req := &gateway.Request{API: api, Model: "m", Stream: r.Stream, Body: r.request}
	if r.Stream {
		body, err := req.Rewrite(gateway.Edit{Name: "stream_options", Value: jsontext.Value(`{"include_usage":true}`)})
		if err != nil {
			t.Fatal(err)
		}
		req = req.WithBody(body)
	}
	res, err := provider.Do(t.Context(), req)
	if r.Response.Status != http.StatusOK {
		checkRecordedError(t, r, err)
		return
	}
	if err != nil {
		if r.expect.Error == nil {
			t.Fatalf("%s: %v", variant, err)
		}
		return
	}
	if !r.Stream {
		if !bytes.Equal(res.Body, r.response) {
			t.Errorf("%s: the body was changed", variant)
		}
		checkRecordedUsage(t, r, variant, res.Usage)
		return
	}
	var got []string
	var usage *gateway.Usage
	finished := false
	for event, failure := range res.Stream.All() {
		if failure != nil {
			err = failure
			break
		}
		got = append(got, event.Data)
		finished = finished || event.Finished
		if event.Usage != nil {
			usage = event.Usage
		}
	}
	if (err != nil) != (r.expect.StreamError != nil) {
		t.Fatalf("%s: stream error %v, want %s", variant, err, r.expect.StreamError)
	}
	if err != nil {
		var e *gateway.Error
		if !errors.As(err, &e) {
			t.Fatalf("%T", err)
		}
		t.Logf("%s: %v, want %s", variant, e, r.expect.StreamError)
		return
	}
	if diff := cmp.Diff(recordedEvents(r.response), got); diff != "" {
		t.Errorf("%s: events:\n%s", variant, diff)
	}
	for _, choice := range r.expect.Choices {
		if choice.UpstreamFinish != nil && *choice.UpstreamFinish != "" && !finished {
			t.Errorf("%s: no finish, want %s", variant, *choice.UpstreamFinish)
		}
	}
	checkRecordedUsage(t, r, variant, usage)
}

// recordedEvents returns the data of a recorded stream. In these recordings each event is one line.
func recordedEvents(stream []byte) []string {
	var events []string
	for line := range strings.Lines(string(stream)) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:")
		if data = strings.TrimPrefix(data, " "); !ok || data == "" {
			continue
		}
		if data == "[DONE]" {
			break
		}
		events = append(events, data)
	}
	return events
}

func checkRecordedError(t *testing.T, r recording, err error) {
	t.Helper()
	var e *gateway.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	if e.UpstreamStatus != r.Response.Status || e.Message == "" {
		t.Errorf("got %+v", e)
	}
	t.Logf("%d %s %q %q %s: %s\nwant %s", e.Status, e.Outcome, e.Type, e.Code, e.Kind, e.Message, r.expect.Error)
}

func checkRecordedUsage(t *testing.T, r recording, variant string, got *gateway.Usage) {
	t.Helper()
	want := r.expect.Usage
	if want == nil || got == nil {
		if (want == nil) != (got == nil) {
			t.Errorf("%s: usage %+v, want %+v", variant, got, want)
		}
		return
	}
	have := *want
	have.Prompt, have.Completion = got.PromptTokens(), got.CompletionTokens()
	have.Cached, have.Written, have.Reasoning = got.CacheRead, got.CacheWrite, got.Reasoning
	if want.AudioIn != 0 {
		have.AudioIn = got.InputAudio
	}
	have.AudioOut = got.OutputAudio
	// Four exchanges of Vercel's report more reasoning than completion: what is inside cannot be more.
	if want := &have; r.expect.Usage.Reasoning > r.expect.Usage.Completion {
		want.Reasoning = r.expect.Usage.Reasoning
	}
	if have != *want {
		t.Errorf("%s: usage %+v, want %+v", variant, have, *want)
	}
}
