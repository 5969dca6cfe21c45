package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway"
)

// known are the providers that are found by their usual key variables: those whose interface is OpenAI's.
//
//nolint:gochecknoglobals // a table that never changes
var known = []struct{ name, env, base string }{
	{"openai", "OPENAI_API_KEY", "https://api.openai.com/v1"},
	{"gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"},
	{"deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"},
	{"mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"},
	{"groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"},
	{"xai", "XAI_API_KEY", "https://api.x.ai/v1"},
	{"together", "TOGETHER_API_KEY", "https://api.together.xyz/v1"},
	{"openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"},
	{"cerebras", "CEREBRAS_API_KEY", "https://api.cerebras.ai/v1"},
	{"fireworks", "FIREWORKS_API_KEY", "https://api.fireworks.ai/inference/v1"},
	{"moonshot", "MOONSHOT_API_KEY", "https://api.moonshot.ai/v1"},
	{"dashscope", "DASHSCOPE_API_KEY", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"},
}

// ollama is where a local Ollama answers, with OpenAI's interface under /v1.
const ollama = "http://127.0.0.1:11434/v1"

const probeTimeout = 3 * time.Second

// detect makes a configuration of what it finds. An upstream's aliases are the models that it lists, under its name:
// openai/gpt-4o. Nothing that costs money is asked.
func detect(ctx context.Context, sys system) (gateway.Config, []string) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	type found struct {
		provider gateway.ProviderConfig
		models   []string
		note     string
	}
	results := make([]found, len(known)+1)
	var wg sync.WaitGroup
	look := func(i int, name, base, env string) {
		key := ""
		provider := gateway.ProviderConfig{Name: name, Type: "openai", BaseURL: base}
		if env != "" {
			if key = sys.getenv(env); key == "" {
				return
			}
			provider.Keys = []gateway.SecretRef{gateway.NewSecretRef("env:" + env)}
		}
		wg.Go(func() {
			models, err := sys.probe(ctx, base, key)
			switch {
			case err == nil && len(models) > 0:
				results[i] = found{provider, models, ""}
			case env != "":
				results[i].note = fmt.Sprintf("%s: %s is set, but the list of models could not be had; skipped", name, env)
			}
		})
	}
	for i, k := range known {
		look(i, k.name, k.base, k.env)
	}
	look(len(known), "ollama", ollama, "")
	wg.Wait()

	config := gateway.Config{
		Providers: []gateway.ProviderConfig{{Name: "echo", Type: "echo"}},
		Models: []gateway.ModelConfig{{
			Alias: "demo", Candidates: []gateway.CandidateConfig{{
				Provider: "echo", Model: "echo", Price: &gateway.Price{Input: gateway.USD("0"), Output: gateway.USD("0")},
			}},
		}},
	}
	notes := []string{"demo answers offline: it repeats what you say"}
	for _, r := range results {
		if r.note != "" {
			notes = append(notes, r.note)
		}
		if len(r.models) == 0 {
			continue
		}
		config.Providers = append(config.Providers, r.provider)
		for _, model := range r.models {
			config.Models = append(config.Models, gateway.ModelConfig{
				Alias:      r.provider.Name + "/" + strings.TrimPrefix(model, "models/"),
				Candidates: []gateway.CandidateConfig{{Provider: r.provider.Name, Model: model}},
			})
		}
		notes = append(notes, fmt.Sprintf("%s: %d models, such as %s/%s", r.provider.Name, len(r.models), r.provider.Name,
			strings.TrimPrefix(r.models[0], "models/")))
	}
	if sys.getenv("ANTHROPIC_API_KEY") != "" {
		notes = append(notes, "anthropic: ANTHROPIC_API_KEY is set, but this version does not speak Anthropic's interface; skipped")
	}
	return config, notes
}

// probe asks an upstream for its list of models.
func probe(ctx context.Context, base, key string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", http.NoBody)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.UnmarshalRead(http.MaxBytesReader(nil, res.Body, 8<<20), &list); err != nil {
		return nil, err
	}
	var models []string
	for _, m := range list.Data {
		if m.ID != "" && !slices.Contains(models, m.ID) {
			models = append(models, m.ID)
		}
	}
	return models, nil
}
