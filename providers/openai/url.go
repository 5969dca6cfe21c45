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
		return nil, errors.New("is required, such as https://api.openai.com/v1")
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("is not a URL") // the parser's own words repeat the text, which may hold a password
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("has no host")
	case u.User != nil:
		return nil, errors.New("must not hold a user name or password: use Keys or Header")
	case u.Fragment != "":
		return nil, errors.New("must not have a fragment")
	}
	path := strings.TrimRight(u.Path, "/")
	for _, suffix := range []string{"/chat/completions", "/embeddings"} {
		if strings.HasSuffix(path, suffix) {
			return nil, fmt.Errorf("must not end in %s: leave that off", suffix)
		}
	}
	if path == "" {
		path = "/v1"
	}
	join := func(suffix string) *url.URL {
		joined := *u
		joined.Path, joined.RawPath = path+suffix, ""
		return &joined
	}
	return map[gateway.API]*url.URL{
		gateway.APIChat:       join("/chat/completions"),
		gateway.APIEmbeddings: join("/embeddings"),
	}, nil
}

func joinQuery(base, query string) string {
	switch {
	case query == "":
		return base
	case base == "":
		return query
	default:
		return base + "&" + query
	}
}
