package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// What aliases (*name) and merges (<<) can blow a document up to, and how deep it may be.
const (
	maxNodes  = 100_000
	maxOutput = 16 << 20
	maxDepth  = 100
)

// parseYAML reads YAML as JSON. Numbers keep their text, so that no price goes through a float, and words such as yes
// and on stay words: only true, false and null mean something else.
func parseYAML(text []byte) (*document, []fault) {
	in := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	switch err := in.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, []fault{{message: "the file is empty"}}
	case err != nil:
		return nil, []fault{yamlFault(err)}
	}
	switch err := in.Decode(new(yaml.Node)); {
	case err == nil:
		return nil, []fault{{message: "there is more than one document in the file; a configuration is one"}}
	case !errors.Is(err, io.EOF):
		return nil, []fault{yamlFault(err)}
	}
	c := converter{lines: make(map[string]int)}
	c.value(root.Content[0], "", 0)
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return &document{json: c.out, lines: c.lines}, nil
}

var yamlPlace = regexp.MustCompile(`^(?:line (\d+): )?(?s:(.*))$`)

// yamlFault makes a fault of the parser's error, which has its line in its text.
func yamlFault(err error) fault {
	parts := yamlPlace.FindStringSubmatch(strings.TrimPrefix(err.Error(), "yaml: "))
	line, _ := strconv.Atoi(parts[1]) // none is 0
	return fault{line: line, message: "not valid YAML: " + parts[2]}
}

// converter writes YAML nodes as JSON.
type converter struct {
	out    jsontext.Value
	lines  map[string]int
	faults []fault
	nodes  int
	full   bool         // the document is too large: nothing more is read
	open   []*yaml.Node // the mappings and lists around the value
}

func (c *converter) failf(n *yaml.Node, path, format string, args ...any) {
	c.faults = append(c.faults, fault{n.Line, path, fmt.Sprintf(format, args...)})
}

// visit counts a node, and reports whether it may be read.
func (c *converter) visit(n *yaml.Node, path string, depth int) bool {
	c.nodes++
	switch {
	case c.full:
	case c.nodes > maxNodes || len(c.out) > maxOutput:
		c.failf(n, path, "the document is too large once its aliases and merges are followed")
		c.full = true
	case depth > maxDepth:
		c.failf(n, path, "the document is nested too deeply")
		c.full = true
	default:
		return true
	}
	return false
}

func (c *converter) value(n *yaml.Node, path string, depth int) {
	if !c.visit(n, path, depth) {
		return
	}
	if _, seen := c.lines[path]; !seen {
		c.lines[path] = n.Line
	}
	alias := n
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if slices.Contains(c.open, n) {
		c.failf(alias, path, "the alias *%s contains itself", alias.Value)
		return
	}
	if n.Kind == yaml.ScalarNode {
		c.scalar(n, path)
		return
	}
	c.open = append(c.open, n)
	defer func() { c.open = c.open[:len(c.open)-1] }()
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!map" && n.Tag != "!!seq" {
		c.failf(n, path, "the tag %s means nothing here", n.Tag)
	}
	if n.Kind == yaml.MappingNode {
		c.mapping(n, path, depth)
		return
	}
	c.out = append(c.out, '[')
	for i, content := range n.Content {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.value(content, element(path, i), depth+1)
	}
	c.out = append(c.out, ']')
}

func (c *converter) mapping(n *yaml.Node, path string, depth int) {
	c.out = append(c.out, '{')
	for i, p := range c.pairs(n, path, nil) {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.text(p.name.Value)
		c.out = append(c.out, ':')
		at := member(path, p.name.Value)
		c.lines[at] = p.name.Line
		c.value(p.value, at, depth+1)
	}
	c.out = append(c.out, '}')
}

type pair struct{ name, value *yaml.Node }

// pairs returns the members of a mapping, with those that it merges in (<<) where it has none of its own. Of several
// sources the first one counts (https://yaml.org/type/merge.html).
func (c *converter) pairs(n *yaml.Node, path string, merging []*yaml.Node) []pair {
	var pairs, merged []pair
	own := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if !c.visit(name, path, len(merging)) {
			return nil
		}
		switch first, twice := own[name.Value]; {
		case name.Kind != yaml.ScalarNode:
			c.failf(name, path, "the name of a member must be a string")
		case name.Tag == "!!merge":
			merged = append(merged, c.merge(value, path, append(slices.Clip(merging), n))...)
		case twice:
			c.faults = append(c.faults, twiceFault(name.Line, member(path, name.Value), first))
		default:
			own[name.Value] = name.Line
			pairs = append(pairs, pair{name, value})
		}
	}
	for _, p := range merged {
		if _, ok := own[p.name.Value]; !ok {
			own[p.name.Value] = p.name.Line
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// merge returns the members of what a mapping merges in: a mapping, or a list of them.
func (c *converter) merge(source *yaml.Node, path string, merging []*yaml.Node) []pair {
	sources := []*yaml.Node{source}
	if source.Kind == yaml.SequenceNode {
		sources = source.Content
	}
	var pairs []pair
	for _, s := range sources {
		n := s
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		switch {
		case n.Kind != yaml.MappingNode:
			c.failf(s, path, "<< takes a mapping, or a list of mappings")
		case slices.Contains(merging, n):
			c.failf(s, path, "the mapping merges itself")
		default:
			pairs = append(pairs, c.pairs(n, path, merging)...)
		}
	}
	return pairs
}

var number = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)

func (c *converter) scalar(n *yaml.Node, path string) {
	tag := ""
	if n.Style&yaml.TaggedStyle != 0 {
		tag = n.Tag
	}
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch tag {
	case "":
		if quoted || !c.plain(n.Value) {
			c.text(n.Value)
		}
	case "!!str":
		c.text(n.Value)
	case "!!int", "!!float", "!!bool", "!!null":
		if !c.plain(n.Value) {
			c.failf(n, path, "%q is not a value of the type %s", n.Value, tag)
		}
	default:
		c.failf(n, path, "the tag %s means nothing here", tag)
	}
}

// plain writes a word that means something else than its text, and reports whether it is one.
func (c *converter) plain(word string) bool {
	switch word {
	case "", "~", "null", "Null", "NULL":
		c.out = append(c.out, "null"...)
	case "true", "True", "TRUE":
		c.out = append(c.out, "true"...)
	case "false", "False", "FALSE":
		c.out = append(c.out, "false"...)
	default:
		if !number.MatchString(word) {
			return false
		}
		c.out = append(c.out, word...)
	}
	return true
}

func (c *converter) text(s string) {
	c.out, _ = jsontext.AppendQuote(c.out, strings.ToValidUTF8(s, "\uFFFD")) // always valid
}
