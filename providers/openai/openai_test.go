package openai_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers/openai"
)

func TestBaseURL(t *testing.T) {
	var path atomic.Pointer[string]
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path.Store(&r.RequestURI)
		_, _ = io.WriteString(w, plainAnswer)
	})
	for base, prefix := range map[string]string{
		"": "/v1", "/": "/v1", "/v1": "/v1", "/v1/": "/v1", "/v1//": "/v1", "/api/v1": "/api/v1",
		"/api/paas/v4/": "/api/paas/v4", "/v1beta/openai": "/v1beta/openai", "/openai/v1beta": "/openai/v1beta",
		"/av1": "/av1", "/v10": "/v10", "/a%2Fb/v1": "/a%2Fb/v1",
	} {
		p := newProvider(t, openai.Config{BaseURL: server.URL + base})
		for api, suffix := range map[gateway.API]string{
			gateway.APIChat: "/chat/completions", gateway.APIEmbeddings: "/embeddings",
		} {
			req := plainRequest(t)
			req.API = api
			if _, err := p.Do(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if got := *path.Load(); got != prefix+suffix {
				t.Errorf("%q: %s", base, got)
			}
		}
	}
	p := newProvider(t, openai.Config{BaseURL: server.URL + "/v1?tenant=a"})
	req := plainRequest(t)
	req.Query = "api-version=2024-10-21&key=canary&x=%20y&api_key=canary&access_token=canary&bad value&API%5FKEY=canary"
	if _, err := p.Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if got := *path.Load(); got != "/v1/chat/completions?tenant=a&api-version=2024-10-21&x=%20y" {
		t.Error(got)
	}
}

func TestValidation(t *testing.T) {
	proxy := &url.URL{Scheme: "ftp", Host: "h"}
	_, err := openai.New(openai.Config{
		MaxConcurrency: -1, Keys: []gateway.Secret{gateway.NewSecret(" canary"), gateway.NewSecret("")},
		Header: http.Header{"a b": {"x"}, "C": {"x\ny"}}, Proxy: proxy,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Name", "BaseURL", "MaxConcurrency", "Keys[0]", "Keys[1]", `"a b"`, "value of C", "Proxy"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Error("the error shows a key")
	}
	for _, base := range []string{
		"api.openai.com/v1", "ftp://h", "http://", "http://user:canary@h/v1", "http://h/v1/chat/completions",
		"http://h/v1/embeddings/", "http://h/v1#f", "http://h:canary%zz", "://",
	} {
		if _, err := openai.New(openai.Config{Name: "x", BaseURL: base}); err == nil || !strings.Contains(err.Error(), "BaseURL") ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	var got atomic.Pointer[http.Request]
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r)
		w.Header().Set("Openai-Processing-Ms", "12")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("X-Internal", "1")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, plainAnswer)
	})
	p := newProvider(t, openai.Config{
		BaseURL: server.URL, Keys: []gateway.Secret{gateway.NewSecret("sk-own")},
		Header: http.Header{"x-team": {"platform"}, "OpenAI-Organization": {"org"}},
	})
	req := plainRequest(t)
	req.Header = http.Header{
		"Authorization": {"Bearer canary"}, "x-api-key": {"canary"}, "Api-Key": {"canary"}, "X-Goog-Api-Key": {"canary"},
		"Cookie": {"canary"}, "Proxy-Authorization": {"canary"}, "X-My-Token": {"canary"}, "X-Auth": {"canary"},
		"X-Forwarded-For": {"canary"}, "Forwarded": {"canary"}, "Via": {"canary"}, "Host": {"canary"},
		"Connection": {"canary"}, "Te": {"canary"}, "Idempotency-Key": {"canary"}, "X-Idempotency-Key": {"canary"},
		"Content-Length": {"7"}, "Content-Type": {"text/canary"}, "Accept-Encoding": {"canary"}, "Accept": {"canary"},
		"X-Gateway-Priority": {"canary"}, "Bad Name": {"canary"}, "X-Bad": {"canary\r\nX-Y: z"},
		"Traceparent": {"00-1"}, "openai-beta": {"b"}, "X-Team": {"mine"}, "User-Agent": {"sdk/1"},
	}
	res, err := p.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"Authorization": {"Bearer sk-own"}, "X-Team": {"platform"}, "Openai-Organization": {"org"}, "Traceparent": {"00-1"},
		"Openai-Beta": {"b"}, "User-Agent": {"gateway/0.1 sdk/1"}, "Content-Type": {"application/json"},
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Content-Length": {"27"},
	}
	if diff := cmp.Diff(want, got.Load().Header); diff != "" {
		t.Error(diff)
	}
	if host := got.Load().Host; host != strings.TrimPrefix(server.URL, "http://") {
		t.Error(host)
	}
	if diff := cmp.Diff(http.Header{"Content-Type": {"application/json"}, "Openai-Processing-Ms": {"12"}}, res.Header); diff != "" {
		t.Error(diff)
	}
	if res.KeyFingerprint != gateway.NewSecret("sk-own").Fingerprint() || *res.Usage != (gateway.Usage{Input: 3, Output: 2}) || res.OutputBytes != 2 {
		t.Errorf("%+v", res)
	}

	p = newProvider(t, openai.Config{BaseURL: server.URL})
	if _, err := p.Do(t.Context(), plainRequest(t)); err != nil {
		t.Fatal(err)
	}
	if auth, ok := got.Load().Header["Authorization"]; ok {
		t.Errorf("without keys there is %q", auth)
	}
}

func TestErrorAnswers(t *testing.T) {
	secret := "sk-proj-canary1234567890"
	for _, test := range []struct {
		name    string
		status  int
		header  http.Header
		body    string
		want    int // the status for the caller
		code    string
		kind    error
		outcome gateway.Outcome
		param   string
		says    string
		noRetry bool
	}{
		{name: "bad request", status: 400, body: `{"error":{"message":"bad","type":"invalid_request_error","param":"messages[0]","code":"invalid_value"}}`, want: 400, code: "invalid_value", kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, param: "messages[0]", says: "bad"},
		{name: "null code and param", status: 400, body: `{"error":{"message":"bad","type":"invalid_request_error","param":null,"code":null}}`, want: 400, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "bad"},
		{name: "error is a string", status: 400, body: `{"error":"model 'x' not found, try pulling it"}`, want: 400, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "model 'x' not found"},
		{name: "code beside", status: 400, body: `{"code":"Client specified an invalid argument","error":"bad"}`, want: 400, code: "Client specified an invalid argument", kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "bad"},
		{name: "message only", status: 400, body: `{"message":"bad","id":"7"}`, want: 400, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "bad"},
		{name: "detail", status: 422, body: `{"detail":"bad"}`, want: 422, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "bad"},
		{name: "detail list", status: 422, body: `{"detail":[{"loc":["body","messages",0,"role"],"msg":"field required","type":"value_error.missing"}]}`, want: 422, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, param: "messages.0.role", says: "field required"},
		{name: "object error", status: 400, body: `{"object":"error","message":"bad","type":"BadRequestError","param":null,"code":40001}`, want: 400, code: "40001", kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "bad"},
		{name: "object error with details", status: 422, body: `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted","input":1}]},"type":"invalid_request_error","param":null,"code":null}`, want: 422, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, param: "x", says: "Extra inputs are not permitted"},
		{name: "list", status: 400, body: `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`, want: 400, code: "400", kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "bad"},
		{name: "OpenRouter", status: 400, body: `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"the true reason\"}}","provider_name":"P"}},"user_id":"u"}`, want: 400, code: "400", kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "Provider returned error: the true reason"},
		{name: "DashScope", status: 400, body: `{"code":"InvalidParameter","message":"bad","request_id":"r"}`, want: 400, code: "InvalidParameter", kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "bad"},
		{name: "text", status: 400, body: "no\nsuch thing", want: 400, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "no such thing"},
		{name: "empty", status: 400, want: 400, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "Bad Request"},
		{name: "model", status: 404, body: `{"error":{"message":"no model","code":"model_not_found"}}`, want: 404, code: "model_not_found", kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected},
		{name: "HTML 404", status: 404, body: "<html>nginx</html>", want: 404, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "upstream returned HTML, status 404"},
		{name: "too large", status: 413, body: `{"error":{"message":"too large","code":"rate_limit_exceeded"}}`, want: 413, code: "rate_limit_exceeded", kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected},
		{name: "wrong key", status: 401, body: `{"error":{"message":"Incorrect API key provided: ` + secret + `"}}`, want: 502, code: "upstream_auth", kind: gateway.ErrUpstreamAuth, outcome: gateway.OutcomeRejected, says: `"up"`},
		{name: "empty 401", status: 401, want: 502, code: "upstream_auth", kind: gateway.ErrUpstreamAuth, outcome: gateway.OutcomeRejected},
		{name: "forbidden", status: 403, body: `{"error":{"message":"Country not supported","code":"unsupported_country_region_territory"}}`, want: 502, code: "upstream_auth", kind: gateway.ErrUpstreamAuth, outcome: gateway.OutcomeRejected},
		{name: "firewall", status: 403, header: http.Header{"Content-Type": {"text/html"}}, body: "<!DOCTYPE html>Cloudflare", want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRejected, says: "upstream returned HTML, status 403"},
		{name: "no money", status: 402, body: `{"error":{"message":"Insufficient Balance"}}`, want: 502, code: "upstream_quota_exhausted", kind: gateway.ErrUpstreamQuota, outcome: gateway.OutcomeRejected},
		{name: "quota", status: 429, body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, want: 502, code: "upstream_quota_exhausted", kind: gateway.ErrUpstreamQuota, outcome: gateway.OutcomeRejected},
		{name: "no credits", status: 403, body: `{"code":"permission","error":"Your team has no credits yet. Purchase more credits"}`, want: 502, code: "upstream_quota_exhausted", kind: gateway.ErrUpstreamQuota, outcome: gateway.OutcomeRejected},
		{name: "limit", status: 429, body: `{"error":{"message":"Rate limit reached. Limit 30000 tokens per min","type":"tokens","code":"rate_limit_exceeded"}}`, want: 429, code: "upstream_rate_limited", kind: gateway.ErrUpstreamLimit, outcome: gateway.OutcomeRefused, says: `"up"`},
		{name: "request above limit", status: 429, body: `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000","type":"tokens","code":"rate_limit_exceeded"}}`, want: 429, code: "upstream_rate_limited", kind: gateway.ErrUpstreamLimit, outcome: gateway.OutcomeRefused, noRetry: true},
		{name: "server error", status: 500, body: `{"error":{"message":"oops at 10.1.2.3:8080 http://vllm.prod.svc:8000/x?key=canary"}}`, want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused, says: "oops at [address] [address]"},
		{name: "bad gateway", status: 502, body: "<html><h1>502</h1></html>", want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused, says: "upstream returned HTML, status 502"},
		{name: "unavailable", status: 503, want: 503, code: "upstream_overloaded", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused},
		{name: "gateway timeout", status: 504, want: 504, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused},
		{name: "overloaded", status: 529, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, want: 503, code: "upstream_overloaded", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused, says: "Overloaded"},
		{name: "Groq's capacity", status: 498, want: 503, code: "upstream_overloaded", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused},
		{name: "Cloudflare", status: 520, body: "<html>", want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused},
		{name: "timeout", status: 408, want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused},
		{name: "conflict", status: 409, want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused},
		{name: "too early", status: 425, want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused},
		{name: "method", status: 405, want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRejected},
		{name: "should not retry", status: 500, header: http.Header{"X-Should-Retry": {"false"}}, want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused, noRetry: true},
		{name: "secrets", status: 400, body: `{"error":{"message":"Bearer abc.def ` + secret + ` AIzaSyA1234567890123456789 \u0007\u001b[31m see https://platform.openai.com/docs?x=canary"}}`, want: 400, kind: gateway.ErrInvalidRequest, outcome: gateway.OutcomeRejected, says: "*** *** *** [31m see https://platform.openai.com/docs"},
		{name: "200 with an error", status: 200, body: `{"error":{"message":"boom","code":502}}`, want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused, says: "boom"},
		{name: "200 with a limit", status: 200, body: `{"error":{"message":"slow","code":429}}`, want: 429, code: "upstream_rate_limited", kind: gateway.ErrUpstreamLimit, outcome: gateway.OutcomeRefused},
		{name: "MiniMax", status: 200, body: `{"base_resp":{"status_code":1004,"status_msg":"login fail"}}`, want: 502, code: "upstream_error", kind: gateway.ErrUpstream, outcome: gateway.OutcomeRefused, says: "login fail"},
		{name: "filtered", status: 400, body: `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter"}}`, want: 400, code: "content_filter", kind: gateway.ErrContentFilter, outcome: gateway.OutcomeRejected},
		{name: "moderated", status: 403, body: `{"error":{"message":"Model requires moderation on OpenRouter","code":403}}`, want: 400, code: "403", kind: gateway.ErrContentFilter, outcome: gateway.OutcomeRejected},
		{name: "inspection", status: 400, body: `{"error":{"message":"x","code":"data_inspection_failed"}}`, want: 400, code: "data_inspection_failed", kind: gateway.ErrContentFilter, outcome: gateway.OutcomeRejected},
		{name: "context code", status: 400, body: `{"error":{"message":"x","code":"context_length_exceeded"}}`, want: 400, code: "context_length_exceeded", kind: gateway.ErrContextLength, outcome: gateway.OutcomeRejected},
		{name: "context Anthropic", status: 400, body: `{"error":{"message":"prompt is too long: 903884 tokens > 200000 maximum"}}`, want: 400, code: "context_length_exceeded", kind: gateway.ErrContextLength, outcome: gateway.OutcomeRejected},
		{name: "context vLLM", status: 400, body: `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","code":400}`, want: 400, code: "context_length_exceeded", kind: gateway.ErrContextLength, outcome: gateway.OutcomeRejected},
		{name: "context Gemini", status: 400, body: `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, want: 400, code: "context_length_exceeded", kind: gateway.ErrContextLength, outcome: gateway.OutcomeRejected},
		{name: "context llama.cpp", status: 400, body: `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, want: 400, code: "context_length_exceeded", kind: gateway.ErrContextLength, outcome: gateway.OutcomeRejected},
		{name: "context Bedrock", status: 400, body: `{"message":"Input is too long for requested model."}`, want: 400, code: "context_length_exceeded", kind: gateway.ErrContextLength, outcome: gateway.OutcomeRejected},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int32
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				maps.Copy(w.Header(), test.header)
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			for _, req := range []*gateway.Request{plainRequest(t), streamRequest(t)} {
				p := newProvider(t, openai.Config{BaseURL: server.URL, Keys: []gateway.Secret{gateway.NewSecret(secret)}})
				res, err := p.Do(t.Context(), req)
				if err == nil && res.Stream != nil {
					_, err = res.Stream.Next()
				}
				e := failureOf(t, err)
				if e.Status != test.want || e.Code != test.code || !errors.Is(e, test.kind) || e.Outcome != test.outcome || e.Param != test.param || e.NoRetry != test.noRetry {
					t.Errorf("got %d %q %v %s param %q NoRetry %t: %v", e.Status, e.Code, e.Kind, e.Outcome, e.Param, e.NoRetry, e)
				}
				if e.UpstreamStatus != test.status || e.Provider != "up" || e.KeyFingerprint == "" || e.Message == "" {
					t.Errorf("%+v", e)
				}
				if !strings.Contains(e.Message, test.says) {
					t.Errorf("message %q, want %q", e.Message, test.says)
				}
				if strings.Contains(e.Error(), "canary") || strings.Contains(e.Error(), "<html") {
					t.Errorf("shows too much: %v", e)
				}
			}
			if asked.Load() != 2 {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

func TestLongErrorBody(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"`+strings.Repeat("日", 1000)+`","code":"c"},"x":"`)
		for range 1000 {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<10))
		}
	})
	_, err := newProvider(t, openai.Config{BaseURL: server.URL}).Do(t.Context(), plainRequest(t))
	if e := failureOf(t, err); len(e.Message) > 510 || e.Status != 400 {
		t.Errorf("%d bytes: %v", len(e.Message), e)
	}
}

func TestLimitOfPlainAnswers(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if chunked {
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, plainAnswer)
		})
		size := int64(len(plainAnswer))
		if res, err := newProvider(t, openai.Config{BaseURL: server.URL, MaxBody: size}).Do(t.Context(), plainRequest(t)); err != nil || len(res.Body) != int(size) {
			t.Error(err)
		}
		_, err := newProvider(t, openai.Config{BaseURL: server.URL, MaxBody: size - 1}).Do(t.Context(), plainRequest(t))
		if e := failureOf(t, err); e.Code != "upstream_response_too_large" || e.Outcome != gateway.OutcomeUnknown {
			t.Error(e)
		}
	}
}

// keyServer answers by key.
func keyServer(t *testing.T, answers map[string]func(w http.ResponseWriter)) (base string, asked map[string]*atomic.Int32) {
	t.Helper()
	asked = make(map[string]*atomic.Int32)
	for key := range answers {
		asked[key] = new(atomic.Int32)
	}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		asked[key].Add(1)
		answers[key](w)
	})
	return server.URL, asked
}

func fine(w http.ResponseWriter) { _, _ = io.WriteString(w, plainAnswer) }

func refuse(status int, retryAfter, body string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestKeys(t *testing.T) {
	quota := `{"error":{"code":"insufficient_quota"}}`
	for _, test := range []struct {
		name  string
		first func(w http.ResponseWriter)
		most  int32 // how often the first key may be asked in 200 calls
		warns bool
	}{
		{"limited for long", refuse(429, "300", ""), 1, false},
		{"limited without a time", refuse(429, "", ""), 5, false},
		{"revoked", refuse(401, "", ""), 1, true},
		{"forbidden", refuse(403, "", ""), 1, true},
		{"exhausted", refuse(429, "", quota), 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			base, asked := keyServer(t, map[string]func(http.ResponseWriter){"key-one": test.first, "key-two": fine})
			var log bytes.Buffer
			p := newProvider(t, openai.Config{
				BaseURL: base, Keys: []gateway.Secret{gateway.NewSecret("key-one"), gateway.NewSecret("key-two")},
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			failed := false
			for range 200 {
				_, err := p.Do(t.Context(), plainRequest(t))
				if err == nil {
					failed = false
					continue
				}
				if e := failureOf(t, err); !e.OtherKey || failed || e.KeyFingerprint != gateway.NewSecret("key-one").Fingerprint() {
					t.Fatalf("twice in a row, or no other key: %+v", e)
				}
				failed = true
			}
			if n := asked["key-one"].Load(); n < 1 || n > test.most {
				t.Errorf("the first key was asked %d times", n)
			}
			if warned := strings.Contains(log.String(), "WARN"); warned != test.warns || strings.Contains(log.String(), "key-one") {
				t.Errorf("log: %s", log.String())
			}
			if test.warns && !strings.Contains(log.String(), gateway.NewSecret("key-one").Fingerprint()) {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

func TestNoKeyLeft(t *testing.T) {
	for _, test := range []struct {
		name    string
		answer  func(w http.ResponseWriter)
		asked   int32
		status  int
		code    string
		outcome gateway.Outcome
		wait    time.Duration
	}{
		{"limited", refuse(429, "300", ""), 1, 429, "upstream_rate_limited", gateway.OutcomeRefused, 299 * time.Second},
		{"limited without a time", refuse(429, "", ""), 5, 429, "upstream_rate_limited", gateway.OutcomeRefused, 0},
		{"revoked", refuse(401, "", ""), 1, 502, "upstream_auth", gateway.OutcomeRejected, 0},
		{"exhausted", refuse(402, "", ""), 1, 502, "upstream_quota_exhausted", gateway.OutcomeRejected, 0},
		{"too large for the limit", refuse(429, "", `{"error":{"message":"Request too large for m"}}`), 5, 429, "upstream_rate_limited", gateway.OutcomeRefused, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			base, asked := keyServer(t, map[string]func(http.ResponseWriter){"k": test.answer})
			p := newProvider(t, openai.Config{BaseURL: base, Keys: []gateway.Secret{gateway.NewSecret("k")}})
			for range 5 {
				_, err := p.Do(t.Context(), plainRequest(t))
				e := failureOf(t, err)
				if e.Status != test.status || e.Code != test.code || e.Outcome != test.outcome || e.RetryAfter < test.wait || e.OtherKey || !strings.Contains(e.Message, `"up"`) {
					t.Errorf("%+v", e)
				}
			}
			if n := asked["k"].Load(); n != test.asked {
				t.Errorf("asked %d times, want %d", n, test.asked)
			}
		})
	}
}

func Example() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path, r.Header.Get("Authorization"))
		body, _ := io.ReadAll(r.Body)
		fmt.Println(string(body))
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"Hello!"}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`)
	}))
	defer upstream.Close()

	provider, err := openai.New(openai.Config{
		Name: "cloud", BaseURL: upstream.URL, Keys: []gateway.Secret{gateway.NewSecret("sk-example")},
		Quirks: gateway.QuirksConfig{Rename: map[string]string{"max_tokens": "max_completion_tokens"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close()

	request, err := gateway.NewRequest(gateway.APIChat, []byte(`{"model": "chat", "messages": [], "max_tokens": 100}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	request.Model = "gpt-5" // a Client puts the candidate's model here
	response, err := provider.Do(context.Background(), request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.Usage.PromptTokens(), response.Usage.CompletionTokens())
	// Output:
	// /v1/chat/completions Bearer sk-example
	// {"model": "gpt-5", "messages": [], "max_completion_tokens": 100}
	// 9 2
}
