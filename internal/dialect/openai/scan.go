package openai

import (
	"strings"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// A scanner walks a JSON text once, from left to right, and decodes nothing. It does not validate: what it skips is
// only looked at as far as is needed to find its end.
type scanner struct {
	text string
	pos  int
	bad  bool // the text is not well enough formed
}

// space skips white space and returns the character behind it, 0 at the end.
func (s *scanner) space() byte {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.pos++
	}
	return 0
}

// skip skips the next value and returns its text.
func (s *scanner) skip() string {
	c := s.space()
	start := s.pos
	switch c {
	case '"':
		s.pos = s.stringEnd()
	case '{', '[':
		s.pos = jsonpatch.Skip(s.text, s.pos)
	default:
		for s.pos < len(s.text) && isScalar(s.text[s.pos]) {
			s.pos++
		}
		if s.pos == start {
			s.pos = -1
		}
	}
	if s.pos < 0 {
		s.fail()
		return ""
	}
	return s.text[start:s.pos]
}

// isScalar reports whether c can stand in a number, or in true, false and null.
func isScalar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '+' || c == 'E'
}

// stringEnd returns the end of the string whose opening quote is at pos; -1 when it has none.
func (s *scanner) stringEnd() int {
	rest := s.text[s.pos+1:]
	// Most strings are short.
	for i := range min(len(rest), 16) {
		switch rest[i] {
		case '"':
			return s.pos + i + 2
		case '\\':
			return jsonpatch.Skip(s.text, s.pos)
		}
	}
	quote := strings.IndexByte(rest, '"')
	if quote < 0 {
		return -1
	}
	if strings.IndexByte(rest[:quote], '\\') >= 0 {
		return jsonpatch.Skip(s.text, s.pos)
	}
	return s.pos + quote + 2
}

func (s *scanner) fail() {
	s.bad = true
	s.pos = len(s.text)
}

// open enters the object or array that begins with the given bracket. It is false, and skips the value, when the next
// value is another one or is empty.
func (s *scanner) open(bracket byte) bool {
	if s.space() != bracket {
		s.skip()
		return false
	}
	s.pos++
	if c := s.space(); c == bracket+2 { // '{' and '}', '[' and ']' are two apart
		s.pos++
		return false
	}
	return true
}

// more goes on to the next member or element; it is false after the last one.
func (s *scanner) more(bracket byte) bool {
	switch s.space() {
	case ',':
		s.pos++
		return true
	case bracket + 2:
		s.pos++
		return false
	default:
		s.fail()
		return false
	}
}

// name reads the name of the next member, as it is written, and the colon behind it.
func (s *scanner) name() string {
	if s.space() != '"' {
		s.fail()
		return ""
	}
	start, end := s.pos, s.stringEnd()
	if end < 0 {
		s.fail()
		return ""
	}
	s.pos = end
	if s.space() != ':' {
		s.fail()
		return ""
	}
	s.pos++
	return s.text[start+1 : end-1]
}

// asString lends b as a string for scanning. Nothing that is kept may be a part of it.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// text returns the text of a raw JSON string, and "" for any other value.
func text(raw string) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if strings.IndexByte(raw, '\\') < 0 {
		return strings.Clone(raw[1 : len(raw)-1])
	}
	unquoted, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(unquoted)
}

// textSize returns the length of the text of a raw JSON string; 0 for any other value.
func textSize(raw string) int {
	switch {
	case len(raw) < 2 || raw[0] != '"':
		return 0
	case strings.IndexByte(raw, '\\') < 0:
		return len(raw) - 2
	default:
		return len(text(raw))
	}
}

// isSet reports whether a raw value says anything: it is neither absent, null, false, nor empty.
func isSet(raw string) bool {
	switch raw {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return false
	default:
		return true
	}
}
