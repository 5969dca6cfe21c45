package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
)

// document is a configuration as JSON that knows where in its file each value stands.
type document struct {
	json  jsontext.Value
	lines map[string]int    // by path: models[0].candidates[1].provider
	names map[string]string // by path, what the file itself calls the value; nil: the same
}

// parse reads a file's text: JSON, or else YAML.
func parse(file string, text []byte) (*document, []fault) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	isJSON := strings.EqualFold(filepath.Ext(file), ".json") || jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil, []fault{{message: "the file is empty"}}
	case isJSON:
		return parseJSON(text)
	default:
		return parseYAML(text)
	}
}

// place returns what the file calls a value, and its line; the nearest value around it if it is not there itself.
func (d *document) place(path string) (name string, line int) {
	if d.names != nil {
		path = around(d.names, path)
	}
	return path, around(d.lines, path)
}

// around looks a path up, or else the nearest path around it.
func around[V any](byPath map[string]V, path string) V {
	for {
		value, ok := byPath[path]
		if ok || path == "" {
			return value
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// maxPath bounds the paths that are kept, so that no document can make them large together. The schema's are shorter.
const maxPath = 256

func member(path, name string) string {
	switch {
	case len(path)+len(name) >= maxPath:
		return path
	case path == "":
		return name
	default:
		return path + "." + name
	}
}

func element(path string, i int) string {
	if len(path) >= maxPath {
		return path
	}
	return path + "[" + strconv.Itoa(i) + "]"
}

// fault is one thing that is wrong with a configuration file.
type fault struct {
	line    int    // 0: unknown
	path    string // "": the file as a whole
	message string
}

// fileError is everything that is wrong with a configuration file.
type fileError struct {
	file   string
	faults []fault
}

// Error lists the faults in the order of the file, one a line, each with its place.
func (e *fileError) Error() string {
	sorted := slices.Clone(e.faults)
	slices.SortStableFunc(sorted, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var lines []string
	for _, f := range sorted {
		at := e.file
		if f.line > 0 {
			at = fmt.Sprintf("%s:%d", e.file, f.line)
		}
		if f.path != "" {
			at += ": " + f.path
		}
		for message := range strings.SplitSeq(f.message, "\n") {
			lines = append(lines, at+": "+message)
		}
	}
	return strings.Join(lines, "\n")
}

// add adds the problems in err, with their places in d. It leaves out those of values in which something has been found
// wrong before: they follow from it.
func (e *fileError) add(d *document, err error) {
	if err == nil {
		return
	}
	var problems gateway.Problems
	if !errors.As(err, &problems) {
		problems = gateway.Problems{{Message: err.Error()}}
	}
	before := e.faults
	for _, p := range problems {
		path, line := d.place(p.Path)
		if !slices.ContainsFunc(before, func(f fault) bool { return within(f.path, path) }) {
			e.faults = append(e.faults, fault{line, path, p.Message})
		}
	}
}

// within reports whether path is that of the value at outer, or of one in it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
