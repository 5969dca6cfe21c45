package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway"
)

func TestSecretsDoNotPrint(t *testing.T) {
	const text = "sk-SECRETVALUE"
	secret, ref := gateway.NewSecret(text), gateway.NewSecretRef(text)
	type holder struct {
		Secret gateway.Secret
		Ref    gateway.SecretRef
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+verb, secret, &secret, ref, holder{secret, ref})
	}
	document, err := json.Marshal(holder{secret, ref})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(document)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", secret, "ref", ref, "holder", holder{secret, ref})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", secret, "ref", ref, "holder", holder{secret, ref})
	fmt.Fprint(&out, fmt.Errorf("wrapped: %v %w", secret, &gateway.Error{Message: ref.String()}))
	hex := fmt.Sprintf("%x", text)
	for _, leak := range []string{"SECRETVALUE", hex, strings.ToUpper(hex), "83 69 67"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is printed:\n%s", leak, out.String())
		}
	}
	if secret.Reveal() != text {
		t.Errorf("Reveal: %q", secret.Reveal())
	}
	if f := secret.Fingerprint(); len(f) != 8 || f == gateway.NewSecret("other").Fingerprint() {
		t.Errorf("fingerprint %q", f)
	}
}

func TestSecretRefNamesItsPlace(t *testing.T) {
	for ref, want := range map[string]string{
		"env:NAME": "env:NAME", "file:/run/key": "file:/run/key", "sk-text": "***", "": "",
	} {
		if got := gateway.NewSecretRef(ref).String(); got != want {
			t.Errorf("%q prints as %q, want %q", ref, got, want)
		}
	}
}
