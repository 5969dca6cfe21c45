// Package jsonpatch changes outermost members of a JSON object by splicing its text, so that every byte which is not
// to change stays as it was written. It also walks JSON text without decoding it.
package jsonpatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one member of the outermost object: its name, unescaped, and where it stands in the document.
type Member struct {
	Name                            string
	NameStart, ValueStart, ValueEnd int
}

// Object is a valid JSON object document and the places of its outermost members. It is immutable.
type Object struct {
	doc     []byte
	members []Member
}

// SyntaxError says what is wrong with a document, and where.
type SyntaxError struct {
	Offset  int64  // of the byte at fault
	Path    string // JSON pointer to the value at fault, where known
	Message string
	Err     error
}

// Error says what and where.
func (e *SyntaxError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("%s (byte %d, at %s)", e.Message, e.Offset, e.Path)
	}
	return fmt.Sprintf("%s (byte %d)", e.Message, e.Offset)
}

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Parse checks that doc is one JSON object, as RFC 8259 has it, with no duplicate names, valid UTF-8, and nothing
// behind it, and finds its outermost members. The error is a [*SyntaxError]. The document must not change afterwards.
func Parse(doc []byte) (Object, error) {
	if !jsontext.Value(doc).IsValid() {
		return Object{}, diagnose(doc)
	}
	members := make([]Member, 0, 8)
	end := walk(doc, 0, '{', '}', func(s span) bool {
		name := doc[s.nameStart+1 : s.nameEnd-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name, _ = jsontext.AppendUnquote(nil, doc[s.nameStart:s.nameEnd])
		}
		// The document does not change any more, so its names can be shared instead of copied.
		shared := unsafe.String(unsafe.SliceData(name), len(name))
		members = append(members, Member{shared, s.nameStart, s.start, s.end})
		return true
	})
	if end < 0 {
		return Object{}, &SyntaxError{Message: "the document must be a JSON object, not " + kindName(jsontext.Value(doc).Kind())}
	}
	return Object{doc, members}, nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "a boolean"
	}
}

// diagnose finds out what is wrong with a document that is not valid.
func diagnose(doc []byte) *SyntaxError {
	if len(bytes.TrimSpace(doc)) == 0 {
		return &SyntaxError{Message: "the document is empty"}
	}
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	_, err := d.ReadValue()
	if err == nil {
		return &SyntaxError{Offset: d.InputOffset(), Message: "there is something behind the JSON value"}
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		message := "malformed JSON"
		if syntactic.Err != nil {
			message = syntactic.Err.Error()
		}
		return &SyntaxError{
			Offset: syntactic.ByteOffset, Path: string(syntactic.JSONPointer), Message: message, Err: err,
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return &SyntaxError{Offset: int64(len(doc)), Message: "the document ends too early", Err: err}
	}
	return &SyntaxError{Offset: d.InputOffset(), Message: err.Error(), Err: err}
}

// Bytes returns the document. It must not be written to.
func (o Object) Bytes() []byte { return o.doc }

// Members returns the outermost members in their order. The slice must not be written to.
func (o Object) Members() []Member { return o.members }

// Get returns the raw value of an outermost member and whether there is one. It must not be written to.
func (o Object) Get(name string) (jsontext.Value, bool) {
	if i := o.find(name); i >= 0 {
		m := o.members[i]
		return jsontext.Value(o.doc[m.ValueStart:m.ValueEnd:m.ValueEnd]), true
	}
	return nil, false
}

func (o Object) find(name string) int {
	for i := range o.members {
		if o.members[i].Name == name {
			return i
		}
	}
	return -1
}

// Edit is a change of one outermost member. With Value it sets the member, in place or, when it is absent, at the end;
// with NewName it renames it; with neither it removes it. A Value must be valid JSON.
type Edit struct {
	Name    string
	Value   jsontext.Value
	NewName string
}

// Apply returns the document with the edits made. Members are looked up in the original document, so edits do not see
// one another; of several edits of one member the last counts. When nothing changes, it returns the original bytes.
func (o Object) Apply(edits ...Edit) []byte {
	type change struct {
		edit Edit
		done bool
	}
	changes := make([]change, len(o.members), len(o.members)+8)
	var added []Edit
	size, changed := len(o.doc), false
	for _, e := range edits {
		i := o.find(e.Name)
		switch {
		case i >= 0:
			changes[i] = change{e, true}
			changed = true
		case e.Value != nil:
			added = append(added, e)
			changed = true
		default:
			continue
		}
		size += len(e.Value) + len(e.NewName) + len(e.Name) + 8
	}
	if !changed {
		return o.doc
	}
	removed := func(i int) bool {
		return changes[i].done && changes[i].edit.Value == nil && changes[i].edit.NewName == ""
	}
	out := make([]byte, 0, size)
	copied, kept := 0, 0
	for i, m := range o.members {
		switch c := changes[i]; {
		case !c.done:
			kept++
		case removed(i):
			// With the member goes one comma: the one behind it, or, when no kept member follows, the one before it.
			if i+1 < len(o.members) {
				out = append(out, o.doc[copied:m.NameStart]...)
				copied = o.members[i+1].NameStart
			} else {
				last := m.NameStart
				if i > 0 {
					last = o.members[i-1].ValueEnd
				}
				if copied <= last {
					out = append(out, o.doc[copied:last]...)
				} else if kept > 0 { // the members before it are gone too: take the comma that is already written
					out = trimComma(out)
				}
				copied = m.ValueEnd
			}
		default:
			kept++
			if c.edit.NewName != "" {
				out = append(out, o.doc[copied:m.NameStart]...)
				out = appendQuoted(out, c.edit.NewName)
				copied = m.NameStart + quotedLen(o.doc[m.NameStart:])
			}
			if c.edit.Value != nil {
				out = append(out, o.doc[copied:m.ValueStart]...)
				out = append(out, c.edit.Value...)
				copied = m.ValueEnd
			}
		}
	}
	closing := bytes.LastIndexByte(o.doc, '}')
	if len(added) > 0 {
		end := closing
		if n := len(o.members); n > 0 && copied <= o.members[n-1].ValueEnd {
			end = o.members[n-1].ValueEnd
		}
		if copied < end {
			out = append(out, o.doc[copied:end]...)
			copied = end
		}
		for i, e := range added {
			if kept > 0 || i > 0 {
				out = append(out, ',')
			}
			out = appendQuoted(out, e.Name)
			out = append(out, ':')
			out = append(out, e.Value...)
		}
	}
	return append(out, o.doc[copied:]...)
}

func trimComma(out []byte) []byte {
	if i := bytes.LastIndexByte(out, ','); i >= 0 {
		return out[:i]
	}
	return out
}

func quotedLen(doc []byte) int { return skipString(doc, 0) }

func appendQuoted(out []byte, name string) []byte {
	quoted, _ := jsontext.AppendQuote(out, name)
	return quoted
}
