package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway"
)

// knownProvider is a provider that is found by its usual key variable.
type knownProvider struct {
	name   string
	keys   []string // the variables that may hold its key
	base   string   // unless NAME_BASE_URL says otherwise
	quirks gateway.QuirksConfig
}

// known are the providers whose interface is OpenAI's.
//
//nolint:gochecknoglobals // a table that never changes
var known = []knownProvider{
	{name: "openai", keys: []string{"OPENAI_API_KEY"}, base: "https://api.openai.com/v1"},
	{name: "gemini", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, base: "https://generativelanguage.googleapis.com/v1beta/openai"},
	{name: "deepseek", keys: []string{"DEEPSEEK_API_KEY"}, base: "https://api.deepseek.com/v1"},
	{
		name: "mistral", keys: []string{"MISTRAL_API_KEY"}, base: "https://api.mistral.ai/v1",
		// It refuses members that it does not know, has other names for these, and reports usage without being asked.
		quirks: gateway.QuirksConfig{
			NoIncludeUsage: true, Rename: map[string]string{"max_completion_tokens": "max_tokens", "seed": "random_seed"},
		},
	},
	{name: "groq", keys: []string{"GROQ_API_KEY"}, base: "https://api.groq.com/openai/v1"},
	{name: "xai", keys: []string{"XAI_API_KEY"}, base: "https://api.x.ai/v1"},
	{name: "together", keys: []string{"TOGETHER_API_KEY"}, base: "https://api.together.xyz/v1"},
	{name: "openrouter", keys: []string{"OPENROUTER_API_KEY"}, base: "https://openrouter.ai/api/v1"},
	{name: "cerebras", keys: []string{"CEREBRAS_API_KEY"}, base: "https://api.cerebras.ai/v1"},
	{name: "fireworks", keys: []string{"FIREWORKS_API_KEY"}, base: "https://api.fireworks.ai/inference/v1"},
	{name: "moonshot", keys: []string{"MOONSHOT_API_KEY"}, base: "https://api.moonshot.ai/v1"},
	{name: "dashscope", keys: []string{"DASHSCOPE_API_KEY"}, base: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"},
}

const probeTimeout = 3 * time.Second

// found is a provider that is there, or what to say of one that is not.
type found struct {
	provider gateway.ProviderConfig
	models   []string
	note     string
}

// detect makes a configuration of what it finds. A provider's aliases are the models that it lists, under its name:
// openai/gpt-4o. Nothing is guessed, and nothing is asked that costs money.
func detect(ctx context.Context, sys system) (gateway.Config, []string) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	results := make([]found, len(known)+1)
	var wg sync.WaitGroup
	for i, k := range known {
		wg.Go(func() { results[i] = k.look(ctx, sys) })
	}
	wg.Go(func() { results[len(known)] = lookForOllama(ctx, sys) })
	wg.Wait()

	config := gateway.Config{
		Providers: []gateway.ProviderConfig{{Name: "echo", Type: "echo"}},
		Models: []gateway.ModelConfig{{
			Alias: "demo", Candidates: []gateway.CandidateConfig{{
				Provider: "echo", Model: "echo", Price: &gateway.Price{Input: gateway.USD("0"), Output: gateway.USD("0")},
			}},
		}},
	}
	notes := []string{"demo: answers offline and repeats what you say"}
	for _, f := range results {
		if f.note != "" {
			notes = append(notes, f.note)
		}
		if len(f.models) == 0 {
			continue
		}
		aliases := f.aliases()
		config.Providers = append(config.Providers, f.provider)
		config.Models = append(config.Models, aliases...)
		notes = append(notes, fmt.Sprintf("%s: %d models, such as %s", f.provider.Name, len(aliases), aliases[0].Alias))
	}
	if variable(sys, "ANTHROPIC_API_KEY") != "" {
		notes = append(notes, "anthropic: ANTHROPIC_API_KEY is set, but this version does not speak Anthropic's interface; skipped")
	}
	return config, notes
}

// variable returns the value of an environment variable without the white space around it.
func variable(sys system, name string) string { return strings.TrimSpace(sys.getenv(name)) }

func (k knownProvider) look(ctx context.Context, sys system) found {
	for _, name := range k.keys {
		key := variable(sys, name)
		if key == "" {
			continue
		}
		base := k.base
		if other := variable(sys, strings.ToUpper(k.name)+"_BASE_URL"); other != "" {
			base = other
		}
		models, err := sys.probe(ctx, base, key)
		if err == nil && len(models) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return found{note: fmt.Sprintf("%s: %s is set, but its list of models could not be had from %s: %s; skipped "+
				"(a configuration file can name the models)", k.name, name, base, reason(err))}
		}
		return found{provider: gateway.ProviderConfig{
			Name: k.name, Type: "openai", BaseURL: base, Keys: []gateway.SecretRef{gateway.NewSecretRef("env:" + name)}, Quirks: k.quirks,
		}, models: models}
	}
	return found{}
}

// lookForOllama looks for an Ollama on this machine, or where OLLAMA_HOST says. It has OpenAI's interface under /v1.
func lookForOllama(ctx context.Context, sys system) found {
	base := ollamaBase(variable(sys, "OLLAMA_HOST"))
	models, err := sys.probe(ctx, base, "")
	if err != nil {
		return found{} // most machines have none
	}
	return found{provider: gateway.ProviderConfig{Name: "ollama", Type: "openai", BaseURL: base}, models: models}
}

// ollamaBase reads OLLAMA_HOST as Ollama itself does: [scheme://]host[:port]. An address to listen on everywhere is
// that of this machine.
func ollamaBase(host string) string {
	scheme, rest, ok := strings.Cut(host, "://")
	if !ok {
		scheme, rest = "http", host
	}
	rest, _, _ = strings.Cut(rest, "/")
	name, port, err := net.SplitHostPort(rest)
	if err != nil {
		name, port = strings.Trim(rest, "[]"), "11434"
		if ok && scheme == "https" {
			port = "443"
		}
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(name, port) + "/v1"
}

// aliases returns an alias for each model.
func (f found) aliases() []gateway.ModelConfig {
	var aliases []gateway.ModelConfig
	seen := map[string]bool{}
	for _, model := range f.models {
		alias := f.provider.Name + "/" + strings.TrimPrefix(model, "models/") // as Gemini lists them
		if seen[alias] {
			continue
		}
		seen[alias] = true
		aliases = append(aliases, gateway.ModelConfig{
			Alias: alias, Candidates: []gateway.CandidateConfig{{Provider: f.provider.Name, Model: model}},
		})
	}
	return aliases
}

// reason says why a probe failed, without the address, which stands beside it.
func reason(err error) string {
	if failure, ok := errors.AsType[*url.Error](err); ok {
		if failure.Timeout() {
			return fmt.Sprintf("no answer within %s", probeTimeout)
		}
		err = failure.Err
	}
	return err.Error()
}

// probe asks an upstream for its list of models.
func probe(ctx context.Context, base, key string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base, "/")+"/models", http.NoBody)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes nowhere else
	}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	return modelIDs(text)
}

// modelIDs reads a list of models: OpenAI's object, or the bare list that Together sends.
func modelIDs(text []byte) ([]string, error) {
	type model struct {
		ID string `json:"id"`
	}
	var list struct {
		Data []model `json:"data"`
	}
	if json.Unmarshal(text, &list) != nil && json.Unmarshal(text, &list.Data) != nil {
		return nil, errors.New("the answer is no list of models")
	}
	var ids []string
	for _, m := range list.Data {
		if m.ID != "" {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}
