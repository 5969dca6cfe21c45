package jsonpatch

import (
	"math/bits"
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
	if pos < 0 {
		return -1
	}
	s := view(doc)
	return skipValue(s, skipSpace(s, pos))
}

// Find returns the raw value of the first member of the object with that name, and whether there is one. A member
// whose name is written with escapes is not found. Text after that member is not looked at.
func Find[T text](object T, name string) (value T, ok bool) {
	if strings.IndexByte(name, '\\') >= 0 {
		return value, false // it can only be written with escapes
	}
	w := walkObject(view(object))
	for w.next() {
		if w.doc[w.nameStart+1:w.nameEnd-1] == name {
			return object[w.start:w.end], true
		}
	}
	return value, false
}

// EachMember calls f with the name (without quotes, escapes as written) and the raw value of each member of the
// object, until f returns false. It reports whether the text could be walked as far as it was. Text after the object
// is not looked at.
func EachMember[T text](object T, f func(name, value T) bool) bool {
	w := walkObject(view(object))
	for w.next() {
		if !f(object[w.nameStart+1:w.nameEnd-1], object[w.start:w.end]) {
			return true
		}
	}
	return !w.bad
}

// EachElement calls f with the raw value of each element of the array, until f returns false. It reports whether the
// text could be walked as far as it was. Text after the array is not looked at.
func EachElement[T text](array T, f func(value T) bool) bool {
	w := walkArray(view(array))
	for w.next() {
		if !f(array[w.start:w.end]) {
			return true
		}
	}
	return !w.bad
}

// view returns the text as a string without a copy. It must not outlive the call that it was made for.
//
// A conversion would copy: the compiler does not know that nobody writes to the bytes meanwhile.
func view[T text](doc T) string {
	return *(*string)(unsafe.Pointer(&doc)) // a slice begins with what a string is: pointer and length
}

// walker goes from member to member of an object, or from element to element of an array.
type walker struct {
	doc     string
	closing byte
	pos     int // where the next member or element begins, after white space
	done    bool
	bad     bool // the text is not well enough formed

	// The member or element that next has found; an element has no name. Quotes belong to the name.
	nameStart, nameEnd, start, end int
}

func walkObject(doc string) walker { return walk(doc, '{', '}') }
func walkArray(doc string) walker  { return walk(doc, '[', ']') }

func walk(doc string, opening, closing byte) walker {
	w := walker{doc: doc, closing: closing, pos: skipSpace(doc, 0)}
	if !at(doc, w.pos, opening) {
		w.bad = true
		return w
	}
	w.pos = skipSpace(doc, w.pos+1)
	w.done = at(doc, w.pos, closing)
	return w
}

// next finds the next member or element. It is false after the last one, and where the text is malformed.
func (w *walker) next() bool {
	if w.done || w.bad {
		return false
	}
	doc, pos := w.doc, w.pos
	w.bad = true // until all is well
	if w.closing == '}' {
		if !at(doc, pos, '"') {
			return false
		}
		w.nameStart, w.nameEnd = pos, skipString(doc, pos)
		if w.nameEnd < 0 {
			return false
		}
		if pos = skipSpace(doc, w.nameEnd); !at(doc, pos, ':') {
			return false
		}
		pos = skipSpace(doc, pos+1)
	}
	w.start, w.end = pos, skipValue(doc, pos)
	if w.end < 0 {
		return false
	}
	// What follows is looked at too: a value that was cut off, as the 12 of {"n":12, is not one.
	pos = skipSpace(doc, w.end)
	w.done = at(doc, pos, w.closing)
	if !w.done && !at(doc, pos, ',') {
		return false
	}
	w.pos = skipSpace(doc, pos+1)
	w.bad = false
	return true
}

func at(doc string, pos int, c byte) bool { return pos < len(doc) && doc[pos] == c }

// skipValue skips the value at pos.
func skipValue(doc string, pos int) int {
	if pos >= len(doc) {
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
	for pos < len(doc) && doc[pos] <= ' ' && isSpace(doc[pos]) {
		pos++
	}
	return pos
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

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
	// Most strings are names and short values, which end before a call of IndexByte begins to pay.
	for far := pos + 32; pos < far && pos+8 <= len(doc); pos += 8 {
		if found := specials(load(doc[pos : pos+8])); found != 0 {
			pos += bits.TrailingZeros64(found) / 8
			if doc[pos] == '"' {
				return pos + 1
			}
			break
		}
	}
	for pos < len(doc) {
		length := strings.IndexByte(doc[pos:], '"')
		if length < 0 {
			return -1
		}
		quote := pos + length
		// It is escaped when an odd number of backslashes stands before it. They are counted back to the quote before
		// at most, so that none is counted twice.
		first := quote
		for first > pos && doc[first-1] == '\\' {
			first--
		}
		pos = quote + 1
		if (quote-first)%2 == 0 {
			return pos
		}
	}
	return -1
}

// specials returns a number whose lowest one bit is in the byte of the first quote or backslash; 0 without any.
func specials(word uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	q, b := word^ones*'"', word^ones*'\\'
	return ((q-ones)&^q | (b-ones)&^b) & highs // the lowest high bit that is left is of the first byte that was zero
}

// load returns eight bytes as one number, the first byte lowest.
func load(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

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
