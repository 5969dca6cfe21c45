package jsonpatch

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// checker checks a document in one pass and notes its outermost members. It takes less than a fifth of the time of
// package jsontext, which matters for long prompts. It only ever says yes: where a document is wrong, or has something
// that real ones hardly have (an escape in a name, an object with very many members, very deep nesting), it gives up,
// and jsontext decides and says what is wrong. A fuzz test holds the two against each other.
type checker struct {
	doc     string
	members [manyMembers]Member // arrays: a slice that grows would have to be on the heap
	count   int
	names   [checkedNames]span // of the objects that are open, one behind the other
	open    int
}

// span is where a name stands, without its quotes.
type span struct{ start, end int }

const (
	checkedDepth = 200
	checkedNames = 64 // of all objects that are open at once; those of one are compared with one another
)

// check reports whether the document is certainly a valid object.
func (c *checker) check() bool {
	pos := skipSpace(c.doc, 0)
	if !at(c.doc, pos, '{') {
		return false
	}
	end := c.object(pos, 1)
	return end >= 0 && skipSpace(c.doc, end) == len(c.doc)
}

// value returns the end of the value at pos, -1 when it gives up. So do the others.
func (c *checker) value(pos, depth int) int {
	if pos >= len(c.doc) || depth > checkedDepth {
		return -1
	}
	switch c.doc[pos] {
	case '"':
		end, _ := c.text(pos)
		return end
	case '{':
		return c.object(pos, depth)
	case '[':
		return c.array(pos, depth)
	case 't':
		return c.literal(pos, "true")
	case 'f':
		return c.literal(pos, "false")
	case 'n':
		return c.literal(pos, "null")
	default:
		return c.number(pos)
	}
}

func (c *checker) literal(pos int, literal string) int {
	if end := pos + len(literal); end <= len(c.doc) && c.doc[pos:end] == literal {
		return end
	}
	return -1
}

// object is called with the offset of the opening bracket.
func (c *checker) object(pos, depth int) int {
	base := c.open
	pos = skipSpace(c.doc, pos+1)
	if at(c.doc, pos, '}') {
		return pos + 1
	}
	for {
		if !at(c.doc, pos, '"') {
			return -1
		}
		end, escaped := c.text(pos)
		if end < 0 || escaped || !c.addName(base, span{pos + 1, end - 1}) {
			return -1
		}
		start := skipSpace(c.doc, end)
		if !at(c.doc, start, ':') {
			return -1
		}
		start = skipSpace(c.doc, start+1)
		if end = c.value(start, depth+1); end < 0 {
			return -1
		}
		if depth == 1 {
			if c.count == len(c.members) {
				return -1
			}
			c.members[c.count] = Member{NameStart: pos, ValueStart: start, ValueEnd: end}
			c.count++
		}
		pos = skipSpace(c.doc, end)
		if at(c.doc, pos, '}') {
			c.open = base
			return pos + 1
		}
		if !at(c.doc, pos, ',') {
			return -1
		}
		pos = skipSpace(c.doc, pos+1)
	}
}

// addName is false for a name that the object has already, and for one too many.
func (c *checker) addName(base int, name span) bool {
	if c.open == len(c.names) {
		return false
	}
	text := c.doc[name.start:name.end]
	for _, other := range c.names[base:c.open] {
		if c.doc[other.start:other.end] == text {
			return false
		}
	}
	c.names[c.open] = name
	c.open++
	return true
}

func (c *checker) array(pos, depth int) int {
	pos = skipSpace(c.doc, pos+1)
	if at(c.doc, pos, ']') {
		return pos + 1
	}
	for {
		end := c.value(pos, depth+1)
		if end < 0 {
			return -1
		}
		pos = skipSpace(c.doc, end)
		if at(c.doc, pos, ']') {
			return pos + 1
		}
		if !at(c.doc, pos, ',') {
			return -1
		}
		pos = skipSpace(c.doc, pos+1)
	}
}

// number follows the grammar of RFC 8259, section 6.
func (c *checker) number(pos int) int {
	if at(c.doc, pos, '-') {
		pos++
	}
	if at(c.doc, pos, '0') {
		pos++
	} else if pos = c.digits(pos); pos < 0 {
		return -1
	}
	if at(c.doc, pos, '.') {
		if pos = c.digits(pos + 1); pos < 0 {
			return -1
		}
	}
	if at(c.doc, pos, 'e') || at(c.doc, pos, 'E') {
		pos++
		if at(c.doc, pos, '+') || at(c.doc, pos, '-') {
			pos++
		}
		return c.digits(pos)
	}
	return pos
}

func (c *checker) digits(pos int) int {
	start := pos
	for pos < len(c.doc) && c.doc[pos] >= '0' && c.doc[pos] <= '9' {
		pos++
	}
	if pos == start {
		return -1
	}
	return pos
}

// text returns the end of the string whose opening quote is at pos, and whether there are escapes in it. The stretches
// between escapes are looked at by the fast searches of package strings, and by ordinary.
func (c *checker) text(pos int) (end int, escaped bool) {
	pos++
	quote := strings.IndexByte(c.doc[pos:], '"')
	if quote < 0 {
		return -1, false
	}
	quote += pos
	for {
		backslash := strings.IndexByte(c.doc[pos:quote], '\\')
		if backslash < 0 {
			if !ordinary(c.doc[pos:quote]) {
				return -1, escaped
			}
			return quote + 1, escaped
		}
		escaped = true
		if !ordinary(c.doc[pos : pos+backslash]) {
			return -1, true
		}
		if pos = c.escape(pos + backslash); pos < 0 {
			return -1, true
		}
		if pos > quote { // that quote was escaped
			if quote = strings.IndexByte(c.doc[pos:], '"'); quote < 0 {
				return -1, true
			}
			quote += pos
		}
	}
}

// ordinary reports whether a text without quotes and backslashes is valid UTF-8 without control characters.
func ordinary(text string) bool {
	const (
		word   = 8
		highs  = 0x8080808080808080
		spaces = 0x2020202020202020
	)
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	if len(b) < word {
		var all byte
		for _, c := range b {
			if c < ' ' {
				return false
			}
			all |= c
		}
		return all < utf8.RuneSelf || utf8.ValidString(text)
	}
	// Eight bytes at once: taking a space from each borrows from above where there is a control character, and only
	// then. It sets the high bit of that byte, which bytes outside ASCII have anyway.
	last := binary.LittleEndian.Uint64(b[len(b)-word:])
	outside, control := last, (last-spaces)&^last
	for ; len(b) >= 4*word; b = b[4*word:] {
		w, x := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[word:])
		y, z := binary.LittleEndian.Uint64(b[2*word:]), binary.LittleEndian.Uint64(b[3*word:])
		outside |= w | x | y | z
		control |= (w-spaces)&^w | (x-spaces)&^x | (y-spaces)&^y | (z-spaces)&^z
	}
	for ; len(b) >= word; b = b[word:] {
		w := binary.LittleEndian.Uint64(b)
		outside |= w
		control |= (w - spaces) &^ w
	}
	return control&highs == 0 && (outside&highs == 0 || utf8.ValidString(text))
}

// escape returns the end of the escape at pos.
func (c *checker) escape(pos int) int {
	if pos+1 >= len(c.doc) {
		return -1
	}
	switch c.doc[pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 2
	case 'u':
	default:
		return -1
	}
	switch unit := c.hex(pos); {
	case unit < 0, unit >= 0xDC00 && unit <= 0xDFFF:
		return -1
	case unit < 0xD800 || unit > 0xDFFF:
		return pos + 6
	}
	if low := c.hex(pos + 6); low < 0xDC00 || low > 0xDFFF {
		return -1 // the first half of a pair, without the second
	}
	return pos + 12
}

// hex returns the code unit of the \uXXXX at pos, -1 if there is none.
func (c *checker) hex(pos int) int {
	if pos+6 > len(c.doc) || c.doc[pos] != '\\' || c.doc[pos+1] != 'u' {
		return -1
	}
	unit := 0
	for _, d := range []byte(c.doc[pos+2 : pos+6]) {
		switch {
		case d >= '0' && d <= '9':
			unit = unit<<4 + int(d-'0')
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			unit = unit<<4 + int(d|0x20-'a') + 10
		default:
			return -1
		}
	}
	return unit
}
