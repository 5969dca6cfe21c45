package openai

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
)

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		name, report string
		want         *gateway.Usage
	}{
		{"OpenAI", `{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":128,"audio_tokens":0,"accepted_prediction_tokens":0}}`, &gateway.Usage{Input: 86, CacheRead: 1920, Output: 172, Reasoning: 128}},
		{"cache write", `{"prompt_tokens":2649,"completion_tokens":100,"total_tokens":2749,"prompt_tokens_details":{"cached_tokens":2569,"cache_write_tokens":79}}`, &gateway.Usage{Input: 1, CacheRead: 2569, CacheWrite: 79, Output: 100}},
		{"Vercel", `{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,"cache_creation_input_tokens":90}`, &gateway.Usage{Input: 10, CacheWrite: 90, Output: 1}},
		{"audio", `{"prompt_tokens":64,"completion_tokens":18,"prompt_tokens_details":{"text_tokens":20,"audio_tokens":44},"completion_tokens_details":{"text_tokens":6,"audio_tokens":12}}`, &gateway.Usage{Input: 20, InputAudio: 44, Output: 6, OutputAudio: 12}},
		{"DeepSeek", `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6,"prompt_tokens_details":{"cached_tokens":4}}`, &gateway.Usage{Input: 6, CacheRead: 4, Output: 2}},
		{"Mistral", `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"num_cached_tokens":4}`, &gateway.Usage{Input: 6, CacheRead: 4, Output: 2}},
		{"Moonshot", `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"cached_tokens":4}`, &gateway.Usage{Input: 6, CacheRead: 4, Output: 2}},
		{"xAI", `{"prompt_tokens":468,"completion_tokens":77,"total_tokens":1127,"prompt_tokens_details":{"text_tokens":468,"cached_tokens":467},"completion_tokens_details":{"reasoning_tokens":582}}`, &gateway.Usage{Input: 1, CacheRead: 467, Output: 77, Reasoning: 582}},
		{"Gemini", `{"prompt_tokens":35,"completion_tokens":12,"total_tokens":109}`, &gateway.Usage{Input: 35, Output: 12, Reasoning: 62}},
		{"Voyage", `{"total_tokens":8}`, &gateway.Usage{Input: 8}},
		{"embeddings", `{"prompt_tokens":8,"total_tokens":8}`, &gateway.Usage{Input: 8}},
		{"nulls", `{"prompt_tokens":5,"completion_tokens":null,"prompt_tokens_details":null,"completion_tokens_details":null}`, &gateway.Usage{Input: 5}},
		{"floats and text", `{"prompt_tokens":5.0,"completion_tokens":1e1,"total_tokens":"15"}`, &gateway.Usage{Input: 5, Output: 10}},
		{"more cached than there is", `{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9,"audio_tokens":9}}`, &gateway.Usage{CacheRead: 5, Output: 1}},
		{"more reasoning than there is", `{"prompt_tokens":5,"completion_tokens":10,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":11}}`, &gateway.Usage{Input: 5, Reasoning: 10}},
		{"negative", `{"prompt_tokens":-5,"completion_tokens":-1,"total_tokens":-6}`, &gateway.Usage{}},
		{"absurd", `{"prompt_tokens":1e300,"completion_tokens":99999999999999999999}`, &gateway.Usage{}},
		{"reported zero", `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, &gateway.Usage{}},
		{"empty", `{}`, nil},
		{"no counts", `{"cost":1,"prompt_tokens":null}`, nil},
		{"no object", `[1]`, nil},
		{"malformed", `{"prompt_tokens":5`, nil},
	} {
		got := parseUsage(test.report)
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestReadChunk(t *testing.T) {
	for _, test := range []struct {
		name, data string
		want       chunk
	}{
		{"role", `{"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null}}]}`, chunk{hasChoices: true}},
		{"text", `{"choices":[{"delta":{"content":"a\"\u65e5"}}]}`, chunk{hasChoices: true, output: true, outputBytes: 5}},
		{"parts", `{"choices":[{"delta":{"content":[{"type":"text","text":"x"}]}}]}`, chunk{hasChoices: true, output: true, outputBytes: 28}},
		{"reasoning under two names", `{"choices":[{"delta":{"reasoning":"abc","reasoning_content":"abc","content":null}}]}`, chunk{hasChoices: true, output: true, outputBytes: 3}},
		{"refusal", `{"choices":[{"delta":{"refusal":"no"}}]}`, chunk{hasChoices: true, output: true, outputBytes: 2}},
		{"tool call", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}}]}`, chunk{hasChoices: true, output: true, outputBytes: 3}},
		{"no tool calls", `{"choices":[{"delta":{"content":"","tool_calls":[],"function_call":{"name":"","arguments":""},"audio":{}}}]}`, chunk{hasChoices: true}},
		{"null tool calls", `{"choices":[{"delta":{"tool_calls":null}}]}`, chunk{hasChoices: true}},
		{"function call", `{"choices":[{"delta":{"function_call":{"name":"f"}}}]}`, chunk{hasChoices: true, output: true, outputBytes: 1}},
		{"audio", `{"choices":[{"delta":{"audio":{"data":"x"}}}]}`, chunk{hasChoices: true, output: true}},
		{"finish", `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, chunk{hasChoices: true, finishes: 1}},
		{"empty finish", `{"choices":[{"delta":{},"finish_reason":""}]}`, chunk{hasChoices: true}},
		{"text completion", `{"choices":[{"text":"x","finish_reason":null}]}`, chunk{hasChoices: true, output: true, outputBytes: 1}},
		{"usage only", `{"choices":[],"usage":{"total_tokens":1}}`, chunk{usage: `{"total_tokens":1}`}},
		{"usage in the choice", `{"choices":[{"delta":{},"usage":{"total_tokens":1}}]}`, chunk{hasChoices: true, usage: `{"total_tokens":1}`}},
		{"Groq", `{"choices":[],"x_groq":{"id":"r","usage":{"total_tokens":1}}}`, chunk{usage: `{"total_tokens":1}`}},
		{"Groq's error", `{"choices":[],"x_groq":{"error":"boom"}}`, chunk{err: `"boom"`}},
		{"null choices", `{"choices":null}`, chunk{}},
		{"Azure", `{"choices":[],"prompt_filter_results":[{"content_filter_results":{}}]}`, chunk{}},
		{"null error", `{"error":null,"choices":[]}`, chunk{}},
		{"error object", `{"object":"error","message":"boom"}`, chunk{failed: true}},
		{"bare message", `{"message":"boom"}`, chunk{failed: true}},
		{"base_resp", `{"choices":[],"base_resp":{"status_code":0,"status_msg":""}}`, chunk{}},
		{"white space", " { \"choices\" : [ { \"delta\" : { \"content\" : \"x\" } , \"finish_reason\" : \"stop\" } ] } \n", chunk{hasChoices: true, output: true, outputBytes: 1, finishes: 1}},
	} {
		got, ok := readChunk(test.data)
		got.textFrom, got.textTo, got.texts = 0, 0, 0
		if !ok || got != test.want {
			t.Errorf("%s: got %t %+v, want %+v", test.name, ok, got, test.want)
		}
	}
	for _, data := range []string{"", "x", "[]", "null", `{"a"}`, `{"a":}`, `{"a":1`, `{"choices":[{"delta":{"content":"x`, `{"a":1}x`, `{"a":1,}`, `{"choices":[}`} {
		if c, ok := readChunk(data); ok {
			t.Errorf("%q is taken for a chunk: %+v", data, c)
		}
	}
}

func TestNullUsageIsCut(t *testing.T) {
	for data, want := range map[string]string{
		`{"choices":[],"usage":null}`:                          `{"choices":[]}`,
		`{"usage":null,"choices":[]}`:                          `{"choices":[]}`,
		`{"usage" : null , "choices":[]}`:                      `{ "choices":[]}`,
		`{"a":1 , "usage" : null ,"choices":[]}`:               `{"a":1  ,"choices":[]}`,
		`{"usage":null}`:                                       `{"usage":null}`, // nothing else: it says no more than {}
		`{"choices":[{"delta":{"content":"x"},"usage":null}]}`: `{"choices":[{"delta":{"content":"x"},"usage":null}]}`,
		`{"choices":[],"x":"\"usage\":null"}`:                  `{"choices":[],"x":"\"usage\":null"}`,
	} {
		c, ok := readChunk(data)
		if got := c.event(data, false, &keeper{}).Data; !ok || got != want || !jsontext.Value(got).IsValid() {
			t.Errorf("%s: got %s, want %s", data, got, want)
		}
		if got := c.event(data, true, &keeper{}).Data; got != data {
			t.Errorf("%s was changed: %s", data, got)
		}
	}
}

func FuzzChunk(f *testing.F) {
	f.Add(benchChunk, "x")
	f.Add(`{"usage":null,"choices":[{"delta":{"content":"a"}}]}`, `a"b`)
	f.Add(`{"choices":[{"delta":{"content":"a"}}],"usage":null}`, `\`)
	f.Add(`{"choices":[{"delta":{"reasoning":"a"},"finish_reason":"stop"}],"error":{"message":"m"}}`, "")
	f.Fuzz(func(t *testing.T, data, text string) {
		var remembered template
		first, ok := remembered.read(data)
		if valid := jsontext.Value(data); ok && valid.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			event := first.event(data, false, &keeper{})
			if !jsontext.Value(event.Data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
				t.Errorf("%q became %q", data, event.Data)
			}
		} else if !ok && valid.IsValid() && valid.Kind() == '{' {
			t.Errorf("%q is not taken for a chunk", data)
		}
		// What the template says must be what reading anew says.
		if first.texts == 1 {
			next := data[:first.textFrom] + text + data[first.textTo:]
			got, gotOK := remembered.read(next)
			want, wantOK := readChunk(next)
			if gotOK != wantOK || gotOK && (got.event(next, false, &keeper{}) != want.event(next, false, &keeper{}) || got.err != want.err) {
				t.Errorf("%q: %+v, want %+v", next, got, want)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock stands still
		now := time.Now().UTC()
		soon := now.Add(2 * time.Second)
		for _, test := range []struct {
			seconds, ms string
			want        time.Duration
		}{
			{"2", "", 2 * time.Second},
			{"0.5", "", 500 * time.Millisecond},
			{" 3 ", "", 3 * time.Second},
			{"2", "1500", 1500 * time.Millisecond},
			{"", "250.5", 250500 * time.Microsecond},
			{"2", "soon", 2 * time.Second},
			{soon.Format(http.TimeFormat), "", 2 * time.Second},
			{soon.Format("Monday, 02-Jan-06 15:04:05 GMT"), "", 2 * time.Second},
			{soon.Format(time.ANSIC), "", 2 * time.Second},
			{now.Add(-time.Hour).Format(http.TimeFormat), "", -1},
			{"0", "", -1},
			{"-5", "", -1},
			{"", "", 0},
			{"soon", "", 0},
			{"1h", "", 0}, {"0x10", "", 0}, {"Inf", "", 0}, {"NaN", "", 0}, {"1e3", "", 0}, {"1_0", "", 0}, {"--1", "", 0}, {"2 3", "", 0},
			{"300", "", 300 * time.Second},
			{"99999999999", "", maxRetryAfter},
			{strings.Repeat("9", 400), "", maxRetryAfter},
			{"9999-12-31", "", 0},
			{"Fri, 31 Dec 9999 23:59:59 GMT", "", maxRetryAfter},
		} {
			h := http.Header{}
			h.Set("Retry-After", test.seconds)
			h.Set("Retry-After-Ms", test.ms)
			if got := RetryAfter(h, now); got != test.want {
				t.Errorf("%q %q: got %v, want %v", test.seconds, test.ms, got, test.want)
			}
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("2", "1500")
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT", "")
	f.Add("-0.0", "1e308")
	f.Fuzz(func(t *testing.T, seconds, ms string) {
		h := http.Header{"Retry-After": {seconds}, "Retry-After-Ms": {ms}}
		if d := RetryAfter(h, time.Unix(1e9, 0)); d < -1 || d > maxRetryAfter {
			t.Errorf("%q %q: %v", seconds, ms, d)
		}
	})
}

func FuzzDecodeError(f *testing.F) {
	f.Add(400, `{"error":{"message":"bad","type":"t","param":"p","code":1}}`)
	f.Add(429, `[{"error":{"metadata":{"raw":"{\"error\":\"x\"}"}}}]`)
	f.Add(500, "<html>")
	f.Add(422, `{"detail":[{"loc":["a",1],"msg":"m"}]}`)
	f.Add(401, "Bearer abc http://10.0.0.1/ [::1]:80 sk-1234567890")
	f.Add(200, `{"error":[[[[[[[[[["x"]]]]]]]]]]}`)
	u := Upstream{Provider: "p", Secrets: []string{"canary-secret"}, Host: "h:1"}
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := u.DecodeError(status, http.Header{}, []byte(body))
		if e.Status < 400 || e.Status > 599 || e.Message == "" || e.Kind == nil || e.Outcome == gateway.OutcomeSuccess {
			t.Errorf("%+v", e)
		}
		for _, text := range []string{e.Message, e.Code, e.Type, e.Param} {
			if len(text) > 2*maxText || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n\r\x1b") || strings.Contains(text, "canary-secret") {
				t.Errorf("%q", text)
			}
		}
		if _, failure := u.DecodeResponse([]byte(body)); failure != nil && failure.Outcome == gateway.OutcomeSuccess {
			t.Error(failure)
		}
	})
}

func TestClean(t *testing.T) {
	u := Upstream{Secrets: []string{"my-own-key-42"}, Host: "llm.example.org:8443"}
	for text, want := range map[string]string{
		"key my-own-key-42 is bad":                                  "key *** is bad",
		"Authorization: Bearer abc.def-ghi":                         "Authorization: ***",
		"sk-proj-abc123 gsk_abcdefgh AKIAABCDEFGHIJKLMNOP":          "*** *** ***",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_DEF":              "***",
		"dial llm.example.org:8443 and 10.1.2.3:80, [fd00::1]:9":    "dial [address] and [address], [address]",
		"http://localhost:11434/api redis://u:p@h/0 http://vllm/v1": "[address] [address] [address]",
		"model.svc gpu-1.cluster.local:8000":                        "[address] [address]",
		"see https://docs.example.com/a/b?token=x#y.":               "see https://docs.example.com/a/b",
		"https://u:p@docs.example.com/":                             "[address]",
		"line\r\none\x00\x1b[0m two\u202e\tthree":                   "line one [0m two three",
		"max_tokens key_not_found token_limit skipping risk-free":   "max_tokens key_not_found token_limit skipping risk-free",
		"": "",
	} {
		if got := u.clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := u.clean(strings.Repeat("日本", 400)); len(got) > maxText+len("…") || !utf8.ValidString(got) {
		t.Error(len(got))
	}
}

func TestErrorNamesTheUpstream(t *testing.T) {
	e := Upstream{Provider: "cloud"}.DecodeError(503, http.Header{"Retry-After": {"7"}}, nil)
	if want := `the upstream "cloud" failed with status 503: Service Unavailable`; e.Message != want || e.RetryAfter != 7*time.Second {
		t.Error(fmt.Sprintf("%q", e.Message), e.RetryAfter)
	}
}
