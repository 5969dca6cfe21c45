// Package openai speaks OpenAI's wire format: which members of a caller's document have to change for an upstream, and
// what an upstream's answers, events and errors mean. It knows what compatible servers do otherwise.
package openai

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/internal/jsonpatch"
)

// Quirks says what an upstream wants otherwise than OpenAI.
type Quirks struct {
	Drop           []string          // outermost members that are not sent
	Rename         map[string]string // outermost members that are sent under another name
	NoIncludeUsage bool              // it refuses stream_options
	RepairChunks   bool              // its streamed chunks lack what strict SDKs want
}

// EncodeRequest returns the document for the upstream: the caller's own, with the few outermost members changed that
// have to. It asks for a usage report on every stream.
func EncodeRequest(req *gateway.Request, q Quirks) ([]byte, error) {
	edits := make([]gateway.Edit, 0, 4)
	if model, _ := req.Member("model"); !isText(model, req.Model) {
		edits = append(edits, gateway.Edit{Name: "model", Value: quote(req.Model)})
	}
	if stream, _ := req.Member("stream"); (string(stream) == "true") != req.Stream {
		// Only a request that a program put together itself can differ from its document.
		edits = append(edits, gateway.Edit{Name: "stream", Value: strconv.AppendBool(nil, req.Stream)})
	}
	if req.Stream && req.API == gateway.APIChat && !q.NoIncludeUsage {
		if options, changed := includeUsage(req); changed {
			edits = append(edits, gateway.Edit{Name: "stream_options", Value: options})
		}
	}
	var renamed []string
	if len(q.Rename) > 0 { // without the iterators, which allocate
		renamed = slices.Sorted(maps.Keys(q.Rename))
	}
	for _, from := range renamed {
		to := q.Rename[from]
		edit := gateway.Edit{Name: from, NewName: to}
		if _, given := req.Member(to); given {
			edit.NewName = "" // what the caller said under the upstream's own name counts
		}
		edits = append(edits, edit)
	}
	for _, name := range q.Drop {
		edits = append(edits, gateway.Edit{Name: name})
	}
	return req.Rewrite(edits...)
}

// WantsUsage reports whether the caller asked for a usage report at the end of the stream.
func WantsUsage(req *gateway.Request) bool {
	options, _ := req.Member("stream_options")
	if options.Kind() != '{' {
		return false
	}
	value, _ := jsonpatch.Find(options, "include_usage")
	return string(value) == "true"
}

// Choices returns how many choices the caller asked for.
func Choices(req *gateway.Request) int {
	n, _ := req.Member("n")
	choices, err := strconv.Atoi(string(n))
	if err != nil {
		return 1
	}
	return choices
}

// includeUsage returns the caller's stream_options with include_usage set to true, and whether that is a change.
func includeUsage(req *gateway.Request) (options jsontext.Value, changed bool) {
	given, _ := req.Member("stream_options")
	switch given.Kind() {
	case '{':
		if value, _ := jsonpatch.Find(given, "include_usage"); string(value) == "true" {
			return nil, false
		}
		object, err := jsonpatch.Parse(given)
		if err != nil {
			return nil, false
		}
		return object.Apply(jsonpatch.Edit{Name: "include_usage", Value: jsontext.Value("true")}), true
	case jsontext.KindInvalid, 'n':
		return jsontext.Value(`{"include_usage":true}`), true
	default:
		return nil, false // the upstream will say what is wrong with it
	}
}

// isText reports whether raw is a JSON string with the given text.
func isText(raw jsontext.Value, text string) bool {
	if len(raw) == len(text)+2 && raw[0] == '"' && string(raw[1:len(raw)-1]) == text {
		return true
	}
	if raw.Kind() != '"' {
		return false
	}
	unquoted, err := jsontext.AppendUnquote(nil, raw)
	return err == nil && string(unquoted) == text
}

func quote(text string) jsontext.Value {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil { // invalid UTF-8, which AppendQuote has replaced
		return quoted
	}
	return quoted
}
