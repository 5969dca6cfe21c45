package openai

import (
	"net/http"
	"net/textproto"
	"strings"
)

const agent = "gateway/0.1"

// userAgent names the gateway, and after it the caller's own software.
func userAgent(from http.Header) []string {
	if caller := from.Get("User-Agent"); caller != "" && validValue(caller) {
		return []string{agent + " " + caller}
	}
	return agentValues
}

// copyHeader copies what an upstream may see of a caller's headers.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		if !validName(name) || !forwarded(textproto.CanonicalMIMEHeaderKey(name)) {
			continue
		}
		for _, value := range values {
			if validValue(value) {
				to.Add(name, value)
			}
		}
	}
}

// forwarded reports whether a header of the caller's may reach the upstream: no credentials, nothing that describes the
// caller's own connection, and no idempotency key, with which some transports send a request twice.
func forwarded(name string) bool {
	switch name {
	case "Host", "Content-Length", "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding", "User-Agent",
		"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		"Idempotency-Key", "X-Idempotency-Key", "Forwarded", "Via", "X-Real-Ip", "Origin", "Referer":
		return false
	}
	for _, prefix := range [...]string{"Proxy-", "X-Forwarded-", "X-Gateway-", "Cf-", "Sec-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return !credential(name)
}

// credential reports whether a header or query member may hold a credential, going by its name.
func credential(name string) bool {
	name = strings.ToLower(name)
	for _, part := range [...]string{"auth", "api-key", "api_key", "apikey", "token", "secret", "cookie", "passw", "session", "credential"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// canonical returns a copy with the names as net/http writes them.
func canonical(from http.Header) http.Header {
	to := make(http.Header, len(from))
	for name, values := range from {
		for _, value := range values {
			to.Add(name, value)
		}
	}
	return to
}

func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7F || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

func validValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7F {
			return false
		}
	}
	return true
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
