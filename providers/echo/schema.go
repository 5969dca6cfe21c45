package echo

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// schema is the part of JSON Schema that is understood.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       jsontext.Value     `json:"type"`
	Const      jsontext.Value     `json:"const"`
	Enum       []jsontext.Value   `json:"enum"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	MinItems   int                `json:"minItems"`
	Minimum    jsontext.Value     `json:"minimum"`
	AnyOf      []*schema          `json:"anyOf"`
	OneOf      []*schema          `json:"oneOf"`
	AllOf      []*schema          `json:"allOf"`
	Defs       map[string]*schema `json:"$defs"`
	Old        map[string]*schema `json:"definitions"`
}

// maxSchemaDepth ends schemas that contain themselves.
const maxSchemaDepth = 32

// instanceOf returns the smallest document that a schema admits, with text in its strings, or {} when the schema is not
// understood.
func instanceOf(raw jsontext.Value, text string) string {
	var root schema
	if raw.Kind() != '{' || json.Unmarshal(raw, &root, jsontext.AllowDuplicateNames(true)) != nil {
		return "{}"
	}
	m := maker{root: &root, text: text}
	return string(m.add(nil, &root, 0))
}

type maker struct {
	root *schema
	text string
}

// add appends an instance of s.
func (m *maker) add(out []byte, s *schema, depth int) []byte {
	if s == nil || depth > maxSchemaDepth {
		return append(out, "null"...)
	}
	if s.Ref != "" {
		return m.add(out, m.resolve(s.Ref), depth+1)
	}
	for _, alternatives := range [][]*schema{s.AnyOf, s.OneOf, s.AllOf} {
		if len(alternatives) > 0 {
			return m.add(out, alternatives[0], depth+1)
		}
	}
	switch {
	case s.Const != nil:
		return append(out, s.Const...)
	case len(s.Enum) > 0:
		return append(out, s.Enum[0]...)
	}
	switch s.kind() {
	case "object":
		return m.addObject(out, s, depth)
	case "array":
		out = append(out, '[')
		for i := range min(max(s.MinItems, 0), 100) {
			if i > 0 {
				out = append(out, ',')
			}
			out = m.add(out, s.Items, depth+1)
		}
		return append(out, ']')
	case "string":
		quoted, err := jsontext.AppendQuote(out, m.text)
		if err != nil {
			return append(out, `""`...)
		}
		return quoted
	case "integer", "number":
		if s.Minimum.Kind() == '0' {
			return append(out, s.Minimum...)
		}
		return append(out, '0')
	case "boolean":
		return append(out, "false"...)
	default:
		return append(out, "null"...)
	}
}

func (m *maker) addObject(out []byte, s *schema, depth int) []byte {
	out = append(out, '{')
	for i, name := range s.Required {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, name) // never fails: JSON has given us the text
		out = append(out, ':')
		property := s.Properties[name]
		if property == nil {
			property = &schema{Type: jsontext.Value(`"string"`)}
		}
		out = m.add(out, property, depth+1)
	}
	return append(out, '}')
}

// kind returns the type of an instance: the first that is not null when there is a choice.
func (s *schema) kind() string {
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return one
	}
	var several []string
	_ = json.Unmarshal(s.Type, &several)
	for _, kind := range several {
		if kind != "null" {
			return kind
		}
	}
	if s.Properties != nil || s.Type == nil {
		return "object"
	}
	return "null"
}

// resolve finds what a reference within the document names.
func (m *maker) resolve(ref string) *schema {
	if ref == "#" {
		return m.root
	}
	if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
		return m.root.Defs[name]
	}
	if name, ok := strings.CutPrefix(ref, "#/definitions/"); ok {
		return m.root.Old[name]
	}
	return nil
}
