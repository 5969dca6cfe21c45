package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/examples/openaihttp"
)

// keyVariable holds the gateway key when no configuration has one.
const keyVariable = "GATEWAY_API_KEY"

// ownKey is a gateway key that no configuration has: from the environment, or made for this run.
type ownKey struct {
	secret string
	shown  string // what to write for it in a shell's line
}

// keyFromEnvironment returns the key that the environment holds, if it does. It is never printed.
func keyFromEnvironment(sys system) (ownKey, bool) {
	secret := variable(sys, keyVariable)
	return ownKey{secret, "$" + keyVariable}, secret != ""
}

// newKey makes a random key.
func newKey() ownKey {
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // never fails
	secret := "gw-" + base64.RawURLEncoding.EncodeToString(raw[:])
	return ownKey{secret, secret}
}

func (k ownKey) option() openaihttp.Option {
	return openaihttp.WithKeys(openaihttp.Key{Name: "master", Hash: openaihttp.HashKey(k.secret), Admin: true})
}

// greet prints where the gateway is, and lines that make a first call of a model with the key.
func greet(w io.Writer, base, model string, key *ownKey) {
	var text strings.Builder // printed at once
	fmt.Fprintf(&text, "\nGateway serves OpenAI's interface on %s/v1\n", base)
	if key != nil && model != "" {
		if key.shown == key.secret {
			fmt.Fprintf(&text, "Key for this run: %s\n", key.secret)
		}
		quoted, _ := jsontext.AppendQuote(nil, model) // a configuration is valid UTF-8
		name := strings.ReplaceAll(string(quoted), "'", `'\''`)
		text.WriteString("\nTry, plain and streamed:\n\n")
		for _, c := range [...]struct{ flag, member string }{{"", ""}, {" -N", `"stream":true,`}} {
			fmt.Fprintf(&text, `curl%s %s/v1/chat/completions -H "Authorization: Bearer %s" -H "Content-Type: application/json" `+
				`-d '{"model":%s,%s"messages":[{"role":"user","content":"Hello, gateway"}]}'`+"\n\n",
				c.flag, base, key.shown, name, c.member)
		}
	}
	_, _ = io.WriteString(w, text.String())
}
