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

// document is a configuration as JSON, with the line in which each value stands in the file.
type document struct {
	json  jsontext.Value
	lines map[string]int // by path: models[0].candidates[1].provider
}

// line returns the line of the value at path, or of what is nearest around it; 0 if there is none.
func (d *document) line(path string) int {
	for d != nil {
		if line, ok := d.lines[path]; ok {
			return line
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			break
		}
		path = path[:i]
	}
	return 0
}

// parseYAML reads YAML, or JSON, which is YAML too. Numbers keep their text: no price goes through a float.
func parseYAML(text []byte) (*document, error) {
	in := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	switch err := in.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := in.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document in the file")
	}
	c := converter{document: document{lines: make(map[string]int)}}
	if err := c.value(root.Content[0], ""); err != nil {
		return nil, err
	}
	c.json = c.out
	return &c.document, nil
}

// maxNodes bounds what aliases can blow a document up to.
const maxNodes = 100_000

type converter struct {
	document

	out   jsontext.Value
	nodes int
	open  []*yaml.Node // the aliases that are being followed
}

func (c *converter) value(n *yaml.Node, path string) error {
	if c.nodes++; c.nodes > maxNodes {
		return fmt.Errorf("line %d: the document is too large, with its aliases followed", n.Line)
	}
	if _, seen := c.lines[path]; !seen {
		c.lines[path] = n.Line
	}
	switch n.Kind {
	case yaml.AliasNode:
		if slices.Contains(c.open, n.Alias) {
			return fmt.Errorf("line %d: the alias *%s contains itself", n.Line, n.Value)
		}
		c.open = append(c.open, n.Alias)
		defer func() { c.open = c.open[:len(c.open)-1] }()
		return c.value(n.Alias, path)
	case yaml.MappingNode:
		return c.mapping(n, path)
	case yaml.SequenceNode:
		c.out = append(c.out, '[')
		for i, element := range n.Content {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			if err := c.value(element, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		c.out = append(c.out, ']')
		return nil
	default:
		return c.scalar(n)
	}
}

func (c *converter) mapping(n *yaml.Node, path string) error {
	pairs, err := flatten(n, nil)
	if err != nil {
		return err
	}
	c.out = append(c.out, '{')
	for i, p := range pairs {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.text(p.name.Value)
		c.out = append(c.out, ':')
		at := p.name.Value
		if path != "" {
			at = path + "." + p.name.Value
		}
		c.lines[at] = p.name.Line
		if err := c.value(p.value, at); err != nil {
			return err
		}
	}
	c.out = append(c.out, '}')
	return nil
}

type pair struct{ name, value *yaml.Node }

// flatten returns the pairs of a mapping, with those that it merges in (<<) where it has none of its own.
func flatten(n *yaml.Node, open []*yaml.Node) ([]pair, error) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if slices.Contains(open, n) {
		return nil, fmt.Errorf("line %d: the mapping merges itself", n.Line)
	}
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: only mappings can be merged", n.Line)
	}
	var pairs, merged []pair
	own := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a member's name must be a string", name.Line)
		}
		if name.Tag == "!!merge" {
			sources := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				sources = value.Content
			}
			for _, source := range sources {
				more, err := flatten(source, append(open, n))
				if err != nil {
					return nil, err
				}
				merged = append(merged, more...)
			}
			continue
		}
		if first, twice := own[name.Value]; twice {
			return nil, fmt.Errorf("line %d: the member %q stands in line %d already", name.Line, name.Value, first)
		}
		own[name.Value] = name.Line
		pairs = append(pairs, pair{name, value})
	}
	for _, p := range merged {
		if _, ok := own[p.name.Value]; !ok {
			own[p.name.Value] = p.name.Line
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}

var number = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)

// scalar writes a scalar. Words such as yes and on stay words: only true, false and null mean something else.
func (c *converter) scalar(n *yaml.Node) error {
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch {
	case !plain, n.Style&yaml.TaggedStyle != 0 && n.Tag == "!!str":
		c.text(n.Value)
	case n.Value == "", n.Value == "~", n.Value == "null", n.Value == "Null", n.Value == "NULL":
		c.out = append(c.out, "null"...)
	case n.Value == "true", n.Value == "True", n.Value == "TRUE":
		c.out = strconv.AppendBool(c.out, true)
	case n.Value == "false", n.Value == "False", n.Value == "FALSE":
		c.out = strconv.AppendBool(c.out, false)
	case number.MatchString(n.Value):
		c.out = append(c.out, n.Value...)
	default:
		c.text(n.Value)
	}
	return nil
}

func (c *converter) text(s string) {
	quoted, _ := jsontext.AppendQuote(c.out, strings.ToValidUTF8(s, "\uFFFD")) // always valid
	c.out = quoted
}
