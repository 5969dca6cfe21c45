package gateway

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// expandDocument returns the JSON document with ${NAME}, ${NAME:-default} and $$ replaced in its string values, once.
func expandDocument(text []byte, lookup func(string) (string, bool), problems *Problems) []byte {
	if _, err := jsonpatch.Parse(text); err != nil {
		problems.addf("", "not a valid JSON document: %s", err)
		return nil
	}
	var out bytes.Buffer
	in, enc := jsontext.NewDecoder(bytes.NewReader(text)), jsontext.NewEncoder(&out)
	for {
		token, err := in.ReadToken()
		if err != nil {
			return out.Bytes() // the end: the document has been checked
		}
		kind, count := in.StackIndex(in.StackDepth())
		isName := kind == '{' && count%2 == 1
		if token.Kind() == '"' && !isName && strings.Contains(token.String(), "$") {
			expanded, err := expand(token.String(), lookup)
			if err != nil {
				problems.addf(pointerPath(in.StackPointer()), "%s", err)
			}
			token = jsontext.String(expanded)
		}
		if err := enc.WriteToken(token); err != nil {
			problems.addf(pointerPath(in.StackPointer()), "%s", err)
			return nil
		}
	}
}

// expand replaces the references in one value. What a variable holds is taken as it is.
func expand(value string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, "$")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			value = rest[1:]
		case strings.HasPrefix(rest, "{"):
			reference, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return "", fmt.Errorf("${%s has no closing brace", reference)
			}
			name, fallback, hasFallback := strings.Cut(reference, ":-")
			text, set := lookup(name)
			switch {
			case strings.TrimSpace(text) != "":
			case hasFallback:
				text = fallback
			case set:
				return "", fmt.Errorf("the environment variable %s is empty; set it, or write ${%s:-default}", name, name)
			default:
				return "", fmt.Errorf("the environment variable %s is not set; set it, or write ${%s:-default}", name, name)
			}
			b.WriteString(text)
			value = after
		default:
			b.WriteByte('$')
			value = rest
		}
	}
}

// pointerPath writes a JSON pointer as a path: /models/0/alias is models[0].alias.
func pointerPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}

// planned are members of the schema that this version does not serve yet, by path without indices. Taking them in
// silence would promise what does not happen.
//
//nolint:gochecknoglobals // a table that never changes
var planned = []string{
	"stores", "cache", "redact", "prices.file", "models.limits", "models.fallbacks", "models.fallback_on",
	"models.candidates.weight", "models.candidates.context", "models.candidates.vision", "models.candidates.tools",
	"keys.limits", "keys.budgets", "keys.expires", "providers.limits", "log.bodies",
}

// checkShape finds every unknown member and every value of the wrong type in a configuration.
func checkShape(document jsontext.Value, problems *Problems) {
	checkValue(document, reflect.TypeFor[Config](), "", problems)
}

func checkValue(value jsontext.Value, t reflect.Type, path string, problems *Problems) {
	value = bytes.TrimSpace(value)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case isText(t) || t.Kind() != reflect.Struct && t.Kind() != reflect.Slice && t.Kind() != reflect.Map:
		checkLeaf(value, t, path, problems)
	case t.Kind() == reflect.Struct && t.PkgPath() != reflect.TypeFor[Config]().PkgPath():
		checkLeaf(value, t, path, problems) // a decimal
	case t.Kind() == reflect.Struct:
		if value.Kind() != '{' {
			problems.addf(path, "must be an object, not %s", kindWord(value))
			return
		}
		jsonpatch.EachMember(value, func(name, v jsontext.Value) bool {
			checkMember(t, name, v, path, problems)
			return true
		})
	case t.Kind() == reflect.Slice:
		if value.Kind() != '[' {
			problems.addf(path, "must be a list, not %s", kindWord(value))
			return
		}
		i := 0
		jsonpatch.EachElement(value, func(v jsontext.Value) bool {
			checkValue(v, t.Elem(), fmt.Sprintf("%s[%d]", path, i), problems)
			i++
			return true
		})
	default:
		if value.Kind() != '{' {
			problems.addf(path, "must be an object, not %s", kindWord(value))
			return
		}
		jsonpatch.EachMember(value, func(name, v jsontext.Value) bool {
			checkValue(v, t.Elem(), join(path, memberName(name)), problems)
			return true
		})
	}
}

func checkMember(t reflect.Type, name, value jsontext.Value, path string, problems *Problems) {
	key := memberName(name)
	at := join(path, key)
	var known []string
	for f := range t.Fields() {
		member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if member == key {
			checkValue(value, f.Type, at, problems)
			return
		}
		known = append(known, member)
	}
	if slices.Contains(planned, withoutIndices(at)) {
		problems.addf(at, "is not supported by this version of the gateway; remove it")
		return
	}
	problems.addf(at, "unknown member%s; known are %s", suggestion(key, known), strings.Join(known, ", "))
}

// memberName returns the text of a name as it stands between its quotes.
func memberName(raw jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, `"`+string(raw)+`"`)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

func checkLeaf(value jsontext.Value, t reflect.Type, path string, problems *Problems) {
	target := reflect.New(t)
	if err := json.Unmarshal(value, target.Interface()); err != nil {
		problems.addf(path, "%s", leafError(value, t, err))
	}
}

// leafError says what is wrong with a value in words that do not speak of Go types.
func leafError(value jsontext.Value, t reflect.Type, err error) string {
	for e := err; e != nil; {
		u, ok := e.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			break
		}
		e = u.Unwrap()
		err = e
	}
	switch {
	case isText(t) && value.Kind() == '"':
		return err.Error()
	case isText(t) || t.Kind() == reflect.String:
		return fmt.Sprintf("must be a string, not %s", kindWord(value))
	case t.Kind() == reflect.Bool:
		return fmt.Sprintf("must be true or false, not %s", kindWord(value))
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return fmt.Sprintf("must be a whole number, not %s", truncate(value))
	case t.Kind() == reflect.Float64:
		return fmt.Sprintf("must be a number, not %s", kindWord(value))
	default:
		return "must be a decimal number such as \"2.50\", not " + truncate(value)
	}
}

func kindWord(value jsontext.Value) string {
	switch value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	default:
		return string(value)
	}
}

func truncate(value jsontext.Value) string {
	if len(value) > 40 {
		return string(value[:40]) + "…"
	}
	return string(value)
}

func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) &&
		t.PkgPath() == reflect.TypeFor[Config]().PkgPath()
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func withoutIndices(path string) string {
	for {
		before, rest, found := strings.Cut(path, "[")
		if !found {
			return path
		}
		_, after, _ := strings.Cut(rest, "]")
		path = before + after
	}
}

// suggestion names the known member that is closest to a misspelt one, if one is close.
func suggestion(name string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := editDistance(name, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// Validate checks the configuration as a whole. The error is [Problems].
func (c Config) Validate() error {
	var problems Problems
	if c.Listen != "" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			problems.addf("listen", "must be host:port, such as 127.0.0.1:9000: %s", err)
		}
	}
	for i, key := range c.Master.Keys {
		if _, err := key.Resolve(); err != nil {
			problems.addf(fmt.Sprintf("master.keys[%d]", i), "%s", err)
		}
	}
	names := map[string]bool{}
	for i, p := range c.Providers {
		p.validate(fmt.Sprintf("providers[%d]", i), names, &problems)
	}
	aliases := map[string]bool{}
	for i, m := range c.Models {
		m.validate(fmt.Sprintf("models[%d]", i), names, aliases, &problems)
	}
	keys := map[string]bool{}
	for i, k := range c.Keys {
		k.validate(fmt.Sprintf("keys[%d]", i), keys, &problems)
	}
	oneOf(&problems, "prices.unpriced", c.Prices.Unpriced, "", "allow", "refuse")
	oneOf(&problems, "log.format", c.Log.Format, "", "json", "text")
	oneOf(&problems, "log.level", c.Log.Level, "", "debug", "info", "warn", "error")
	notNegative(&problems, "queue.max_waiting", c.Queue.MaxWaiting)
	notNegative(&problems, "server.max_connections", c.Server.MaxConnections)
	if size := c.Server.MaxBody; size != nil && *size == 0 {
		problems.addf("server.max_body", "must be larger than 0")
	}
	return problems.err()
}

func (p ProviderConfig) validate(at string, names map[string]bool, problems *Problems) {
	switch {
	case p.Name == "":
		problems.addf(at+".name", "a provider needs a name")
	case names[p.Name]:
		problems.addf(at+".name", "there are two providers %q", p.Name)
	}
	names[p.Name] = true
	if p.Type == "" {
		problems.addf(at+".type", "a provider needs a type, such as openai")
	}
	if p.MaxConcurrency < 0 {
		problems.addf(at+".max_concurrency", "must not be negative: %d", p.MaxConcurrency)
	}
	for i, key := range p.Keys {
		if _, err := key.Resolve(); err != nil {
			problems.addf(fmt.Sprintf("%s.keys[%d]", at, i), "%s", err)
		}
	}
}

func (m ModelConfig) validate(at string, providers, aliases map[string]bool, problems *Problems) {
	if m.Alias != "" && aliases[m.Alias] {
		problems.addf(at+".alias", "there are two aliases %q", m.Alias)
	}
	aliases[m.Alias] = true
	problems.join(at, m.alias().validate(at, func(name string) bool { return providers[name] }))
	switch m.Strategy {
	case "", "failover":
	case "weighted", "round_robin", "least_busy", "latency", "cost", "capability":
		problems.addf(at+".strategy", "%q is not supported by this version of the gateway; use failover", m.Strategy)
	default:
		problems.addf(at+".strategy", "unknown strategy %q; known is failover", m.Strategy)
	}
	if m.Retry == nil {
		return
	}
	notNegative(problems, at+".retry.max_retries", m.Retry.MaxRetries)
	for i, on := range m.Retry.On {
		oneOf(problems, fmt.Sprintf("%s.retry.on[%d]", at, i), on, "connect", "rate_limit", "http_5xx", "timeout")
	}
	if b := m.Retry.Backoff; b != nil && b.Jitter != nil && !(*b.Jitter >= 0 && *b.Jitter <= 1) {
		problems.addf(at+".retry.backoff.jitter", "must be from 0 to 1: %v", *b.Jitter)
	}
}

func (k KeyConfig) validate(at string, names map[string]bool, problems *Problems) {
	switch {
	case k.Name == "":
		problems.addf(at+".name", "a key needs a name")
	case names[k.Name]:
		problems.addf(at+".name", "there are two keys %q", k.Name)
	}
	names[k.Name] = true
	switch {
	case k.Secret.IsZero() && k.Hash == "":
		problems.addf(at, "a key needs secret or hash")
	case !k.Secret.IsZero() && k.Hash != "":
		problems.addf(at, "a key has either secret or hash, not both")
	case k.Hash != "":
		digest, ok := strings.CutPrefix(k.Hash, "sha256:")
		if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != 32 {
			problems.addf(at+".hash", "must be sha256: and 64 hexadecimal digits")
		}
	default:
		if _, err := k.Secret.Resolve(); err != nil {
			problems.addf(at+".secret", "%s", err)
		}
	}
}

func oneOf(problems *Problems, at, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		problems.addf(at, "unknown value %q; known are %s", value,
			strings.Join(slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return s == "" }), ", "))
	}
}

func notNegative(problems *Problems, at string, n *int) {
	if n != nil && *n < 0 {
		problems.addf(at, "must not be negative: %d", *n)
	}
}

// alias turns the configuration of an alias into the value that New takes.
func (m ModelConfig) alias() Alias {
	a := Alias{Name: m.Alias, MaxConcurrency: m.MaxConcurrency, Strict: m.Strict}
	if m.Retry != nil {
		a.Retry = m.Retry.policy()
	}
	for _, c := range m.Candidates {
		a.Candidates = append(a.Candidates, Candidate(c))
	}
	return a
}

func (r RetryConfig) policy() DefaultRetryPolicy {
	p := NewRetryPolicy()
	if r.MaxRetries != nil {
		p.MaxRetries = *r.MaxRetries
	}
	if r.On != nil {
		p.NoConnect = !slices.Contains(r.On, "connect")
		p.NoRateLimit = !slices.Contains(r.On, "rate_limit")
		p.NoServerError = !slices.Contains(r.On, "http_5xx")
		p.RetryUnknown = slices.Contains(r.On, "timeout")
	}
	if r.Budget != nil {
		p.Budget = time.Duration(*r.Budget)
	}
	if b := r.Backoff; b != nil {
		if b.Base != nil {
			p.Base = time.Duration(*b.Base)
		}
		if b.Max != nil {
			p.MaxDelay = time.Duration(*b.Max)
		}
		if b.Jitter != nil {
			p.Jitter = *b.Jitter
		}
	}
	return p
}
