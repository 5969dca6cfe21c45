package jsonpatch_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// FuzzParse compares Parse with package jsontext, token by token, and Find with Get.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, `[]`, `1e400`, ` { "a" : { } } `, `{"a":1,"b":[{"c":"\u2028"}]}`, `{"\u0061":1}`, `{"a":1,"a":1}`, `{"a":1}{}`,
		`{"\\\"":"\\"}`, `{"\"":1}`, "{\"\xff\":1}", `{"a":"\ud800"}`, "\ufeff{}", chunk,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		object, err := jsonpatch.Parse(doc)
		want, wantErr := tokenWalk(doc)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("Parse says %v, jsontext %v", err, wantErr)
		}
		if err != nil {
			syntax, ok := errors.AsType[*jsonpatch.SyntaxError](err)
			if !ok || syntax.Offset < 0 || syntax.Offset > int64(len(doc)) || syntax.Message == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if diff := cmp.Diff(want, object.Members()); diff != "" {
			t.Errorf("members (-jsontext +Parse):\n%s", diff)
		}
		for _, m := range want {
			value, ok := object.Get(m.Name)
			if !ok || !bytes.Equal(value, doc[m.ValueStart:m.ValueEnd]) {
				t.Errorf("Get(%q): %s, %v", m.Name, value, ok)
			}
			escaped := jsonpatch.Skip(doc, m.NameStart)-m.NameStart != len(m.Name)+len(`""`)
			if value, ok = jsonpatch.Find(jsontext.Value(doc), m.Name); ok == escaped || ok && !bytes.Equal(value, doc[m.ValueStart:m.ValueEnd]) {
				t.Errorf("Find(%q): %s, %v", m.Name, value, ok)
			}
		}
	})
}

// tokenWalk finds the members of the document as package jsontext reads them.
func tokenWalk(doc []byte) ([]jsonpatch.Member, error) {
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.Join(errors.New("not an object"), err)
	}
	members := []jsonpatch.Member{}
	for d.PeekKind() != '}' {
		quoted, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(d.InputOffset())
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return nil, err
		}
		m := jsonpatch.Member{Name: string(name), NameStart: end - len(quoted)}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.ValueEnd = int(d.InputOffset())
		m.ValueStart = m.ValueEnd - len(value)
		members = append(members, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("text after the object"), err)
	}
	return members, nil
}

// FuzzApply makes three edits, each of a member that the document has or of another one.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"a":1, "b":2 , "c":3}`), "b", "2", uint16(0o123))
	f.Add([]byte(` { "a" : 1 } `), "a", "null", uint16(0o551))
	f.Add([]byte(`{}`), "x", `"y"`, uint16(0o777))
	f.Add([]byte(`{"\u0061":1,"\"":[]}`), "\"\\\n", `{"a":[]}`, uint16(0o246))
	f.Fuzz(func(t *testing.T, doc []byte, name, value string, choices uint16) {
		object, err := jsonpatch.Parse(doc)
		if err != nil || !jsontext.Value(value).IsValid() {
			return
		}
		// Only valid UTF-8 can be a name, and values are compared as they stand between white space.
		name = strings.ToValidUTF8(name, "?")
		value = strings.Trim(value, " \t\r\n")
		pick := func(n uint16) int {
			choice := choices % n
			choices /= n
			return int(choice)
		}
		pickName := func() string {
			members := object.Members()
			if i := pick(4); i < 3 && i < len(members) {
				return members[len(members)-1-i].Name
			}
			return name
		}
		several := make([]jsonpatch.Edit, 3)
		for i := range several {
			several[i] = remove(pickName())
			if pick(2) == 0 {
				several[i].Value = jsontext.Value(value)
			}
			if pick(3) == 0 {
				several[i].NewName = pickName()
			}
		}
		checkApply(t, object, several)
	})
}

// FuzzSkip walks garbage without a panic, and values as package jsontext does.
func FuzzSkip(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\\"]}`, ` "\"`, `[1,{"a":"b]"},"c"] `, `-1e5`, `{"a":1}}`, chunk} {
		f.Add(seed, 0)
	}
	f.Fuzz(func(t *testing.T, doc string, pos int) {
		end := jsonpatch.Skip(doc, pos)
		if end > len(doc) || end >= 0 && end <= pos || end < -1 {
			t.Errorf("Skip(%q, %d): %d", doc, pos, end)
		}
		if of := jsonpatch.Skip([]byte(doc), pos); of != end {
			t.Errorf("Skip(%q, %d): %d of a string, %d of bytes", doc, pos, end, of)
		}
		jsonpatch.EachMember(doc, func(name, _ string) bool {
			if strings.IndexByte(name, '\\') < 0 {
				if _, ok := jsonpatch.Find(doc, name); !ok {
					t.Errorf("%q: %q is not found", doc, name)
				}
			}
			return true
		})
		jsonpatch.EachElement(doc, func(value string) bool {
			if got := jsonpatch.Skip(value, 0); got != len(value) {
				t.Errorf("%q: the element %q ends at %d", doc, value, got)
			}
			return true
		})
		if !jsontext.Value(doc).IsValid() {
			return
		}
		value := strings.Trim(doc, " \t\r\n")
		want := strings.Index(doc, value) + len(value)
		for _, after := range []string{"", " ", "}", "]", ",", ":", "\x00"} {
			if got := jsonpatch.Skip("[ "+doc+after, 1); got != 2+want {
				t.Errorf("Skip(%q, 1): %d, want %d", "[ "+doc+after, got, 2+want)
			}
		}
		walked := true
		switch value[0] {
		case '{':
			walked = jsonpatch.EachMember(doc, func(_, _ string) bool { return true })
		case '[':
			walked = jsonpatch.EachElement(doc, func(string) bool { return true })
		}
		if !walked {
			t.Errorf("%q is valid, but cannot be walked", doc)
		}
	})
}
