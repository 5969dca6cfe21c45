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
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// skip skips the next value and returns its text.
func (s *scanner) skip() string {
	c := s.space()
	start := s.pos
	end := -1
	if c == '"' {
		end = s.stringEnd()
	} else {
		end = jsonpatch.Skip(s.text, s.pos)
	}
	if end < 0 {
		s.fail()
		return ""
	}
	s.pos = end
	return s.text[start:end]
}

// stringEnd returns the end of the string whose opening quote is at pos.
func (s *scanner) stringEnd() int {
	// Most strings are short and without escapes.
	for i := s.pos + 1; i < len(s.text) && i < s.pos+32; i++ {
		switch s.text[i] {
		case '"':
			return i + 1
		case '\\':
			return jsonpatch.Skip(s.text, s.pos)
		}
	}
	return jsonpatch.Skip(s.text, s.pos)
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
