package jsonpatch

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Edit is a change of one outermost member. With Value it sets the member, in place or, when it is absent, at the end.
// With NewName it renames the member, if there is one, and another member of that name makes way. With both it sets and
// then renames; with neither it removes.
//
// Value must be one valid JSON value, or empty, which is the same as nil. Names must be valid UTF-8.
type Edit struct {
	Name    string
	Value   jsontext.Value
	NewName string
}

// Apply returns the document with the edits made one after the other, so that each sees what those before it did. Text
// that no edit touches stays as it is. A removed member takes one comma along: the one before it, or, when no member is
// left before it, the one after it. When nothing changes, Apply returns the document itself: the result must not be
// written to.
func (o Object) Apply(edits ...Edit) []byte {
	if out, ok := o.set(edits); ok {
		return out
	}
	return o.apply(edits)
}

// set makes edits that only set members, as most do: few, and each of another one. It is false when there are others.
func (o Object) set(edits []Edit) (out []byte, ok bool) {
	var few [4]stretch
	if len(edits) > len(few) {
		return nil, false
	}
	doc := o.Bytes()
	_, end := o.inside()
	size, count := len(doc), 0
	for i, e := range edits {
		if e.NewName != "" || len(e.Value) == 0 {
			return nil, false
		}
		for _, other := range edits[:i] {
			if other.Name == e.Name {
				return nil, false
			}
		}
		s := stretch{from: end, to: end, edit: i}
		for _, m := range o.members {
			if m.Name == e.Name {
				s.from, s.to = m.ValueStart, m.ValueEnd
			}
		}
		at := count
		for ; at > 0 && few[at-1].from > s.from; at-- {
			few[at] = few[at-1]
		}
		few[at] = s
		count++
		size += len(`,"":`) + len(e.Name) + len(e.Value)
	}
	return o.join(few[:count], edits, size), true
}

// stretch is a value that makes way for an edit's; an empty one at the end is a member to be added.
type stretch struct{ from, to, edit int }

func (o Object) join(stretches []stretch, edits []Edit, size int) []byte {
	doc := o.Bytes()
	out := splicer{doc: doc, size: size}
	at := 0
	first := len(o.members) == 0
	for _, s := range stretches {
		e := edits[s.edit]
		out.keep(at, s.from)
		if s.from == s.to {
			if !first {
				out.add(",")
			}
			out.addName(e.Name)
			out.add(":")
			first = false
		}
		if s.from == s.to || !bytes.Equal(e.Value, doc[s.from:s.to]) {
			out.add(view(e.Value))
		} else {
			out.keep(s.from, s.to)
		}
		at = s.to
	}
	out.keep(at, len(doc))
	return out.bytes()
}

func (o Object) apply(edits []Edit) []byte {
	var few [manyMembers]part
	parts := few[:0]
	for i := range o.members {
		parts = append(parts, part{name: o.members[i].Name})
	}
	growth := 0
	for i := range edits {
		e := &edits[i]
		growth += len(`,"":`) + len(e.Name) + len(e.NewName) + len(e.Value) // at most, but for escapes in the names
	}
	return o.splice(change(parts, edits), growth)
}

// part is what becomes of a member: first come those of the document, in their order, then those that are added.
type part struct {
	name    string
	value   jsontext.Value // empty: the document's own
	removed bool
}

// change makes the edits in the list of members.
func change(parts []part, edits []Edit) []part {
	next := 0
	for k := range edits {
		e := &edits[k]
		i := find(parts, e.Name, next)
		if i < 0 {
			if len(e.Value) == 0 {
				continue
			}
			i = len(parts)
			parts = append(parts, part{name: e.Name})
		}
		next = i + 1
		if len(e.Value) > 0 {
			parts[i].value = e.Value
		}
		switch {
		case e.NewName != "" && e.NewName != e.Name:
			if other := find(parts, e.NewName, next); other >= 0 {
				parts[other].removed = true
			}
			parts[i].name = e.NewName
		case e.NewName == "" && len(e.Value) == 0:
			parts[i].removed = true
		}
	}
	return parts
}

// find returns the index of the part with that name, -1 when there is none. It begins at start and goes round, so that
// many edits in the order of many members do not cost the product of the two.
func find(parts []part, name string, start int) int {
	for k := range parts {
		i := start + k
		if i >= len(parts) {
			i -= len(parts)
		}
		if p := &parts[i]; p.name == name && !p.removed {
			return i
		}
	}
	return -1
}

// splice writes the document as the parts have it.
func (o Object) splice(parts []part, growth int) []byte {
	doc := o.Bytes()
	out := splicer{doc: doc, size: len(doc) + growth}
	start, end := o.inside()
	out.keep(0, start)
	first := true
	for i := range parts {
		switch p := &parts[i]; {
		case p.removed:
			continue
		case i < len(o.members):
			if !first {
				out.keep(o.members[i-1].ValueEnd, o.members[i].NameStart) // the comma, and the space around it
			}
			o.spliceMember(&o.members[i], p, &out)
		default:
			if !first {
				out.add(",")
			}
			out.addName(p.name)
			out.add(":")
			out.add(view(p.value))
		}
		first = false
	}
	out.keep(end, len(doc))
	return out.bytes()
}

func (o Object) spliceMember(m *Member, p *part, out *splicer) {
	if p.name == m.Name {
		out.keep(m.NameStart, m.ValueStart)
	} else {
		out.addName(p.name)
		out.keep(nameEnd(o.doc, m), m.ValueStart)
	}
	if len(p.value) == 0 || bytes.Equal(p.value, o.doc[m.ValueStart:m.ValueEnd]) {
		out.keep(m.ValueStart, m.ValueEnd)
	} else {
		out.add(view(p.value))
	}
}

// inside returns where the first member begins and the last one ends; without members, both are the closing bracket.
func (o Object) inside() (start, end int) {
	if n := len(o.members); n > 0 {
		return o.members[0].NameStart, o.members[n-1].ValueEnd
	}
	end = bytes.IndexByte(o.Bytes(), '}')
	return end, end
}

// splicer puts a document together from stretches of another one and from new text. It copies nothing until there is a
// difference.
type splicer struct {
	doc      []byte
	size     int // about that of the result
	out      []byte
	from, to int // the stretch that is not yet copied
}

func (s *splicer) keep(from, to int) {
	if from != s.to {
		s.flush()
		s.from = from
	}
	s.to = to
}

func (s *splicer) add(text string) {
	s.flush()
	s.out = append(s.out, text...)
}

func (s *splicer) addName(name string) {
	s.flush()
	s.out, _ = jsontext.AppendQuote(s.out, name)
}

func (s *splicer) flush() {
	if s.out == nil {
		s.out = make([]byte, 0, s.size)
	}
	s.out = append(s.out, s.doc[s.from:s.to]...)
	s.from = s.to
}

func (s *splicer) bytes() []byte {
	if s.out == nil {
		return s.doc
	}
	s.flush()
	return s.out
}
