package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
)

// Secret is a key or token that does not print: fmt, JSON and slog show *** in its place. Reveal returns the text.
type Secret struct{ text string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text itself. Use it where the secret is sent, and nowhere else.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// Fingerprint names the secret without revealing it: the first eight hexadecimal digits of its SHA-256.
func (s Secret) Fingerprint() string {
	if s.text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s.text))
	return hex.EncodeToString(sum[:4])
}

const redacted = "***"

// String returns ***.
func (s Secret) String() string { return redacted }

// Format writes ***, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText returns ***.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns ***.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
