package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// flatMembers are what an entry of a flat providers.json list may have. Each entry is one upstream model under one alias.
//
//nolint:gochecknoglobals // a table that never changes
var flatMembers = []string{
	"alias", "base_url", "upstream_model", "api_key_env", "input_price_per_million", "output_price_per_million",
	"max_concurrency", "timeout_seconds", "retries", "backoff_base_seconds",
}

// flatList is a flat list, found in a document.
type flatList struct {
	source  *document
	at      string // where the list stands in it
	entries []jsontext.Value
}

// flatList returns the document as a flat list, if it is one: a list, or an object with a list of providers that have an
// alias, and nothing else.
func (d *document) flatList() (flatList, bool) {
	list := flatList{source: d}
	text := d.json
	if text.Kind() == '{' {
		var object map[string]jsontext.Value
		if json.Unmarshal(text, &object) != nil || len(object) != 1 || object["providers"] == nil {
			return flatList{}, false
		}
		text, list.at = object["providers"], "providers"
	}
	if text.Kind() != '[' || json.Unmarshal(text, &list.entries) != nil {
		return flatList{}, false
	}
	hasAlias := func(entry jsontext.Value) bool {
		var members map[string]jsontext.Value
		return json.Unmarshal(entry, &members) == nil && members["alias"] != nil
	}
	return list, list.at == "" || slices.ContainsFunc(list.entries, hasAlias)
}

// document makes a configuration of the list: a provider and an alias of each entry. What an entry says is handed on as
// it was written, so the configuration's own checks apply, with the names and lines of the list.
func (l flatList) document() (*document, []fault) {
	out := &document{lines: l.source.lines, names: map[string]string{"": l.at}}
	var faults []fault
	var providers, models []string
	taken := map[string]bool{}
	for i, text := range l.entries {
		e := flatEntry{at: element(l.at, i), source: l.source}
		if text.Kind() != '{' || json.Unmarshal(text, &e.members) != nil {
			e.failf("", "an entry must be an object")
		} else {
			provider, model := e.convert(taken)
			e.name(out.names, len(providers))
			providers, models = append(providers, provider.text()), append(models, model.text())
		}
		faults = append(faults, e.faults...)
	}
	out.json = jsontext.Value(`{"providers":[` + strings.Join(providers, ",") + `],"models":[` + strings.Join(models, ",") + `]}`)
	return out, faults
}

// flatEntry is one entry of the list.
type flatEntry struct {
	at      string
	source  *document
	members map[string]jsontext.Value
	faults  []fault
}

func (e *flatEntry) failf(name, format string, args ...any) {
	path := e.at
	if name != "" {
		path = member(e.at, name)
	}
	_, line := e.source.place(path)
	e.faults = append(e.faults, fault{line, path, fmt.Sprintf(format, args...)})
}

// convert makes a provider and a model of the entry.
func (e *flatEntry) convert(taken map[string]bool) (provider, model object) {
	for _, name := range slices.Sorted(maps.Keys(e.members)) {
		switch {
		case !slices.Contains(flatMembers, name):
			e.failf(name, "unknown member; a flat list knows %s", strings.Join(flatMembers, ", "))
		case e.members[name].Kind() == 'n':
			delete(e.members, name)
		}
	}
	for _, name := range [...]string{"alias", "base_url", "upstream_model"} {
		if _, ok := e.members[name]; !ok {
			e.failf(name, "is missing; an entry needs alias, base_url and upstream_model")
		}
	}
	name := e.providerName(taken)
	provider.set("name", name)
	provider.set("type", "openai")
	e.pass(&provider, "base_url", "base_url")
	if variable := e.variable("api_key_env"); variable != "" {
		provider.set("keys", []string{"env:" + variable})
	}
	if wait := e.seconds("timeout_seconds"); wait != "" {
		// As HTTP clients mean a read timeout: for the answer to begin, and then for each further piece of it.
		provider.set("timeouts", map[string]string{"first_byte": wait, "idle": wait}, json.Deterministic(true))
	}

	var candidate, price, retry, backoff object
	candidate.set("provider", name)
	e.pass(&candidate, "model", "upstream_model")
	e.pass(&price, "input", "input_price_per_million")
	e.pass(&price, "output", "output_price_per_million")
	candidate.nest("price", price)
	e.pass(&candidate, "max_concurrency", "max_concurrency")
	e.pass(&model, "alias", "alias")
	model.raw("candidates", "["+candidate.text()+"]")
	e.pass(&retry, "max_retries", "retries")
	if base := e.seconds("backoff_base_seconds"); base != "" {
		backoff.set("base", base)
	}
	retry.nest("backoff", backoff)
	model.nest("retry", retry)
	return provider, model
}

// name notes what the list calls the values of the entry's provider and model, which are the nth of the configuration.
func (e *flatEntry) name(names map[string]string, n int) {
	provider, model := element("providers", n), element("models", n)
	for path, name := range map[string]string{
		provider:                                 "",
		provider + ".name":                       "alias",
		provider + ".base_url":                   "base_url",
		provider + ".keys":                       "api_key_env",
		provider + ".timeouts":                   "timeout_seconds",
		model:                                    "",
		model + ".alias":                         "alias",
		model + ".candidates[0].model":           "upstream_model",
		model + ".candidates[0].price.input":     "input_price_per_million",
		model + ".candidates[0].price.output":    "output_price_per_million",
		model + ".candidates[0].max_concurrency": "max_concurrency",
		model + ".retry.max_retries":             "retries",
		model + ".retry.backoff":                 "backoff_base_seconds",
	} {
		if name == "" {
			names[path] = e.at
		} else {
			names[path] = member(e.at, name)
		}
	}
}

// providerName returns the entry's alias, with a number when it is taken: that there are two is said of the aliases.
func (e *flatEntry) providerName(taken map[string]bool) string {
	var alias string
	_ = json.Unmarshal(e.members["alias"], &alias) // what is wrong with it is said of the model's alias
	name := alias
	for i := 2; name == "" || taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", alias, i)
	}
	taken[name] = true
	return name
}

// pass hands a member on as it stands.
func (e *flatEntry) pass(to *object, as, name string) {
	if value, ok := e.members[name]; ok {
		to.raw(as, string(value))
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variable returns a member that names an environment variable, or "". The value is not repeated when it is none: it may
// be the key itself.
func (e *flatEntry) variable(name string) string {
	value, ok := e.members[name]
	if !ok {
		return ""
	}
	var variable string
	if json.Unmarshal(value, &variable) != nil || variable != "" && !variableName.MatchString(variable) {
		e.failf(name, "must be the name of an environment variable that holds the key, or empty for no key")
		return ""
	}
	return variable
}

var decimalText = regexp.MustCompile(`^\d+(\.\d+)?$`)

// seconds returns a number of seconds as a duration, or "".
func (e *flatEntry) seconds(name string) string {
	value, ok := e.members[name]
	if !ok {
		return ""
	}
	text := strings.Trim(string(value), `"`)
	if !decimalText.MatchString(text) {
		e.failf(name, "must be a number of seconds such as 30 or 0.5")
		return ""
	}
	return text + "s"
}

// object collects the members of a JSON object.
type object []string

func (o *object) set(name string, value any, options ...json.Options) {
	text, err := json.Marshal(value, options...)
	if err != nil {
		panic(err) // only strings, and lists and maps of them, come here
	}
	o.raw(name, string(text))
}

func (o *object) raw(name, text string) { *o = append(*o, fmt.Sprintf("%q:%s", name, text)) }

// nest sets a member to an object, unless that is empty.
func (o *object) nest(name string, inner object) {
	if len(inner) > 0 {
		o.raw(name, inner.text())
	}
}

func (o *object) text() string { return "{" + strings.Join(*o, ",") + "}" }
