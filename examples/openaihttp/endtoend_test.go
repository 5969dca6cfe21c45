package openaihttp_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/examples/openaihttp"
	"github.com/gatewright/gateway/gatewaytest"
	"github.com/gatewright/gateway/providers/openai"
)

// The whole way: a client, the HTTP surface, the Client, the OpenAI provider, and an upstream that misbehaves. The names
// in the tests are those of the field reports that they settle.
func newEndToEnd(t *testing.T, steps ...http.Handler) (base string, upstream *gatewaytest.Upstream) {
	t.Helper()
	upstream = gatewaytest.NewUpstream(t, steps...)
	quiet := slog.New(slog.DiscardHandler)
	provider, err := openai.New(openai.Config{
		Name: "cloud", BaseURL: upstream.URL(), Keys: []gateway.Secret{gateway.NewSecret("upstream-key")}, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := gateway.New(gateway.WithProvider(provider), gateway.WithLogger(quiet), gateway.WithAlias(gateway.Alias{
		Name: "chat-smart", Candidates: []gateway.Candidate{{Provider: "cloud", Model: "real"}}, Retry: gateway.DefaultRetryPolicy{},
	}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(openaihttp.New(client, openaihttp.WithKeys(openaihttp.Key{Name: "k", Hash: openaihttp.HashKey("user-key")})))
	t.Cleanup(func() {
		server.Close()
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return server.URL, upstream
}

func call(t *testing.T, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer user-key")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func TestPass1And2And6EveryByteButTheModelArrives(t *testing.T) {
	base, upstream := newEndToEnd(t)
	const before = `{ "z" :1,"enable_thinking":false,"extra_body":{"google":{"cached_content":"c1"},"model":"chat-smart"},"x":[1,{"y":null}],` +
		`"seed":9007199254740993,"temperature":1.0,"top_p":0.1e-2,"a":-0,"n1":12345678901234567890123,"huge":1e400,"tool_choice":null,"tools":[],` +
		"\"messages\":[{\"role\":\"user\",\"content\":\"a<b && c>d \\u2028 \u2028\"}],\n\t\"model\" : "
	const after = ` , "metadata" : {"model":"chat-smart"} , "stop" : null }`
	if res, body := call(t, base+chatPath, before+`"chat-smart"`+after); res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if diff := cmp.Diff(before+`"real"`+after, string(upstream.Requests()[0].Body)); diff != "" {
		t.Errorf("body at the upstream (-want +got):\n%s", diff)
	}
}

func TestPass3AndAdmin3TheCallerDecidesNeitherCredentialsNorAddress(t *testing.T) {
	base, upstream := newEndToEnd(t)
	body := `{"model":"chat-smart","messages":[],"api_base":"http://evil.test","base_url":"http://evil.test","api_key":"evil","headers":{"Authorization":"evil"}}`
	if res, text := call(t, base+chatPath+"?key=CANARY&api_key=CANARY", body, "X-Api-Key", "CANARY", "X-Goog-Api-Key", "CANARY", "Cookie", "CANARY",
		"X-Forwarded-For", "CANARY", "X-Forwarded-Host", "CANARY", "X-Base-Url", "CANARY", "Idempotency-Key", "CANARY", "X-Custom", "CANARY"); res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	got := upstream.Requests()[0]
	if got.Header.Get("Authorization") != "Bearer upstream-key" {
		t.Errorf("Authorization %q", got.Header.Get("Authorization"))
	}
	for name, values := range got.Header {
		if strings.Contains(strings.Join(values, " "), "CANARY") || strings.Contains(strings.Join(values, " "), "user-key") {
			t.Errorf("%s: %v reached the upstream", name, values)
		}
	}
	if strings.Contains(got.Path, "CANARY") {
		t.Errorf("path %s", got.Path)
	}
}

func TestSSE4ExactlyOneDone(t *testing.T) {
	for done := range 3 {
		base, _ := newEndToEnd(t, gatewaytest.Stream("one", "two").WithDone(done))
		_, body := call(t, base+chatPath, streamBody)
		if strings.Count(body, "[DONE]") != 1 || !strings.HasSuffix(body, "data: [DONE]\n\n") {
			t.Errorf("the upstream sends %d, the caller gets: %s", done, body)
		}
	}
}

func TestSSE6ACutStreamIsAnErrorEvent(t *testing.T) {
	head := gatewaytest.Headers(http.StatusOK, "Content-Type", "text/event-stream")
	for name, end := range map[string]http.Handler{"RST": gatewaytest.Reset(), "FIN": gatewaytest.HangUp()} {
		base, upstream := newEndToEnd(t, gatewaytest.Sequence(head, gatewaytest.Events(3), end))
		res, body := call(t, base+chatPath, streamBody)
		if strings.Count(body, `"content":`) != 3 || !strings.Contains(body, `"code":"upstream_stream_truncated"`) || strings.Contains(body, "[DONE]") {
			t.Errorf("%s: %s", name, body)
		}
		if res.Trailer.Get("X-Gateway-Outcome") != "interrupted" || upstream.Count() != 1 {
			t.Errorf("%s: trailer %v after %d requests", name, res.Trailer, upstream.Count())
		}
	}
}

func TestErrors1And2And3TheUpstreamsAnswerDecides(t *testing.T) {
	tests := []struct {
		name   string
		step   http.Handler
		status int
		code   string
	}{
		{"its limit", gatewaytest.Status(429).WithRetryAfter("3"), 429, "upstream_rate_limited"},
		{"its key", gatewaytest.Status(401), 502, "upstream_auth"},
		{"no access", gatewaytest.Status(403), 502, "upstream_auth"},
		{"its failure", gatewaytest.Status(500).WithBody("text/html", "<html>10.0.0.1 secret</html>"), 502, "upstream_error"},
		{"its overload", gatewaytest.Status(529), 503, "upstream_overloaded"},
	}
	for _, test := range tests {
		for _, body := range []string{chatBody, streamBody} {
			base, _ := newEndToEnd(t, test.step)
			res, text := call(t, base+chatPath, body)
			if res.StatusCode != test.status || !strings.Contains(text, `"code":"`+test.code+`"`) || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s", test.name, res.StatusCode, text)
			}
			for _, leak := range []string{"upstream-key", "<html>", "10.0.0.1", "127.0.0.1"} {
				if strings.Contains(text, leak) {
					t.Errorf("%s: %s is shown: %s", test.name, leak, text)
				}
			}
			if test.status == 429 && res.Header.Get("Retry-After") != "3" {
				t.Errorf("Retry-After %q", res.Header.Get("Retry-After"))
			}
		}
	}
}

func TestErrors3ADocumentBecomesAStream(t *testing.T) {
	base, _ := newEndToEnd(t, gatewaytest.AnswerJSON(`{"id":"i","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`))
	res, body := call(t, base+chatPath, streamBody)
	for _, want := range []string{`"role":"assistant"`, `"content":"hi"`, `"finish_reason":"stop"`, "data: [DONE]\n\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if res.Header.Get("Content-Type") != "text/event-stream" || res.Trailer.Get("X-Gateway-Prompt-Tokens") != "1" {
		t.Errorf("header %v, trailer %v", res.Header, res.Trailer)
	}
}

func TestHTTP4LargeBodiesPass(t *testing.T) {
	base, upstream := newEndToEnd(t)
	body := `{"model":"chat-smart","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("iVBORw0KGgo=", 20<<20/12) + `"}}]}]}`
	if res, text := call(t, base+chatPath, body); res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	if got := string(upstream.Requests()[0].Body); got != strings.Replace(body, `"chat-smart"`, `"real"`, 1) {
		t.Errorf("%d bytes arrived of %d", len(got), len(body))
	}
}
