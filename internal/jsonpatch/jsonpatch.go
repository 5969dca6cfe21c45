// Package jsonpatch changes outermost members of a JSON object by splicing its text, so that every byte which is not
// to change stays as it was written. It also walks JSON text without decoding it.
package jsonpatch

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a valid JSON object document and the places of its outermost members. It is immutable and cheap to copy.
// The zero Object is that of the document {}.
type Object struct {
	doc     []byte
	members []Member
}

// Member is one member of the outermost object: its name, unescaped, and where it stands in the document. NameStart is
// the offset of the name's opening quote.
type Member struct {
	Name                            string
	NameStart, ValueStart, ValueEnd int
}

// Parse checks that doc is one JSON object and nothing else, and finds its outermost members. It is strict: RFC 8259
// with the limits of RFC 7493 (unique names in every object, valid UTF-8, no lone surrogates), nested up to 10,000
// levels. Numbers may have any size. The error is a [*SyntaxError].
//
// The Object keeps doc, which must not be written to as long as the Object is used.
func Parse(doc []byte) (Object, error) {
	doc = slices.Clip(doc)
	var members []Member
	if c := (checker{doc: view(doc)}); c.check() {
		members = append(make([]Member, 0, c.count), c.members[:c.count]...)
	} else {
		var err error
		if members, err = parseStrictly(doc); err != nil {
			return Object{}, err
		}
	}
	nameMembers(doc, members)
	return Object{doc, members}, nil
}

// parseStrictly has package jsontext check the document.
func parseStrictly(doc []byte) (members []Member, err error) {
	if !jsontext.Value(doc).IsValid() {
		return nil, diagnose(doc)
	}
	w := walkObject(view(doc))
	for w.next() {
		members = append(members, Member{NameStart: w.nameStart, ValueStart: w.start, ValueEnd: w.end})
	}
	if w.bad {
		return nil, notObject(doc)
	}
	return members, nil
}

// manyMembers is more than most requests have: a list of that size is built on the stack.
const manyMembers = 32

// nameMembers fills in the names, which share one allocation.
func nameMembers(doc []byte, members []Member) {
	var names strings.Builder
	size := 0
	for i := range members {
		size += nameEnd(doc, &members[i]) - members[i].NameStart // at least
	}
	names.Grow(size)
	for i := range members {
		m := &members[i]
		start := names.Len()
		quoted := doc[m.NameStart:nameEnd(doc, m)]
		plain := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(plain, '\\') >= 0 {
			plain, _ = jsontext.AppendUnquote(nil, quoted) // no error: the document is valid
		}
		names.Write(plain)
		m.Name = names.String()[start:]
	}
}

func nameEnd(doc []byte, m *Member) int { return skipString(view(doc), m.NameStart) }

// Bytes returns the document. It must not be written to.
func (o Object) Bytes() []byte {
	if o.doc == nil {
		return []byte("{}")
	}
	return o.doc
}

// Members returns the outermost members in their order. The slice must not be written to.
func (o Object) Members() []Member { return o.members }

// Get returns the raw value of an outermost member and whether there is one. It must not be written to.
func (o Object) Get(name string) (jsontext.Value, bool) {
	for i := range o.members {
		if m := &o.members[i]; m.Name == name {
			return o.doc[m.ValueStart:m.ValueEnd:m.ValueEnd], true
		}
	}
	return nil, false
}
