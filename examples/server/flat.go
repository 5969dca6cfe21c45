package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
)

// flatProvider is an entry of the flat providers.json list: one upstream model under one alias.
type flatProvider struct {
	Alias          string         `json:"alias"`
	BaseURL        string         `json:"base_url"`
	UpstreamModel  string         `json:"upstream_model"`
	APIKeyEnv      string         `json:"api_key_env"`
	InputPrice     jsontext.Value `json:"input_price_per_million"`
	OutputPrice    jsontext.Value `json:"output_price_per_million"`
	MaxConcurrency *int           `json:"max_concurrency"`
	TimeoutSeconds jsontext.Value `json:"timeout_seconds"`
	Retries        *int           `json:"retries"`
	BackoffBase    jsontext.Value `json:"backoff_base_seconds"`
}

// flatEntry is an entry with its place in the file.
type flatEntry struct {
	text jsontext.Value
	path string
}

// flatDocument is a flat list, found in a document.
type flatDocument struct {
	entries []flatEntry
	lines   *document
}

// flatList returns the document as a flat list: a list of entries that have an alias each, by itself or as the providers
// of an object that has nothing else.
func (d *document) flatList() (*flatDocument, bool) {
	list, prefix := d.json, ""
	if list.Kind() == '{' {
		var object map[string]jsontext.Value
		if json.Unmarshal(list, &object) != nil || len(object) != 1 || object["providers"] == nil {
			return nil, false
		}
		list, prefix = object["providers"], "providers"
	}
	var values []jsontext.Value
	if list.Kind() != '[' || json.Unmarshal(list, &values) != nil || len(values) == 0 {
		return nil, false
	}
	flat := &flatDocument{lines: d}
	for i, text := range values {
		var entry map[string]jsontext.Value
		if json.Unmarshal(text, &entry) != nil || prefix != "" && entry["alias"] == nil {
			return nil, false
		}
		flat.entries = append(flat.entries, flatEntry{text, fmt.Sprintf("%s[%d]", prefix, i)})
	}
	return flat, true
}

// fromFlat makes a configuration of a flat list. Entries with the same address, key and timeout share a provider. The
// lines of the result are those of the entries.
func fromFlat(flat *flatDocument) (*document, error) {
	var problems gateway.Problems
	out := &document{lines: make(map[string]int)}
	var providers, models []string
	for i, e := range flat.entries {
		var p flatProvider
		if err := json.Unmarshal(e.text, &p, json.RejectUnknownMembers(true)); err != nil {
			problems = append(problems, gateway.Problem{Path: e.path, Message: "not an entry of a flat provider list: " + plainError(err)})
			continue
		}
		name := fmt.Sprintf("%s-upstream", p.Alias)
		provider := object{}
		provider.set("name", name)
		provider.set("type", "openai")
		provider.set("base_url", p.BaseURL)
		if p.APIKeyEnv != "" {
			provider.set("keys", []string{"env:" + p.APIKeyEnv})
		}
		if seconds := text(p.TimeoutSeconds); seconds != "" {
			provider.set("timeouts", map[string]string{"first_byte": seconds + "s", "total": seconds + "s"})
		}
		candidate := object{}
		candidate.set("provider", name)
		candidate.set("model", p.UpstreamModel)
		price := object{}
		if amount := text(p.InputPrice); amount != "" {
			price.set("input", amount)
		}
		if amount := text(p.OutputPrice); amount != "" {
			price.set("output", amount)
		}
		if len(price) > 0 {
			candidate.raw("price", price.text())
		}
		if p.MaxConcurrency != nil {
			candidate.set("max_concurrency", *p.MaxConcurrency)
		}
		model := object{}
		model.set("alias", p.Alias)
		model.raw("candidates", "["+candidate.text()+"]")
		retry := object{}
		if p.Retries != nil {
			retry.set("max_retries", *p.Retries)
		}
		if base := text(p.BackoffBase); base != "" {
			retry.set("backoff", map[string]string{"base": base + "s"})
		}
		if len(retry) > 0 {
			model.raw("retry", retry.text())
		}
		providers, models = append(providers, provider.text()), append(models, model.text())
		for to, from := range map[string]string{
			fmt.Sprintf("providers[%d]", i): "", fmt.Sprintf("models[%d]", i): "",
			fmt.Sprintf("providers[%d].base_url", i):                   ".base_url",
			fmt.Sprintf("providers[%d].keys", i):                       ".api_key_env",
			fmt.Sprintf("providers[%d].timeouts", i):                   ".timeout_seconds",
			fmt.Sprintf("models[%d].alias", i):                         ".alias",
			fmt.Sprintf("models[%d].candidates[0].model", i):           ".upstream_model",
			fmt.Sprintf("models[%d].candidates[0].price.input", i):     ".input_price_per_million",
			fmt.Sprintf("models[%d].candidates[0].price.output", i):    ".output_price_per_million",
			fmt.Sprintf("models[%d].candidates[0].max_concurrency", i): ".max_concurrency",
			fmt.Sprintf("models[%d].retry.max_retries", i):             ".retries",
			fmt.Sprintf("models[%d].retry.backoff.base", i):            ".backoff_base_seconds",
		} {
			out.lines[to] = flat.lines.line(e.path + from)
		}
	}
	if len(problems) > 0 {
		return flat.lines, problems
	}
	out.json = jsontext.Value(`{"providers":[` + strings.Join(providers, ",") + `],"models":[` + strings.Join(models, ",") + `]}`)
	return out, nil
}

// object collects the members of a JSON object.
type object []string

func (o *object) set(name string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // only strings, numbers and maps of strings come here
	}
	o.raw(name, string(text))
}

func (o *object) raw(name, text string) { *o = append(*o, fmt.Sprintf("%q:%s", name, text)) }

func (o *object) text() string { return "{" + strings.Join(*o, ",") + "}" }

// text returns a number or a string as decimal text, as it was written.
func text(v jsontext.Value) string {
	if v.Kind() == 'n' {
		return ""
	}
	return strings.Trim(string(v), `"`)
}

// plainError says what is wrong with an entry in words that do not speak of Go types.
func plainError(err error) string {
	misfit, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err.Error()
	case misfit.Err != nil:
		return strings.TrimPrefix(string(misfit.JSONPointer), "/") + ": " + misfit.Err.Error()
	default:
		return fmt.Sprintf("%s has the wrong type", strings.TrimPrefix(string(misfit.JSONPointer), "/"))
	}
}
