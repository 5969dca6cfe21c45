package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers/openai"
)

func TestSmoke(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		t.Log(r.URL, r.Header, string(b))
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}\n\ndata: [DONE]\n\n")
	}))
	defer srv.Close()
	p, err := openai.New(openai.Config{Name: "x", BaseURL: srv.URL, Keys: []gateway.Secret{gateway.NewSecret("sk-1")}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := gateway.NewRequest(gateway.APIChat, []byte(`{"model":"a","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range res.Stream.All() {
		t.Logf("%+v %v", e, err)
	}
}
