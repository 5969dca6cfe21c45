package jsonpatch_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

func TestParseFindsMembers(t *testing.T) {
	doc := ` {"a" : 1, "\u0062":{"a":2} ,"c":"\\\"" , "d":[]} `
	object, err := jsonpatch.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range object.Members() {
		got[m.Name] = doc[m.ValueStart:m.ValueEnd]
		if value, ok := object.Get(m.Name); !ok || string(value) != doc[m.ValueStart:m.ValueEnd] {
			t.Errorf("Get(%q) is %s, %v", m.Name, value, ok)
		}
		if doc[m.NameStart] != '"' {
			t.Errorf("the name of %q does not start at %d", m.Name, m.NameStart)
		}
	}
	want := map[string]string{"a": `1`, "b": `{"a":2}`, "c": `"\\\""`, "d": `[]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if _, ok := object.Get("e"); ok {
		t.Error("Get finds a member that is not there")
	}
}

func TestParseSaysWhatAndWhere(t *testing.T) {
	tests := []struct {
		doc  string
		want jsonpatch.SyntaxError
	}{
		{"", jsonpatch.SyntaxError{Message: "the document is empty"}},
		{"  ", jsonpatch.SyntaxError{Message: "the document is empty"}},
		{"[1]", jsonpatch.SyntaxError{Message: "the document must be a JSON object, not an array"}},
		{`"a"`, jsonpatch.SyntaxError{Message: "the document must be a JSON object, not a string"}},
		{"12", jsonpatch.SyntaxError{Message: "the document must be a JSON object, not a number"}},
		{"null", jsonpatch.SyntaxError{Message: "the document must be a JSON object, not null"}},
		{"true", jsonpatch.SyntaxError{Message: "the document must be a JSON object, not a boolean"}},
		{`{"a":1} x`, jsonpatch.SyntaxError{Offset: 8, Message: "there is something behind the JSON value"}},
		{`{"a":1,"a":2}`, jsonpatch.SyntaxError{Offset: 7, Path: "/a", Message: "duplicate object member name"}},
		{`{"a":[{"b":tru}]}`, jsonpatch.SyntaxError{Offset: 14, Path: "/a/0/b", Message: "invalid character '}' in literal true (expecting 'e')"}},
		{"\ufeff{}", jsonpatch.SyntaxError{Message: "the document begins with a byte order mark, which JSON does not allow"}},
	}
	for _, test := range tests {
		_, err := jsonpatch.Parse([]byte(test.doc))
		var got *jsonpatch.SyntaxError
		if !errors.As(err, &got) {
			t.Errorf("%q: %v, want a SyntaxError", test.doc, err)
			continue
		}
		got.Err = nil
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.doc, diff)
		}
	}
}

func TestSkip(t *testing.T) {
	tests := []struct {
		doc  string
		want int
	}{
		{`1,`, 1}, {` "a" `, 4}, {`"\\"x`, 4}, {`"\""x`, 4}, {`{"a":"}"}x`, 9}, {`[[],{}]x`, 7}, {`true}`, 4}, {`null`, 4},
		{``, -1}, {` `, -1}, {`"a`, -1}, {`"\"`, -1}, {`{"a":1`, -1}, {`[`, -1}, {`}`, -1}, {`,`, -1},
		{strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), -1},
	}
	for _, test := range tests {
		if got := jsonpatch.Skip(test.doc, 0); got != test.want {
			t.Errorf("%.40q: %d, want %d", test.doc, got, test.want)
		}
		if got := jsonpatch.Skip([]byte(test.doc), 0); got != test.want {
			t.Errorf("%.40q as bytes: %d, want %d", test.doc, got, test.want)
		}
	}
}

func TestFind(t *testing.T) {
	tests := []struct {
		object, name, want string
		ok                 bool
	}{
		{`{"a":1,"b":{"c":2}}`, "b", `{"c":2}`, true},
		{`{"a":{"c":1}}`, "c", "", false},
		{`{"a":1,"a":2}`, "a", "1", true},
		{`{"a":1`, "a", "", false}, // it may be the 1 of 12
		{`{"a":`, "a", "", false},
		{`[1]`, "a", "", false},
		{`{}`, "a", "", false},
		{`{"\u0061":1}`, "a", "", false},
	}
	for _, test := range tests {
		got, ok := jsonpatch.Find(test.object, test.name)
		if got != test.want || ok != test.ok {
			t.Errorf("%s in %s: %q, %v; want %q, %v", test.name, test.object, got, ok, test.want, test.ok)
		}
	}
}

func TestLongRunsOfBackslashesAreLinear(t *testing.T) {
	doc := `{"a":"` + strings.Repeat(`\\`, 1<<20) + strings.Repeat(`\"`, 1<<20) + `"}`
	if got := jsonpatch.Skip(doc, 0); got != len(doc) {
		t.Errorf("Skip: %d, want %d", got, len(doc))
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"b":[{"c":"\u2028"}]}`, `{"\u0061":1}`, ` { "a" : { } } `, `[]`, `{"a":1,"a":1}`, "{\"\xff\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		object, err := jsonpatch.Parse(doc)
		valid := jsontext.Value(doc).IsValid() && jsontext.Value(doc).Kind() == '{'
		if (err == nil) != valid {
			t.Fatalf("Parse: %v, but valid: %v", err, valid)
		}
		if err != nil {
			return
		}
		d := jsontext.NewDecoder(bytes.NewReader(doc))
		if _, err := d.ReadToken(); err != nil {
			t.Fatal(err)
		}
		for _, m := range object.Members() {
			name, err := d.ReadToken()
			if err != nil {
				t.Fatal(err)
			}
			if name.String() != m.Name {
				t.Errorf("name %q, want %q", m.Name, name.String())
			}
			value, err := d.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			if string(value) != string(doc[m.ValueStart:m.ValueEnd]) {
				t.Errorf("value %s, want %s", doc[m.ValueStart:m.ValueEnd], value)
			}
		}
		if end, err := d.ReadToken(); err != nil || end.Kind() != '}' {
			t.Errorf("members are missing: %v, %v", end, err)
		}
	})
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"a":1, "b":2 , "c":3}`), "b", "2", uint8(1))
	f.Add([]byte(` { "a" : 1 } `), "a", "null", uint8(5))
	f.Add([]byte(`{}`), "x", `"y"`, uint8(7))
	f.Fuzz(func(t *testing.T, doc []byte, name, value string, mask uint8) {
		object, err := jsonpatch.Parse(doc)
		if err != nil || !jsontext.Value(value).IsValid() || !jsontext.Value(`"`+name+`"`).IsValid() || strings.Contains(name, `\`) {
			return
		}
		edits := []jsonpatch.Edit{{Name: name, Value: jsontext.Value(value)}}
		want := []string{}
		set := false
		for i, m := range object.Members() {
			text := m.Name + "=" + string(doc[m.ValueStart:m.ValueEnd])
			switch {
			case m.Name == name:
				set = true
				want = append(want, name+"="+value)
			case mask&(1<<(i%8)) != 0:
				edits = append(edits, jsonpatch.Edit{Name: m.Name})
			default:
				want = append(want, text)
			}
		}
		if !set {
			want = append(want, name+"="+value)
		}
		before := bytes.Clone(doc)
		got := object.Apply(edits...)
		if !bytes.Equal(before, doc) {
			t.Fatal("the original was written to")
		}
		again, err := jsonpatch.Parse(got)
		if err != nil {
			t.Fatalf("%s became %s: %v", doc, got, err)
		}
		have := []string{}
		for _, m := range again.Members() {
			have = append(have, m.Name+"="+string(got[m.ValueStart:m.ValueEnd]))
		}
		// The value may be written with space around it.
		if diff := cmp.Diff(want, have); diff != "" && strings.TrimSpace(value) == value {
			t.Errorf("%s became %s (-want +got):\n%s", doc, got, diff)
		}
	})
}

func FuzzSkip(f *testing.F) {
	f.Add(`{"a":[1,"\\"]}`, 0)
	f.Add(`"\"`, 0)
	f.Fuzz(func(t *testing.T, doc string, pos int) {
		end := jsonpatch.Skip(doc, max(pos, 0))
		if end > len(doc) || end >= 0 && end < max(pos, 0) {
			t.Errorf("Skip(%q, %d): %d", doc, pos, end)
		}
		jsonpatch.EachElement(doc, func(v string) bool {
			jsonpatch.EachMember(v, func(_, _ string) bool { return true })
			return true
		})
		if jsontext.Value(doc).IsValid() {
			if got, want := jsonpatch.Skip(doc, 0), len(strings.TrimRight(doc, " \t\r\n")); got != want {
				t.Errorf("Skip(%q): %d, want %d", doc, got, want)
			}
		}
	})
}

var chunk = `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" hello world"},"logprobs":null,"finish_reason":null}],"usage":null}` //nolint:gochecknoglobals // benchmark data

func BenchmarkFind(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := jsonpatch.Find(chunk, "usage"); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for name, size := range map[string]int{"300B": 200, "100KB": 100_000} {
		doc := []byte(`{"model":"chat-smart","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("hello world, ", size/13) + `"}],"temperature":0.5}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				object, err := jsonpatch.Parse(doc)
				if err != nil {
					b.Fatal(err)
				}
				object.Apply(jsonpatch.Edit{Name: "model", Value: jsontext.Value(`"gpt-4o"`)})
			}
		})
	}
}
