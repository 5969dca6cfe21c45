package providers_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers"
)

func TestOpen(t *testing.T) {
	t.Setenv("UPSTREAM_KEY", "sk-from-the-environment")
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = io.WriteString(w, `{"choices":[]}`)
	}))
	defer server.Close()
	zero, short := gateway.Duration(0), gateway.Duration(time.Second)
	p, err := providers.Open(gateway.ProviderConfig{
		Name: "cloud", Type: "openai", BaseURL: server.URL + "/api/v1", Keys: []gateway.SecretRef{gateway.NewSecretRef("env:UPSTREAM_KEY")},
		Headers: map[string]string{"x-team": "platform"}, MaxConcurrency: 7,
		Timeouts: gateway.TimeoutsConfig{Connect: &short, Idle: &zero},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.(io.Closer).Close()
	if p.Name() != "cloud" || p.(gateway.Bounded).MaxConcurrency() != 7 {
		t.Errorf("%+v", p)
	}
	req, err := gateway.NewRequest(gateway.APIEmbeddings, []byte(`{"model":"m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if got.URL.Path != "/api/v1/embeddings" || got.Header.Get("X-Team") != "platform" || got.Header.Get("Authorization") != "Bearer sk-from-the-environment" {
		t.Errorf("%s %v", got.URL, got.Header)
	}
	if p, err := providers.Open(gateway.ProviderConfig{Name: "demo", Type: "echo"}); err != nil || p.Name() != "demo" {
		t.Error(err)
	}
}

func TestOpenErrors(t *testing.T) {
	for _, test := range []struct {
		config gateway.ProviderConfig
		says   []string
	}{
		{gateway.ProviderConfig{Name: "a", Type: "foo"}, []string{"type: ", `"foo"`, "openai", "echo"}},
		{gateway.ProviderConfig{Name: "a"}, []string{"type: ", "openai", "echo"}},
		{gateway.ProviderConfig{Name: "a", Type: "anthropic"}, []string{"not supported by this version"}},
		{gateway.ProviderConfig{Name: "a", Type: "openai"}, []string{`"a"`, "BaseURL is required"}},
		{gateway.ProviderConfig{Type: "echo"}, []string{"name"}},
		{gateway.ProviderConfig{Name: "a", Type: "openai", BaseURL: "http://h", Keys: []gateway.SecretRef{gateway.NewSecretRef("env:NOT_SET_AT_ALL")}}, []string{"keys[0]", "NOT_SET_AT_ALL"}},
		{gateway.ProviderConfig{Name: "a", Type: "openai", BaseURL: "http://h", Proxy: "http://u:canary%zz@h"}, []string{"proxy"}},
		{gateway.ProviderConfig{Name: "a", Type: "openai", BaseURL: "http://h", Proxy: "just text"}, []string{"Proxy"}},
	} {
		_, err := providers.Open(test.config)
		if err == nil {
			t.Errorf("%+v: no error", test.config)
			continue
		}
		for _, want := range test.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%v shows a password", err)
		}
	}
}

func ExampleOpen() {
	p, err := providers.Open(gateway.ProviderConfig{Name: "demo", Type: "echo"})
	fmt.Println(p.Name(), err)
	_, err = providers.Open(gateway.ProviderConfig{Name: "cloud", Type: "opanai"})
	fmt.Println(err)
	// Output:
	// demo <nil>
	// type: unknown type "opanai"; known are openai and echo
}
