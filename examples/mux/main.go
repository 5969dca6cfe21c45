// Mux mounts the gateway in a server that has other routes, under a prefix.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/examples/openaihttp"
	"github.com/gatewright/gateway/providers/echo"
)

func main() {
	mux, err := newMux("secret")
	if err != nil {
		fail(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Println(`try: curl 127.0.0.1:8080/llm/v1/chat/completions -H "Authorization: Bearer secret" ` +
		`-H "Content-Type: application/json" ` +
		`-d '{"model":"demo","messages":[{"role":"user","content":"hello"}]}'`)
	fail(server.ListenAndServe())
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "mux:", err)
	os.Exit(1)
}

func newMux(key string) (*http.ServeMux, error) {
	client, err := gateway.New(
		gateway.WithProvider(echo.New("local")),
		gateway.WithAlias(gateway.Alias{
			Name:       "demo",
			Candidates: []gateway.Candidate{{Provider: "local", Model: "echo"}},
		}),
	)
	if err != nil {
		return nil, err
	}
	handler := openaihttp.New(client, openaihttp.WithKeys(openaihttp.Key{Name: "me", Hash: openaihttp.HashKey(key)}))
	mux := http.NewServeMux()
	mux.Handle("/llm/", http.StripPrefix("/llm", handler))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("the rest of your service\n"))
	})
	return mux, nil
}
