package openaihttp_test

import (
	"bytes"
	"compress/gzip"
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
)

// api is a gateway over HTTP whose one upstream plays a script.
type api struct {
	*httptest.Server

	client   *gateway.Client
	provider *gatewaytest.Provider
	records  chan *gateway.Record
	log      *bytes.Buffer
}

func newAPI(t *testing.T, options []openaihttp.Option, steps ...gateway.Handler) *api {
	t.Helper()
	a := &api{
		provider: gatewaytest.NewProvider("cloud", steps...), records: make(chan *gateway.Record, 1000), log: new(bytes.Buffer),
	}
	candidates := []gateway.Candidate{{
		Provider: "cloud", Model: "real-model",
		Price: &gateway.Price{Input: gateway.USD("2"), Output: gateway.USD("8")},
	}}
	logger := slog.New(slog.NewTextHandler(a.log, nil))
	var err error
	a.client, err = gateway.New(
		gateway.WithProvider(a.provider), gateway.WithLogger(logger),
		gateway.WithAlias(
			gateway.Alias{Name: "chat-smart", Candidates: candidates, Retry: gateway.DefaultRetryPolicy{}},
			gateway.Alias{Name: "org/m:7b", Candidates: candidates},
			gateway.Alias{Name: "a.b c", Candidates: candidates},
		),
		gateway.WithRecorder(gateway.RecorderFunc(func(_ context.Context, r *gateway.Record) { a.records <- r })))
	if err != nil {
		t.Fatal(err)
	}
	options = append([]openaihttp.Option{
		openaihttp.WithLogger(logger),
		openaihttp.WithKeys(
			openaihttp.Key{Name: "user", Hash: openaihttp.HashKey("user-key"), App: "helpdesk"},
			openaihttp.Key{Name: "admin", Hash: openaihttp.HashKey("admin-key"), Admin: true},
			openaihttp.Key{Name: "narrow", Hash: openaihttp.HashKey("narrow-key"), Models: []string{"a.*"}},
			openaihttp.Key{Name: "empty", Hash: openaihttp.HashKey("")},
		),
	}, options...)
	a.Server = httptest.NewServer(openaihttp.New(a.client, options...))
	t.Cleanup(func() {
		a.Close()
		if err := a.client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return a
}

type result struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
}

func (a *api) do(t *testing.T, method, path, body string, header ...string) result {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, a.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer user-key")
	for i := 0; i < len(header); i += 2 {
		req.Header.Del(header[i])
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	res, err := a.Client().Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return result{res.StatusCode, res.Header, string(text), res.Trailer}
}

const (
	chatPath   = "/v1/chat/completions"
	chatBody   = `{"model":"chat-smart","messages":[{"role":"user","content":"hello"}]}`
	streamBody = `{"model":"chat-smart","stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

func TestPlainCall(t *testing.T) {
	const document = `{"id":"x",  "choices":[{"message":{"content":"a<b"}}],"big":9007199254740993}`
	a := newAPI(t, nil, gatewaytest.AnswerJSON(document))
	got := a.do(t, "POST", chatPath+"?api-version=1&api_key=SECRET&key=SECRET&x=a%20b", chatBody,
		"X-Request-ID", "my-id.1", "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"X-Api-Key", "", "Cookie", "c=SECRET", "X-Forwarded-For", "10.0.0.1", "X-Goog-Api-Key", "SECRET",
		"OpenAI-Beta", "assistants=v2", "Idempotency-Key", "k", "X-Custom", "SECRET")
	if got.status != 200 || got.body != document {
		t.Errorf("%d %s, want 200 and the upstream's document as it is", got.status, got.body)
	}
	want := map[string]string{
		"Content-Type": "application/json", "X-Gateway-Trace-Id": "my-id.1", "X-Request-Id": "my-id.1", "Request-Id": "my-id.1",
		"X-Gateway-Provider": "cloud", "X-Gateway-Model": "real-model", "X-Gateway-Attempts": "1", "X-Gateway-Latency-Ms": "0",
		"X-Gateway-Cost-Usd": "", "Content-Length": "77",
	}
	have := map[string]string{}
	for name := range want {
		have[name] = got.header.Get(name)
	}
	have["X-Gateway-Latency-Ms"] = "0"
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	req := a.provider.Requests()[0]
	if string(req.Body) != chatBody || req.Model != "real-model" || req.Query != "api-version=1&x=a%20b" {
		t.Errorf("the upstream got %s for %s with query %q", req.Body, req.Model, req.Query)
	}
	if diff := cmp.Diff(gateway.Caller{KeyID: "user", App: "helpdesk"}, req.Caller); diff != "" {
		t.Errorf("caller (-want +got):\n%s", diff)
	}
	names := map[string]string{}
	for name, values := range req.Header {
		names[name] = values[0]
	}
	if diff := cmp.Diff(map[string]string{
		"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Openai-Beta": "assistants=v2",
	}, names); diff != "" {
		t.Errorf("header for the upstream (-want +got):\n%s", diff)
	}
}

func TestCostHeader(t *testing.T) {
	a := newAPI(t, nil, gatewaytest.Answer("hi").WithUsage(gateway.Usage{Input: 100, Output: 50}))
	if got := a.do(t, "POST", chatPath, chatBody); got.header.Get("X-Gateway-Cost-USD") != "0.000600" {
		t.Errorf("cost %q, want 0.000600", got.header.Get("X-Gateway-Cost-USD"))
	}
	got := a.do(t, "POST", chatPath, streamBody)
	want := http.Header{
		"X-Gateway-Cost-Usd": {"0.000600"}, "X-Gateway-Prompt-Tokens": {"100"}, "X-Gateway-Completion-Tokens": {"50"},
		"X-Gateway-Outcome": {"success"},
	}
	if diff := cmp.Diff(want, got.trailer); diff != "" {
		t.Errorf("trailer (-want +got):\n%s", diff)
	}
}

func TestTraceIDs(t *testing.T) {
	a := newAPI(t, nil)
	tests := []struct{ requestID, traceparent, want string }{
		{"abc-1", "", "abc-1"},
		{"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"two words", "", "generated"},
		{strings.Repeat("a", 129), "", "generated"},
		{"", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "generated"},
		{"", "nonsense", "generated"},
		{"", "", "generated"},
	}
	for _, test := range tests {
		for _, body := range []string{chatBody, `{"model":"unknown"}`, streamBody} {
			got := a.do(t, "POST", chatPath, body, "X-Request-ID", test.requestID, "Traceparent", test.traceparent)
			id := got.header.Get("X-Gateway-Trace-ID")
			if test.want == "generated" && len(id) == 32 && id != test.requestID {
				continue
			}
			if id != test.want || got.header.Get("x-request-id") != id || got.header.Get("request-id") != id {
				t.Errorf("%q and %q: trace id %q, want %s", test.requestID, test.traceparent, id, test.want)
			}
		}
	}
}

func TestRoutes(t *testing.T) {
	a := newAPI(t, nil)
	tests := []struct {
		method, path, key string
		status            int
		want              string // part of the body
	}{
		{"GET", "/health", "", 200, `{"status":"ok","models":["chat-smart","org/m:7b","a.b c"]}`},
		{"GET", "/ready", "", 200, `{"status":"ready"}`},
		{"GET", "/v1/models", "user-key", 200, `{"object":"list","data":[{"id":"chat-smart","object":"model","created":`},
		{"HEAD", "/v1/models", "user-key", 200, ``},
		{"GET", "/v1/models/chat-smart", "user-key", 200, `{"id":"chat-smart"`},
		{"GET", "/v1/models/org/m:7b", "user-key", 200, `{"id":"org/m:7b"`},
		{"GET", "/v1/models/org%2Fm%3A7b", "user-key", 200, `{"id":"org/m:7b"`},
		{"GET", "/v1/models/a.b%20c", "narrow-key", 200, `{"id":"a.b c"`},
		{"GET", "/v1/models/chat-smart", "narrow-key", 404, `"code":"model_not_found"`},
		{"GET", "/v1/models/nothing", "user-key", 404, `"code":"model_not_found"`},
		{"GET", "/v1/models", "", 401, `"code":"invalid_api_key"`},
		{"POST", "/v1/models", "user-key", 405, `"code":"method_not_allowed"`},
		{"GET", chatPath, "user-key", 405, `"code":"method_not_allowed"`},
		{"GET", "/", "user-key", 404, `"code":"not_found"`},
		{"POST", "/v1/chat", "user-key", 404, `"code":"not_found"`},
		{"POST", "/v1/chat/completions/x", "user-key", 404, `"code":"not_found"`},
		{"GET", "/admin/stats", "admin-key", 200, `"aliases":{"a.b c":`},
		{"GET", "/admin/stats", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "/admin/stats", "", 401, `"code":"invalid_api_key"`},
		{"POST", "/admin/explain", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "//admin/stats", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "/admin/../admin/stats", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "/v1/../admin/stats", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "/ADMIN/stats", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "/admin/stats/", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "/%61dmin/stats", "user-key", 403, `"code":"admin_key_required"`},
		{"DELETE", "/admin", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "/admin/anything", "user-key", 403, `"code":"admin_key_required"`},
		{"GET", "/admin/anything", "admin-key", 404, `"code":"not_found"`},
	}
	for _, test := range tests {
		key := test.key
		if key != "" {
			key = "Bearer " + key
		}
		got := a.do(t, test.method, test.path, "", "Authorization", key)
		if got.status != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s %s as %q: %d %s, want %d %s", test.method, test.path, test.key, got.status, got.body, test.status, test.want)
		}
		if got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: content type %q", test.method, test.path, got.header.Get("Content-Type"))
		}
		if allow := got.header.Get("Allow"); (allow == "") == (got.status == 405) {
			t.Errorf("%s %s: %d with Allow %q", test.method, test.path, got.status, allow)
		}
	}
}

func TestCredentials(t *testing.T) {
	a := newAPI(t, nil)
	tests := []struct {
		name   string
		header http.Header
		status int
	}{
		{"bearer", http.Header{"Authorization": {"Bearer user-key"}}, 200},
		{"lower case", http.Header{"Authorization": {"bearer user-key"}}, 200},
		{"upper case", http.Header{"Authorization": {"BEARER user-key"}}, 200},
		{"two spaces", http.Header{"Authorization": {"Bearer  user-key"}}, 200},
		{"x-api-key", http.Header{"X-Api-Key": {"user-key"}}, 200},
		{"api-key", http.Header{"Api-Key": {"user-key"}}, 200},
		{"none", http.Header{}, 401},
		{"no token", http.Header{"Authorization": {"Bearer"}}, 401},
		{"empty token", http.Header{"Authorization": {"Bearer "}}, 401},
		{"empty x-api-key", http.Header{"X-Api-Key": {""}}, 401},
		{"basic", http.Header{"Authorization": {"Basic user-key"}}, 401},
		{"bare", http.Header{"Authorization": {"user-key"}}, 401},
		{"two headers", http.Header{"Authorization": {"Bearer user-key", "Bearer user-key"}}, 401},
		{"longer", http.Header{"Authorization": {"Bearer user-keyX"}}, 401},
		{"shorter", http.Header{"Authorization": {"Bearer user-ke"}}, 401},
		{"bearer twice", http.Header{"Authorization": {"Bearer Bearer user-key"}}, 401},
		{"hash", http.Header{"Authorization": {"Bearer e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}, 401},
		{"injection", http.Header{"Authorization": {"Bearer x' OR '1'='1"}}, 401},
		{"someone else's", http.Header{"Authorization": {"Bearer sk-proj-SECRETVALUE123"}}, 401},
		{"both kinds", http.Header{"X-Api-Key": {"user-key"}, "Api-Key": {"other"}}, 401},
	}
	bodies := map[string]bool{}
	for _, test := range tests {
		req, err := http.NewRequestWithContext(t.Context(), "POST", a.URL+chatPath, strings.NewReader(chatBody))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = test.header
		res, err := a.Client().Do(req)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != test.status {
			t.Errorf("%s: %d, want %d", test.name, res.StatusCode, test.status)
		}
		if res.StatusCode == 401 {
			bodies[string(text)] = true
			if res.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: no WWW-Authenticate", test.name)
			}
		}
		if strings.Contains(string(text)+a.log.String(), "SECRETVALUE") {
			t.Errorf("%s: the key is repeated: %s\n%s", test.name, text, a.log)
		}
	}
	if len(bodies) != 1 {
		t.Errorf("refusals differ: %v", bodies)
	}
}

func TestWithoutKeysNothingIsOpen(t *testing.T) {
	client, err := gateway.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range [][]openaihttp.Option{nil, {openaihttp.WithKeys(openaihttp.Key{Hash: openaihttp.HashKey("")})}} {
		handler := openaihttp.New(client, options...)
		for path, want := range map[string]int{
			"/health": 200, "/ready": 200, "/v1/models": 503, chatPath: 503, "/admin/stats": 503, "/x": 503,
		} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
			if w.Code != want || want == 503 && !strings.Contains(w.Body.String(), `"code":"gateway_not_configured"`) {
				t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
			}
		}
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func TestBodies(t *testing.T) {
	a := newAPI(t, []openaihttp.Option{openaihttp.WithMaxBody(1000)})
	large := `{"model":"chat-smart","x":"` + strings.Repeat("x", 1000) + `"}`
	tests := []struct {
		name, body string
		header     []string
		status     int
		want       string
	}{
		{"JSON", chatBody, []string{"Content-Type", "application/json"}, 200, ""},
		{"JSON with charset", chatBody, []string{"Content-Type", "application/json; charset=utf-8"}, 200, ""},
		{"no content type", chatBody, []string{"Content-Type", ""}, 200, ""},
		{"form", chatBody, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, `"code":"unsupported_media_type"`},
		{"gzip", zipped(chatBody), []string{"Content-Encoding", "gzip"}, 200, ""},
		{"gzip of something large", zipped(large), []string{"Content-Encoding", "gzip"}, 413, "larger than 1000 bytes"},
		{"not gzip", chatBody, []string{"Content-Encoding", "gzip"}, 400, `"code":"invalid_body"`},
		{"br", chatBody, []string{"Content-Encoding", "br"}, 415, `content encoding \"br\" is not supported`},
		{"too large", large, nil, 413, `"code":"request_too_large"`},
		{"empty", "", nil, 400, "the document is empty"},
		{"malformed", `{"model":"chat-smart",}`, nil, 400, "(byte 22"},
		{"duplicate", `{"model":"a","model":"b"}`, nil, 400, "duplicate object member name (byte 13, at /model)"},
		{"no model", `{}`, nil, 400, `"param":"model"`},
		{"unknown model", `{"model":"real-model"}`, nil, 404, `"code":"model_not_found"`},
	}
	for _, test := range tests {
		got := a.do(t, "POST", chatPath, test.body, test.header...)
		if got.status != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s: %d %s, want %d %s", test.name, got.status, got.body, test.status, test.want)
		}
		if got.status != 200 && !strings.HasPrefix(got.body, `{"error":{"message":"`) {
			t.Errorf("%s: the error has another form: %s", test.name, got.body)
		}
	}
	bomb := zipped(strings.Repeat("\x00", 64<<20))
	if got := a.do(t, "POST", chatPath, bomb, "Content-Encoding", "gzip"); got.status != 413 {
		t.Errorf("a bomb: %d %s", got.status, got.body)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", a.URL+chatPath, io.MultiReader(strings.NewReader(large))) // chunked
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer user-key")
	res, err := a.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("too large, chunked: %d", res.StatusCode)
	}
	if n := a.provider.Calls(); n != 4 {
		t.Errorf("%d calls reached the upstream, want the 4 good ones", n)
	}
}

func TestErrorsTellTheCaller(t *testing.T) {
	tests := []struct {
		step   gateway.Handler
		status int
		want   string
		header map[string]string
	}{
		{
			gatewaytest.Status(429).WithRetryAfter("1.5"), 429, `"type":"rate_limit_error","param":null,"code":"`,
			map[string]string{"Retry-After": "2", "Retry-After-Ms": "1500", "X-Should-Retry": "false", "X-Gateway-Provider": "cloud", "X-Gateway-Attempts": "1"},
		},
		{gatewaytest.Fail(&gateway.Error{Kind: gateway.ErrContextLength, Status: 400, Code: "context_length_exceeded", Message: "too\nlong <b>", Outcome: gateway.OutcomeRejected}), 400, `{"error":{"message":"too\nlong <b>","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}`, nil},
		{gatewaytest.Panic("boom SECRET"), 500, `"code":"internal_error"`, nil},
	}
	for _, test := range tests {
		for _, body := range []string{chatBody, streamBody} {
			a := newAPI(t, nil, test.step)
			got := a.do(t, "POST", chatPath, body)
			if got.status != test.status || !strings.Contains(got.body, test.want) || strings.Contains(got.body, "SECRET") {
				t.Errorf("%d %s, want %d %s", got.status, got.body, test.status, test.want)
			}
			for name, value := range test.header {
				if got.header.Get(name) != value {
					t.Errorf("%s is %q, want %q", name, got.header.Get(name), value)
				}
			}
		}
	}
}

func TestExplainSendsNothing(t *testing.T) {
	a := newAPI(t, nil)
	got := a.do(t, "POST", "/admin/explain", chatBody, "Authorization", "Bearer admin-key")
	if got.status != 200 || !strings.Contains(got.body, `"model":"chat-smart","candidates":[{"provider":"cloud","model":"real-model","usable":true`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if a.provider.Calls() != 0 {
		t.Error("the upstream was called")
	}
}

func TestCORS(t *testing.T) {
	a := newAPI(t, []openaihttp.Option{openaihttp.WithCORS("https://app.example.com")})
	const allowed, other = "https://app.example.com", "https://evil.example.com"
	preflight := a.do(t, "OPTIONS", chatPath, "", "Authorization", "", "Origin", allowed,
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-stainless-lang")
	if preflight.status != 204 || preflight.header.Get("Access-Control-Allow-Headers") != "authorization,content-type,x-stainless-lang" {
		t.Errorf("preflight: %d %v", preflight.status, preflight.header)
	}
	tests := []struct {
		path, origin, key string
		want              string
		status            int
	}{
		{chatPath, allowed, "Bearer user-key", allowed, 200},
		{chatPath, allowed, "", allowed, 401},
		{chatPath, other, "Bearer user-key", "", 200},
		{"/admin/stats", allowed, "Bearer admin-key", "", 405},
	}
	for _, test := range tests {
		got := a.do(t, "POST", test.path, chatBody, "Origin", test.origin, "Authorization", test.key)
		if got.status != test.status || got.header.Get("Access-Control-Allow-Origin") != test.want {
			t.Errorf("%s from %s: %d, %q", test.path, test.origin, got.status, got.header.Get("Access-Control-Allow-Origin"))
		}
	}
	closed := newAPI(t, nil)
	if got := closed.do(t, "OPTIONS", chatPath, "", "Origin", allowed); got.header.Get("Access-Control-Allow-Origin") != "" || got.status != 405 {
		t.Errorf("without CORS: %d %v", got.status, got.header)
	}
}

func TestNotReadyWhileDraining(t *testing.T) {
	a := newAPI(t, nil)
	if err := a.client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/ready", chatPath} {
		method := "GET"
		if path == chatPath {
			method = "POST"
		}
		got := a.do(t, method, path, chatBody)
		if got.status != 503 || !strings.Contains(got.body, `"code":"gateway_closed"`) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
