package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMux(t *testing.T) {
	mux, err := newMux("secret")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, test := range []struct{ path, key, want string }{
		{"/", "", "the rest of your service\n"},
		{"/llm/health", "", `{"status":"ok","models":["demo"]}`},
		{"/llm/v1/chat/completions", "secret", `"content":"hello"`},
		{"/llm/v1/chat/completions", "wrong", `"code":"invalid_api_key"`},
		{"/llm/nowhere", "secret", `"code":"not_found"`},
	} {
		method, body := http.MethodGet, ""
		if strings.HasSuffix(test.path, "completions") {
			method, body = http.MethodPost, `{"model":"demo","messages":[{"role":"user","content":"hello"}]}`
		}
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+test.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+test.key)
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(got), test.want) {
			t.Errorf("%s: %s (%v), want %s", test.path, got, err, test.want)
		}
	}
}
