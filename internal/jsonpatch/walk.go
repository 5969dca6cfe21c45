package jsonpatch

import (
	"bytes"
	"strings"
)

// text is JSON text in either form.
type text interface{ ~string | ~[]byte }

// maxDepth bounds the nesting that Skip follows.
const maxDepth = 10_000

// Skip returns the offset just after the value that begins at pos, or after white space at pos, and -1 when the text
// is not well enough formed to tell. It does not validate.
func Skip[T text](doc T, pos int) int {
	pos = skipSpace(doc, pos)
	if pos < 0 || pos >= len(doc) {
		return -1
	}
	switch doc[pos] {
	case '"':
		return skipString(doc, pos)
	case '{', '[':
		return skipNested(doc, pos)
	case '}', ']', ',', ':':
		return -1
	}
	for pos++; pos < len(doc); pos++ {
		switch doc[pos] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\n', '\r':
			return pos
		}
	}
	return pos
}

// skipString skips the string whose opening quote is at pos.
func skipString[T text](doc T, pos int) int {
	pos++
	for {
		next := indexByte(doc[pos:], '"')
		if next < 0 {
			return -1
		}
		// The quote is escaped when an odd number of backslashes stands before it. Backslashes are counted no further
		// back than pos, which is behind the last quote: no stretch is counted twice.
		end := pos + next
		backslashes := 0
		for i := end - 1; i >= pos && doc[i] == '\\'; i-- {
			backslashes++
		}
		pos = end + 1
		if backslashes%2 == 0 {
			return pos
		}
	}
}

// skipNested skips the object or array that opens at pos.
func skipNested[T text](doc T, pos int) int {
	depth := 0
	for pos < len(doc) {
		switch doc[pos] {
		case '"':
			if pos = skipString(doc, pos); pos < 0 {
				return -1
			}
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				return -1
			}
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		}
		pos++
	}
	return -1
}

func skipSpace[T text](doc T, pos int) int {
	for pos >= 0 && pos < len(doc) {
		switch doc[pos] {
		case ' ', '\t', '\n', '\r':
			pos++
		default:
			return pos
		}
	}
	return pos
}

func indexByte[T text](s T, c byte) int {
	switch s := any(s).(type) {
	case string:
		return strings.IndexByte(s, c)
	case []byte:
		return bytes.IndexByte(s, c)
	}
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// span is one member or element: where its name (if any) and its value stand, quotes included.
type span struct{ nameStart, nameEnd, start, end int }

// walk calls f for each member of the object, or each element of the array, that begins at or after white space at
// pos. It returns the offset after the closing bracket, -1 when the text is malformed, and -2 when f stopped it.
func walk[T text](doc T, pos int, open, closing byte, f func(span) bool) int {
	pos = skipSpace(doc, pos)
	if pos >= len(doc) || doc[pos] != open {
		return -1
	}
	if pos = skipSpace(doc, pos+1); pos < len(doc) && doc[pos] == closing {
		return pos + 1
	}
	for pos < len(doc) {
		var s span
		if open == '{' {
			if doc[pos] != '"' {
				return -1
			}
			s.nameStart = pos
			if s.nameEnd = skipString(doc, pos); s.nameEnd < 0 {
				return -1
			}
			if pos = skipSpace(doc, s.nameEnd); pos >= len(doc) || doc[pos] != ':' {
				return -1
			}
			pos = skipSpace(doc, pos+1)
		}
		s.start = pos
		if s.end = Skip(doc, pos); s.end < 0 {
			return -1
		}
		if !f(s) {
			return -2
		}
		if pos = skipSpace(doc, s.end); pos >= len(doc) {
			return -1
		}
		switch doc[pos] {
		case closing:
			return pos + 1
		case ',':
			pos = skipSpace(doc, pos+1)
		default:
			return -1
		}
	}
	return -1
}

// Find returns the raw value of the first member of the object with that name, and whether there is one. It compares
// names as they are written: one with escapes is not found.
func Find[T text](object T, name string) (value T, ok bool) {
	EachMember(object, func(n, v T) bool {
		ok = string(n) == name
		if ok {
			value = v
		}
		return !ok
	})
	return value, ok
}

// EachMember calls f with the name (without quotes, escapes as written) and the raw value of each member of the
// object, until f returns false. It reports whether the text could be walked as far as it was.
func EachMember[T text](object T, f func(name, value T) bool) bool {
	return walk(object, 0, '{', '}', func(s span) bool {
		return f(object[s.nameStart+1:s.nameEnd-1], object[s.start:s.end])
	}) != -1
}

// EachElement calls f with the raw value of each element of the array, until f returns false. It reports whether the
// text could be walked as far as it was.
func EachElement[T text](array T, f func(value T) bool) bool {
	return walk(array, 0, '[', ']', func(s span) bool { return f(array[s.start:s.end]) }) != -1
}
