package gateway

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// The typed values give back every document that they were decoded from. Three things make that so, at every level:
//
//   - A member that a type does not know goes to its Extra.
//   - A value remembers in its origin what its Go members cannot tell: that a member was null, was there although it is
//     zero, or was written in another way than we would write it, such as 1.0, or a number where a text is usual.
//   - What is remembered is written again as long as the Go member is still what was read from it. So a program that
//     sets a member gets what it has set, and everything else stays.
//
// Each type names its members once, in its method members; the codec goes through that list in both directions.

// object is a typed value that is a JSON object. Its members method calls c.object and then one method of the codec for
// each member, always the same ones in the same order. No type has more than 64 members.
type object interface{ members(c *codec) }

// objectPtr is the pointer to a typed value.
type objectPtr[T any] interface {
	*T
	object
}

// origin is what a decoded value remembers of its text. The zero value is that of a value which a program has made.
type origin struct {
	// exceptions has a bit for each member whose presence is not what its Go value says. A member that is zero is
	// written if it is required and omitted if not; where the bit is set it is the other way round.
	exceptions uint64
	nulls      uint64 // members that were null
	odd        *oddText
}

// oddText is the text of a member that has to be remembered as it was.
type oddText struct {
	number int // of the member; wholeText for a value that is no object at all
	text   jsontext.Value
	next   *oddText
}

const wholeText = -1

// A required member is written although it is zero, as the interface wants it to be there.
const required, optional = true, false

// codec decodes or encodes one document.
type codec struct {
	frame

	decoding bool
	doc      []byte  // decoding: the document
	entries  []entry // decoding: the members of the open objects
	buf      []byte  // encoding: the text so far
	bare     bool    // encoding: required members that are zero are left out too
	omitted  bool    // encoding: one was left out
	err      error   // the first one
}

// frame is what the codec knows of the object that it is at.
type frame struct {
	origin *origin
	extra  *jsontext.Value
	number int // of the next member
	first  int // decoding: the object's first entry
	next   int // decoding: the first entry that is left, as documents mostly have their members in order
	left   int // decoding: how many entries nobody has asked for
	start  int // encoding: where in buf the object begins
}

// entry is where in the document a member of an object, or an element of a list, is.
type entry struct {
	name, nameEnd int // between the quotes; none for an element
	value, end    int
	escaped       bool // the name is written with escapes
	taken         bool
}

var (
	errNotObject = errors.New("the value must be a JSON object")
	errMalformed = errors.New("the value is malformed JSON")
)

// codecs keeps what codecs have grown to for the next document. Nothing of it gets to a caller.
var codecs = sync.Pool{New: func() any { return new(codec) }} //nolint:gochecknoglobals // a pool is for all documents

// A codec that has grown further than this is not kept.
const (
	maxKeptBytes   = 64 << 10
	maxKeptEntries = 1 << 10
)

func newCodec() *codec { return codecs.Get().(*codec) } //nolint:forcetypeassert // the pool has nothing else

func (c *codec) free() {
	if cap(c.buf) <= maxKeptBytes && cap(c.entries) <= maxKeptEntries {
		*c = codec{entries: c.entries[:0], buf: c.buf[:0]}
		codecs.Put(c)
	}
}

// decodeInto decodes text, which is valid JSON.
func decodeInto[T any, P objectPtr[T]](text jsontext.Value, into P) error {
	*into = *new(T)
	c := newCodec()
	c.decoding, c.doc = true, text
	at := skipSpace(text, 0)
	if kindAt(text, at) == '{' {
		c.decode(at, into)
	} else {
		c.err = errNotObject
	}
	err := c.err
	c.free()
	return err
}

// encodeDocument encodes o.
func encodeDocument(o object) ([]byte, error) {
	c := newCodec()
	c.encode(o)
	text, err := bytes.Clone(c.buf), c.err
	c.free()
	return text, err
}

// decode decodes the value at a place of the document into the zero value o. A value that is no object is remembered
// as a whole; nothing is decoded, which o remembers too, where the place is absent.
func (c *codec) decode(at int, o object) {
	outer := c.frame
	c.frame = frame{first: len(c.entries), next: len(c.entries)}
	kind := byte(0)
	if at != absent {
		kind = kindAt(c.doc, at)
	}
	if kind == '{' {
		c.index(at)
	}
	c.left = len(c.entries) - c.first
	o.members(c)
	switch {
	case kind != 0 && kind != '{':
		c.remember(wholeText, c.doc[at:max(at, jsonpatch.Skip(c.doc, at))])
	case c.left > 0:
		c.decodeExtra()
	}
	c.entries = c.entries[:c.first]
	c.frame = outer
}

// absent is the place of a value that is not in the document.
const absent = -1

// index makes entries of the members of the object, or of the elements of the list, at a place of the document.
func (c *codec) index(at int) {
	doc, list := c.doc, c.doc[at] == '['
	at = skipSpace(doc, at+1)
	if closing := kindAt(doc, at); closing == '}' || closing == ']' {
		return
	}
	for c.err == nil {
		e := entry{}
		if !list {
			quote := jsonpatch.Skip(doc, at)
			if quote < 0 || kindAt(doc, at) != '"' {
				break
			}
			e.name, e.nameEnd = at+1, quote-1
			e.escaped = bytes.IndexByte(doc[e.name:e.nameEnd], '\\') >= 0
			if at = skipSpace(doc, quote); kindAt(doc, at) != ':' {
				break
			}
			at = skipSpace(doc, at+1)
		}
		e.value, e.end = at, jsonpatch.Skip(doc, at)
		if e.end < 0 {
			break
		}
		c.entries = append(c.entries, e)
		at = skipSpace(doc, e.end)
		switch kindAt(doc, at) {
		case '}', ']':
			return
		case ',':
			at = skipSpace(doc, at+1)
		default:
			c.fail(errMalformed)
			return
		}
	}
	c.fail(errMalformed)
}

// kindAt returns the first byte of what is at a place of a document, and '0' for all numbers.
func kindAt(doc []byte, at int) byte {
	if at >= len(doc) {
		return 0
	}
	if b := doc[at]; b != '-' && (b < '0' || b > '9') {
		return b
	}
	return '0'
}

// isWhole reports whether text is one value from its first byte to its last, if it is valid JSON at all.
func isWhole(text []byte) bool { return jsonpatch.Skip(text, 0) == len(text) }

// kindOf returns the first byte of a value, '0' for all numbers and 0 for none.
func kindOf(value []byte) byte { return kindAt(value, 0) }

func skipSpace(doc []byte, at int) int {
	for at < len(doc) && (doc[at] == ' ' || doc[at] == '\n' || doc[at] == '\r' || doc[at] == '\t') {
		at++
	}
	return at
}

// unescape returns the text of a member's name that is written with escapes, without the quotes.
func unescape(name []byte) []byte {
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	quoted := append(append([]byte{'"'}, name...), '"')
	text, _ := jsontext.AppendUnquote(nil, quoted) // no error: the text is valid
	return text
}

// decodeExtra keeps the members that nobody has asked for.
func (c *codec) decodeExtra() {
	size := 1
	for i := c.first; i < len(c.entries); i++ {
		if e := &c.entries[i]; !e.taken {
			size += e.nameEnd - e.name + e.end - e.value + len(`"":,`)
		}
	}
	extra := append(make([]byte, 0, size), '{')
	for i := c.first; i < len(c.entries); i++ {
		if e := &c.entries[i]; !e.taken {
			if len(extra) > 1 {
				extra = append(extra, ',')
			}
			extra = append(append(extra, c.doc[e.name-1:e.nameEnd+1]...), ':')
			extra = append(extra, c.doc[e.value:e.end]...)
		}
	}
	extra = append(extra, '}')
	*c.extra = extra
}

// encode encodes o.
func (c *codec) encode(o object) {
	outer := c.frame
	c.frame = frame{start: len(c.buf)}
	c.buf = append(c.buf, '{')
	o.members(c)
	c.encodeExtra()
	if c.origin.odd != nil && len(c.buf) == c.start+1 {
		if text := c.remembered(wholeText); text != nil {
			c.buf = append(c.buf[:c.start], text...)
			c.frame = outer
			return
		}
	}
	c.buf = append(c.buf, '}')
	c.frame = outer
}

func (c *codec) encodeExtra() {
	extra := bytes.TrimSpace(*c.extra)
	if len(extra) == 0 {
		return
	}
	if len(extra) < 2 || extra[0] != '{' || extra[len(extra)-1] != '}' {
		c.fail(errors.New("the member Extra must be a JSON object"))
		return
	}
	if inside := bytes.TrimSpace(extra[1 : len(extra)-1]); len(inside) > 0 {
		c.comma()
		c.buf = append(c.buf, inside...)
	}
}

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// object opens an object: it says where the value has what it remembers and its unknown members.
func (c *codec) object(at *origin, extra *jsontext.Value) { c.origin, c.extra = at, extra }

// member begins the next member and returns its number.
func (c *codec) member() int {
	c.number++
	return c.number - 1
}

// find returns the value of the member with the given name, nil if the object has none.
func (c *codec) find(name string) jsontext.Value {
	value, _ := c.locate(name)
	return value
}

// locate returns the value of the member with the given name and its place, nil and absent if the object has none.
func (c *codec) locate(name string) (value jsontext.Value, at int) {
	if e := c.entry(name); e != nil {
		return c.doc[e.value:e.end], e.value
	}
	return nil, absent
}

// entry takes the entry of the member with the given name, nil if the object has none.
func (c *codec) entry(name string) *entry {
	if c.left == 0 {
		return nil
	}
	for i := c.next; i < len(c.entries); i++ {
		if e := &c.entries[i]; (e.nameEnd-e.name == len(name) || e.escaped) && !e.taken && c.isNamed(e, name) {
			e.taken = true
			c.left--
			for c.next < len(c.entries) && c.entries[c.next].taken {
				c.next++
			}
			return e
		}
	}
	return nil
}

func (c *codec) isNamed(e *entry, name string) bool {
	written := c.doc[e.name:e.nameEnd]
	return string(written) == name || e.escaped && string(unescape(written)) == name
}

// keep remembers the text of a member that the Go value does not tell.
func (c *codec) keep(number int, text jsontext.Value) {
	if string(text) == "null" {
		c.origin.nulls |= 1 << number
		return
	}
	c.remember(number, text)
}

func (c *codec) remember(number int, text jsontext.Value) {
	c.origin.odd = &oddText{number: number, text: slices.Clone(text), next: c.origin.odd}
}

// remembered returns the text that was remembered of a member, nil if there is none.
func (c *codec) remembered(number int) jsontext.Value {
	for o := c.origin.odd; o != nil; o = o.next {
		if o.number == number {
			return o.text
		}
	}
	return nil
}

// except notes that the presence of a member is not what its zero value says.
func (c *codec) except(number int) { c.origin.exceptions |= 1 << number }

// zero encodes a member whose Go value is zero. The literal is its text, or empty if it has none but null.
func (c *codec) zero(number int, name, literal string, need bool) {
	bit := uint64(1) << number
	switch {
	case c.origin.nulls&bit != 0:
		literal = "null"
	case literal == "" || need == (c.origin.exceptions&bit != 0):
		return
	case need && c.bare:
		c.omitted = true
		return
	}
	c.name(name)
	c.buf = append(c.buf, literal...)
}

// name encodes the name of a member, which needs no escapes.
func (c *codec) name(name string) {
	c.comma()
	c.buf = append(append(append(c.buf, '"'), name...), '"', ':')
}

func (c *codec) comma() {
	if len(c.buf) > c.start+1 {
		c.buf = append(c.buf, ',')
	}
}

// again encodes a member whose Go value is still what was read from the remembered text.
func (c *codec) again(name string, text jsontext.Value) {
	c.name(name)
	c.buf = append(c.buf, text...)
}

func (c *codec) quote(text string) {
	var err error
	if c.buf, err = jsontext.AppendQuote(c.buf, text); err != nil {
		c.fail(err) // invalid UTF-8
	}
}

// appendFloat writes a number as RFC 8785 has it, which is how json writes it too.
func (c *codec) appendFloat(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		c.fail(errors.New("a number must be finite"))
		return
	}
	c.buf = formatFloat(c.buf, f)
}

func formatFloat(to []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	to = strconv.AppendFloat(to, f, format, -1, 64)
	if n := len(to); format == 'e' && n >= 4 && to[n-4] == 'e' && to[n-2] == '0' {
		to = append(to[:n-2], to[n-1]) // e-09 is e-9
	}
	return to
}
