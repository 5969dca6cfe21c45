package gateway

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// The typed view of a document knows some members and not others, and cannot tell null from absent everywhere. So that
// decoding and encoding again changes nothing, a decoded document keeps its text. When it is encoded, that text is the
// base: only what the program has changed since is put into it.

// maxMisfits bounds how many values of unexpected types a document may have and still be decoded.
const maxMisfits = 100

// decodeLenient decodes source into the zero value of T. A value whose type is not the expected one is left out of the
// typed view: odd servers exist, and the text keeps it.
func decodeLenient[T any](source jsontext.Value, into *T) error {
	text := source
	for range maxMisfits {
		err := json.Unmarshal(text, into)
		if err == nil {
			return nil
		}
		misfit, ok := errors.AsType[*json.SemanticError](err)
		if !ok || misfit.JSONPointer == "" {
			return err
		}
		if text = withNull(text, misfit.JSONPointer); text == nil {
			return err
		}
		*into = *new(T)
	}
	return errors.New("too many values of unexpected types")
}

// decodeDocument decodes source and, when that succeeds, calls keep, as decoding resets what it decodes into.
func decodeDocument[T any](source jsontext.Value, into *T, keep func()) error {
	*into = *new(T)
	err := decodeLenient(source, into)
	if err == nil {
		keep()
	}
	return err
}

// withNull returns text with the value at the pointer replaced by null; nil if there is none.
func withNull(text jsontext.Value, at jsontext.Pointer) jsontext.Value {
	start, end := locate(text, at)
	if start < 0 || bytes.Equal(text[start:end], []byte("null")) {
		return nil
	}
	out := make(jsontext.Value, 0, len(text)+4)
	out = append(append(out, text[:start]...), "null"...)
	return append(out, text[end:]...)
}

// locate returns where in text the value stands that the pointer names; -1 if nowhere.
func locate(text jsontext.Value, at jsontext.Pointer) (start, end int) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.ReadToken(); err != nil {
			return -1, -1
		}
		if d.StackPointer() != at {
			continue
		}
		kind, count := d.StackIndex(d.StackDepth())
		if kind == '{' && count%2 == 1 { // the member's name: its value comes next
			value, err := d.ReadValue()
			if err != nil {
				return -1, -1
			}
			end = int(d.InputOffset())
			return end - len(value), end
		}
		end = int(d.InputOffset()) // an element: a scalar, or the bracket that opens it
		start = end - 1
		if c := text[start]; c == '{' || c == '[' {
			return start, jsonpatch.Skip(text, start)
		}
		for start > 0 && !strings.ContainsRune(" \t\r\n,[", rune(text[start-1])) {
			start--
		}
		return start, end
	}
}

// encodeLossless encodes the typed view now. source is the text that it was decoded from, if any.
func encodeLossless[T any](e *jsontext.Encoder, now *T, source jsontext.Value) error {
	if source == nil {
		return json.MarshalEncode(e, now)
	}
	text, err := changedDocument(now, source)
	if err != nil {
		return err
	}
	return e.WriteValue(text)
}

// changedDocument returns source with what has changed in the typed view since it was decoded.
func changedDocument[T any](now *T, source jsontext.Value) (jsontext.Value, error) {
	changed, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	var then T
	if err := decodeLenient(source, &then); err != nil {
		return changed, nil //nolint:nilerr // source was not decoded like this: the typed view is all there is
	}
	base, err := json.Marshal(&then)
	if err != nil {
		return nil, err
	}
	return merge(source, base, changed), nil
}

// merge returns source with what has changed between base and changed, which are typed views of it.
func merge(source, base, changed jsontext.Value) jsontext.Value {
	source, base, changed = bytes.TrimSpace(source), bytes.TrimSpace(base), bytes.TrimSpace(changed)
	kind := changed.Kind()
	switch {
	case bytes.Equal(base, changed):
		return source
	case source.Kind() != kind || base.Kind() != kind:
		return changed
	case kind == '{':
		return mergeObject(source, base, changed)
	case kind == '[':
		return mergeArray(source, base, changed)
	default:
		return changed
	}
}

func mergeObject(source, base, changed jsontext.Value) jsontext.Value {
	object, err := jsonpatch.Parse(source)
	was, err2 := jsonpatch.Parse(base)
	is, err3 := jsonpatch.Parse(changed)
	if err != nil || err2 != nil || err3 != nil {
		return changed
	}
	var edits []jsonpatch.Edit
	for _, m := range is.Members() {
		after, _ := is.Get(m.Name)
		before, had := was.Get(m.Name)
		original, has := object.Get(m.Name)
		switch {
		case had && has:
			after = merge(original, before, after)
		case had: // it is in the typed view by default only
			if bytes.Equal(before, after) {
				continue
			}
		}
		edits = append(edits, jsonpatch.Edit{Name: m.Name, Value: after})
	}
	for _, m := range was.Members() {
		if _, still := is.Get(m.Name); !still {
			edits = append(edits, jsonpatch.Edit{Name: m.Name})
		}
	}
	return object.Apply(edits...)
}

// mergeArray keeps the elements that are as they were: at the same place from the front, and otherwise as they are in
// the typed view.
func mergeArray(source, base, changed jsontext.Value) jsontext.Value {
	from, was, is := elements(source), elements(base), elements(changed)
	if len(from) != len(was) {
		return changed
	}
	out := jsontext.Value("[")
	for i, after := range is {
		if i > 0 {
			out = append(out, ',')
		}
		if i < len(from) {
			after = merge(from[i], was[i], after)
		}
		out = append(out, after...)
	}
	return append(out, ']')
}

func elements(array jsontext.Value) []jsontext.Value {
	var list []jsontext.Value
	jsonpatch.EachElement(array, func(v jsontext.Value) bool { list = append(list, v); return true })
	return list
}

// readDocument reads the next value and returns a copy of its text.
func readDocument(d *jsontext.Decoder) (jsontext.Value, error) {
	text, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	if text.Kind() != '{' {
		return nil, errors.New("the document must be a JSON object")
	}
	return text.Clone(), nil
}
