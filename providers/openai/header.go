package openai

import (
	"net/http"
	"net/textproto"
	"strings"
)

// copyHeader copies what an upstream may see of a caller's headers.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		if name = textproto.CanonicalMIMEHeaderKey(name); forwarded(name) {
			to[name] = values
		}
	}
}

// forwarded reports whether a header of the caller's may reach the upstream: no credentials, nothing that describes the
// caller's own connection, and no idempotency key, which would make net/http send a request twice.
func forwarded(name string) bool {
	switch name {
	case "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "Set-Cookie", "Host", "Content-Length",
		"Content-Encoding", "Accept-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		"Idempotency-Key", "X-Idempotency-Key", "Forwarded", "Via", "X-Real-Ip":
		return false
	}
	return !strings.HasPrefix(name, "Proxy-") && !strings.HasPrefix(name, "X-Forwarded-") &&
		!strings.HasPrefix(name, "X-Gateway-")
}

// shownHeader returns the headers of an answer that a caller may see.
func shownHeader(from http.Header) http.Header {
	to := make(http.Header, 3)
	for _, name := range [...]string{"Content-Type", "Openai-Processing-Ms", "Openai-Version"} {
		if values := from[name]; len(values) > 0 {
			to[name] = values
		}
	}
	return to
}
