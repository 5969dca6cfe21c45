package jsonpatch

import (
	"strings"
	"unsafe"
)

// text is JSON text in either form.
type text interface{ ~string | ~[]byte }

// maxDepth bounds the nesting that Skip follows. It is that of package jsontext, so what Parse accepts can be walked.
const maxDepth = 10_000

// Skip returns the offset just after the value that begins at pos, or after white space at pos, and -1 when the text
// is not well enough formed to tell, or nested deeper than 10,000 levels. It does not validate: a string ends at its
// closing quote, an object or array where as many brackets are closed as were opened, whichever they are.
func Skip[T text](doc T, pos int) int {
	return skip(view(doc), pos)
}

// Find returns the raw value of the first member of the object with that name, and whether there is one. A member
// whose name is written with escapes is not found. Text behind that member is not looked at.
func Find[T text](object T, name string) (value T, ok bool) {
	doc := view(object)
	walk(doc, '{', func(s span) bool {
		written := doc[s.nameStart+1 : s.nameEnd-1]
		ok = written == name && strings.IndexByte(written, '\\') < 0
		if ok {
			value = object[s.start:s.end]
		}
		return !ok
	})
	return value, ok
}

// EachMember calls f with the name (without quotes, escapes as written) and the raw value of each member of the
// object, until f returns false. It reports whether the text could be walked as far as it was. Text behind the object
// is not looked at.
func EachMember[T text](object T, f func(name, value T) bool) bool {
	return walk(view(object), '{', func(s span) bool {
		return f(object[s.nameStart+1:s.nameEnd-1], object[s.start:s.end])
	})
}

// EachElement calls f with the raw value of each element of the array, until f returns false. It reports whether the
// text could be walked as far as it was. Text behind the array is not looked at.
func EachElement[T text](array T, f func(value T) bool) bool {
	return walk(view(array), '[', func(s span) bool { return f(array[s.start:s.end]) })
}

// view returns the text as a string without a copy. It must not outlive the call that it was made for.
//
// A conversion would copy: the compiler does not know that nobody writes to the bytes meanwhile.
func view[T text](doc T) string {
	return *(*string)(unsafe.Pointer(&doc)) // a slice begins with what a string is: pointer and length
}

// span is where one member or element stands: its name, if it has one, quotes included, and its value.
type span struct{ nameStart, nameEnd, start, end int }

// walk calls f for each member of the object, or each element of the array, that opens with the given bracket, until
// f returns false. It reports whether the text could be walked as far as it was.
func walk(doc string, open byte, f func(span) bool) bool {
	pos := skipSpace(doc, 0)
	if !at(doc, pos, open) {
		return false
	}
	closing := open + 2 // '{' and '}', '[' and ']' are two apart
	if pos = skipSpace(doc, pos+1); at(doc, pos, closing) {
		return true
	}
	for {
		var s span
		if open == '{' {
			if !at(doc, pos, '"') {
				return false
			}
			s.nameStart, s.nameEnd = pos, skipString(doc, pos)
			if s.nameEnd < 0 {
				return false
			}
			if pos = skipSpace(doc, s.nameEnd); !at(doc, pos, ':') {
				return false
			}
			pos = skipSpace(doc, pos+1)
		}
		s.start, s.end = pos, skip(doc, pos)
		if s.end < 0 {
			return false
		}
		// What follows is looked at first: a value that was cut off, as the 12 of {"n":12, is not one.
		pos = skipSpace(doc, s.end)
		last := at(doc, pos, closing)
		if !last && !at(doc, pos, ',') {
			return false
		}
		if !f(s) || last {
			return true
		}
		pos = skipSpace(doc, pos+1)
	}
}

func at(doc string, pos int, c byte) bool { return pos < len(doc) && doc[pos] == c }

func skip(doc string, pos int) int {
	if pos < 0 {
		return -1
	}
	if pos = skipSpace(doc, pos); pos >= len(doc) {
		return -1
	}
	switch doc[pos] {
	case '"':
		return skipString(doc, pos)
	case '{', '[':
		return skipNested(doc, pos)
	default:
		return skipScalar(doc, pos)
	}
}

func skipSpace(doc string, pos int) int {
	for pos < len(doc) && (doc[pos] == ' ' || doc[pos] == '\n' || doc[pos] == '\t' || doc[pos] == '\r') {
		pos++
	}
	return pos
}

// skipScalar skips the number, true, false or null at pos.
func skipScalar(doc string, pos int) int {
	end := pos
	for end < len(doc) && isScalar(doc[end]) {
		end++
	}
	if end == pos {
		return -1
	}
	return end
}

func isScalar(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '.' || c == '+' || c == 'E'
}

// skipString skips the string whose opening quote is at pos.
func skipString(doc string, pos int) int {
	pos++
	// Most strings are names and short values: they end before a call of IndexByte would have begun to pay.
	for near := min(pos+shortString, len(doc)); pos < near; pos++ {
		switch doc[pos] {
		case '"':
			return pos + 1
		case '\\':
			pos++
		}
	}
	for pos < len(doc) {
		length := strings.IndexByte(doc[pos:], '"')
		if length < 0 {
			return -1
		}
		stretch := doc[pos : pos+length]
		pos += length + 1
		// An odd number of backslashes before the quote escapes it. They are counted back to the quote before at
		// most, so none is counted twice.
		backslashes := len(stretch) - len(strings.TrimRight(stretch, `\`))
		if backslashes%2 == 0 {
			return pos
		}
	}
	return -1
}

const shortString = 16

// skipNested skips the object or array that opens at pos.
func skipNested(doc string, pos int) int {
	for depth := 0; pos < len(doc); pos++ {
		switch doc[pos] {
		case '"':
			end := skipString(doc, pos)
			if end < 0 {
				return -1
			}
			pos = end - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return -1
			}
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		}
	}
	return -1
}
