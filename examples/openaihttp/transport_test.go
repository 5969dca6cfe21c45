package openaihttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/examples/openaihttp"
	"github.com/gatewright/gateway/gatewaytest"
	"github.com/gatewright/gateway/providers/echo"
)

func inProcess(t *testing.T, steps ...gateway.Handler) (*http.Client, *gatewaytest.Provider, *gateway.Client) {
	t.Helper()
	a := newAPI(t, nil, steps...)
	return &http.Client{Transport: openaihttp.Transport(a.client)}, a.provider, a.client
}

func send(t *testing.T, ctx context.Context, c *http.Client, method, url, body string) (*http.Response, error) { //nolint:revive // t first reads better
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer whatever")
	return c.Do(req)
}

func TestTransport(t *testing.T) {
	client, _, _ := inProcess(t, gatewaytest.Stream("one", "two").WithUsage(gateway.Usage{Input: 100, Output: 50}))
	tests := []struct {
		method, url, body string
		status            int
		want              string
	}{
		{"POST", "http://gateway/v1/chat/completions", chatBody, 200, `"content":"onetwo"`},
		{"POST", "https://any.host/prefix/v1/chat/completions", streamBody, 200, "data: [DONE]\n\n"},
		{"POST", "http://gateway/v1/chat/completions", `{"model":"x"}`, 404, `"code":"model_not_found"`},
		{"POST", "http://gateway/v1/chat/completions", `{`, 400, `"code":"invalid_json"`},
		{"GET", "http://gateway/v1/models/org%2Fm%3A7b", "", 200, `"id":"org/m:7b"`},
		{"GET", "http://gateway/nothing", "", 404, `"code":"not_found"`},
	}
	for _, test := range tests {
		res, err := send(t, t.Context(), client, test.method, test.url, test.body)
		if err != nil {
			t.Fatalf("%s: %v", test.url, err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != test.status || !strings.Contains(string(got), test.want) {
			t.Errorf("%s %s: %d %s (%v), want %d %s", test.url, test.body, res.StatusCode, got, err, test.status, test.want)
		}
		if test.body == streamBody && res.Trailer.Get("X-Gateway-Cost-USD") != "0.000600" {
			t.Errorf("trailer %v", res.Trailer)
		}
	}
}

func TestTransportHonoursTheContext(t *testing.T) {
	client, provider, gw := inProcess(t, gatewaytest.Hang(), gatewaytest.Stream("one").ThenHang())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = provider.Await(t.Context(), 1, 1)
		cancel()
	}()
	if _, err := send(t, ctx, client, "POST", "http://gateway/v1/chat/completions", chatBody); !errors.Is(err, context.Canceled) {
		t.Errorf("a plain call: %v, want context.Canceled", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	res, err := send(t, ctx, client, "POST", "http://gateway/v1/chat/completions", streamBody)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if body, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) && strings.Contains(string(body), "[DONE]") {
		t.Errorf("a stream whose caller left: %s (%v)", body, err)
	}
	res.Body.Close()
	if n := gw.Stats().InFlight; n != 0 {
		t.Errorf("%d calls in flight", n)
	}
}

func ExampleTransport() {
	client, err := gateway.New(
		gateway.WithProvider(echo.New("local")),
		gateway.WithAlias(gateway.Alias{Name: "demo", Candidates: []gateway.Candidate{{Provider: "local", Model: "echo"}}}))
	if err != nil {
		panic(err)
	}
	sdk := &http.Client{Transport: openaihttp.Transport(client)} // what an SDK takes as its HTTP client
	res, err := sdk.Post("http://gateway/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"demo","messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	fmt.Println(res.Status, res.Header.Get("X-Gateway-Provider"))
	// Output: 200 OK local
}
