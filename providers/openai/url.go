package openai

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/gatewright/gateway"
)

// endpoints returns the address of each interface below a base URL.
func endpoints(base string) (map[gateway.API]*url.URL, error) {
	if base == "" {
		return nil, errors.New("BaseURL is required, such as https://api.openai.com/v1")
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("BaseURL is not a URL") // the parser's own words repeat the text, which may hold a password
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("BaseURL must begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("BaseURL has no host")
	case u.User != nil:
		return nil, errors.New("BaseURL must not hold a user name or password: use Keys or Header")
	case u.Fragment != "":
		return nil, errors.New("BaseURL must not have a fragment")
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	for _, suffix := range []string{"/chat/completions", "/embeddings"} {
		if strings.HasSuffix(path, suffix) {
			return nil, fmt.Errorf("BaseURL must not end in %s: leave that off", suffix)
		}
	}
	if path == "" {
		path = "/v1"
	}
	join := func(suffix string) *url.URL {
		joined := *u
		joined.RawPath = path + suffix
		joined.Path, _ = url.PathUnescape(joined.RawPath) // it was parsed once already
		return &joined
	}
	return map[gateway.API]*url.URL{
		gateway.APIChat:       join("/chat/completions"),
		gateway.APIEmbeddings: join("/embeddings"),
	}, nil
}

// joinQuery appends a caller's query to the base URL's own, without what may be a credential.
func joinQuery(base, query string) string {
	if query == "" {
		return base
	}
	joined := base
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if pair == "" || !validQuery(pair) || queryCredential(name) {
			continue
		}
		if joined != "" {
			joined += "&"
		}
		joined += pair
	}
	return joined
}

func queryCredential(name string) bool {
	if unescaped, err := url.QueryUnescape(name); err == nil {
		name = unescaped
	}
	return strings.EqualFold(name, "key") || credential(name)
}

// validQuery reports whether text can stand in a request line as it is.
func validQuery(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c == 0x7F || c == '#' {
			return false
		}
	}
	return true
}
