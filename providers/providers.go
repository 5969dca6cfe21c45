// Package providers makes providers from their configuration.
package providers

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers/echo"
	"github.com/gatewright/gateway/providers/openai"
)

// Open makes the provider that c describes. Secrets are resolved now, so an error may name a variable or a file. An error
// that is about one member of c is [gateway.Problems] with that member's path.
func Open(c gateway.ProviderConfig) (gateway.Provider, error) {
	if c.Name == "" {
		return nil, errors.New("a provider needs a name")
	}
	switch c.Type {
	case "echo":
		return echo.New(c.Name), nil
	case "openai":
		return openOpenAI(c)
	case "azure", "anthropic", "gemini", "ollama", "bedrock", "vertex":
		return nil, problem("type", "the type %q is not supported by this version of the gateway", c.Type)
	default:
		return nil, problem("type", "unknown type %q; known are openai and echo", c.Type)
	}
}

func openOpenAI(c gateway.ProviderConfig) (gateway.Provider, error) {
	config := openai.Config{
		Name: c.Name, BaseURL: c.BaseURL, MaxConcurrency: c.MaxConcurrency, Quirks: c.Quirks,
		Timeouts: openai.Timeouts{
			Connect: timeout(c.Timeouts.Connect), FirstByte: timeout(c.Timeouts.FirstByte),
			Idle: timeout(c.Timeouts.Idle), Total: timeout(c.Timeouts.Total),
		},
	}
	for i, ref := range c.Keys {
		secret, err := ref.Resolve()
		if err != nil {
			return nil, problem(fmt.Sprintf("keys[%d]", i), "%s", err)
		}
		config.Keys = append(config.Keys, secret)
	}
	if len(c.Headers) > 0 {
		config.Header = make(http.Header, len(c.Headers))
		for name, value := range c.Headers {
			config.Header.Set(name, value)
		}
	}
	if c.Proxy != "" {
		proxy, err := url.Parse(c.Proxy)
		if err != nil {
			return nil, problem("proxy", "is not a URL such as http://proxy:3128")
		}
		config.Proxy = proxy
	}
	return openai.New(config)
}

func problem(path, format string, args ...any) error {
	return gateway.Problems{{Path: path, Message: fmt.Sprintf(format, args...)}}
}

// timeout translates a configured timeout: absent means the default, zero means none.
func timeout(d *gateway.Duration) time.Duration {
	switch {
	case d == nil:
		return 0
	case *d == 0:
		return -1
	default:
		return time.Duration(*d)
	}
}
