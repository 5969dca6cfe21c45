package jsonpatch_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

func TestParse(t *testing.T) {
	type members []jsonpatch.Member
	tests := []struct {
		name, doc string
		want      members
	}{
		{"empty object", `{}`, members{}},
		{"space inside", " {\t\r\n} ", members{}},
		{"one", `{"a":1}`, members{{"a", 1, 5, 6}}},
		{"space everywhere", " {\n\"a\" :\t1 , \"b\" : [ 2 ] } ", members{{"a", 3, 9, 10}, {"b", 13, 19, 24}}},
		{"only outermost", `{"a":{"b":1},"c":[{"d":2}]}`, members{{"a", 1, 5, 12}, {"c", 13, 17, 26}}},
		{"brackets in strings", `{"}{":"]}\"","[":0}`, members{{"}{", 1, 6, 12}, {"[", 13, 17, 18}}},
		{"escaped name", `{"\u006dodel":1}`, members{{"model", 1, 14, 15}}},
		{"other escapes", `{"\"\\\/\ud83d\ude00":1}`, members{{"\"\\/😀", 1, 22, 23}}},
		{"name of nothing", `{"":null}`, members{{"", 1, 4, 8}}},
		{"name in UTF-8", `{"名前":true}`, members{{"名前", 1, 10, 14}}},
		{"names that differ by case", `{"a":1,"A":2}`, members{{"a", 1, 5, 6}, {"A", 7, 11, 12}}},
		{"same name at two levels", `{"a":{"a":1}}`, members{{"a", 1, 5, 12}}},
		{"backslashes before a quote", `{"a":"\\\\","b":"\\\""}`, members{{"a", 1, 5, 11}, {"b", 12, 16, 22}}},
		{"numbers no float holds", `{"a":1e400,"b":9007199254740993,"c":-0.0e-0}`, members{{"a", 1, 5, 10}, {"b", 11, 15, 31}, {"c", 32, 36, 43}}},
		{"as deep as can be", `{"a":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + `}`, members{{"a", 1, 5, 20_003}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object, err := jsonpatch.Parse([]byte(test.doc))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, members(object.Members())); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
			if got := string(object.Bytes()); got != test.doc {
				t.Errorf("Bytes: %s", got)
			}
			for _, m := range test.want {
				if got, ok := object.Get(m.Name); !ok || string(got) != test.doc[m.ValueStart:m.ValueEnd] {
					t.Errorf("Get(%q): %s, %v", m.Name, got, ok)
				}
			}
			if got, ok := object.Get("absent"); ok || got != nil {
				t.Errorf("Get of an absent member: %s, %v", got, ok)
			}
		})
	}
}

func TestParseManyMembers(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`{"0":0`)
	for i := 1; i < 100; i++ {
		doc.WriteString(`,"` + strings.Repeat("x", i) + `":"` + strings.Repeat("y", i) + `"`)
	}
	doc.WriteString(`}`)
	object, err := jsonpatch.Parse([]byte(doc.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(object.Members()); got != 100 {
		t.Errorf("%d members, want 100", got)
	}
	for i := 1; i < 100; i++ {
		want := `"` + strings.Repeat("y", i) + `"`
		if got, _ := object.Get(strings.Repeat("x", i)); string(got) != want {
			t.Errorf("Get of member %d: %s, want %s", i, got, want)
		}
	}
}

func TestParseSaysWhatAndWhere(t *testing.T) {
	const surrogate = "invalid surrogate pair `\\ud800"
	tests := []struct {
		name, doc string
		offset    int64
		path      string
		message   string // the whole of it, or its beginning when it ends in "…"
	}{
		{"nothing", "", 0, "", "the document is empty"},
		{"white space", " \t\r\n", 0, "", "the document is empty"},
		{"other space", " \v", 1, "", `invalid character '\v' at start of value`},
		{"byte order mark", "\ufeff{}", 0, "", "the document begins with a byte order mark, which JSON does not allow"},
		{"array", " [1]", 1, "", "the document must be a JSON object, not an array"},
		{"string", `"a"`, 0, "", "the document must be a JSON object, not a string"},
		{"number", "\n-12", 1, "", "the document must be a JSON object, not a number"},
		{"null", "null", 0, "", "the document must be a JSON object, not null"},
		{"true", "true", 0, "", "the document must be a JSON object, not a boolean"},
		{"false", "false", 0, "", "the document must be a JSON object, not a boolean"},
		{"text after it", `{"a":1}  x`, 9, "", "there is more text after the JSON value"},
		{"second document", `{"a":1}{}`, 7, "", "there is more text after the JSON value"},
		{"closed twice", `{"a":1}}`, 7, "", "there is more text after the JSON value"},
		{"cut in an object", `{"a":{`, 6, "/a", "the document ends too early"},
		{"cut in a string", `{"a":"bc`, 8, "/a", "the document ends too early"},
		{"cut after a name", `{"a"`, 4, "/a", "the document ends too early"},
		{"duplicate name", `{"a":1,"a":2}`, 7, "/a", "duplicate object member name"},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, 7, "/a", "duplicate object member name"},
		{"duplicate inside", `{"x":[{"a":1,"a":2}]}`, 13, "/x/0/a", "duplicate object member name"},
		{"literal", `{"a":[{"b":tru}]}`, 14, "/a/0/b", "invalid character '}' in literal true (expecting 'e')"},
		{"NaN", `{"a":NaN}`, 5, "/a", "invalid character 'N' at start of value"},
		{"leading zero", `{"a":01}`, 6, "", "invalid character '1' after object value (expecting ',' or '}')"},
		{"trailing comma", `{"a":1,}`, 7, "", `invalid character '}' at start of string (expecting '"')`},
		{"no comma", `{"a":1 "b":2}`, 7, "", `invalid character '"' after object value (expecting ',' or '}')`},
		{"comment", `{/*x*/}`, 1, "", `invalid character '/' at start of string (expecting '"')`},
		{"single quotes", `{'a':1}`, 1, "", `invalid character '\'' at start of string (expecting '"')`},
		{"control character", "{\"a\":\"\x01\"}", 6, "/a", `invalid character '\x01' in string (expecting non-control character)`},
		{"UTF-8", "{\"a\":\"\xff\"}", 6, "/a", "invalid UTF-8"},
		{"UTF-8 in a name", "{\"\xff\":1}", 2, "", "invalid UTF-8"},
		{"lone surrogate", `{"a":"\ud800"}`, 6, "/a", surrogate + "…"},
		{"escape", `{"a":"\x"}`, 6, "/a", "invalid escape sequence `\\x` in string"},
		{"too deep", `{"a":` + strings.Repeat("[", 10_000), 10_004, "/a" + strings.Repeat("/0", 127), "exceeded max depth"},
		{"long name", `{"a":{"` + strings.Repeat("x", 1000) + `":?`, 1009, "/a", "invalid character '?' at start of value"},
		{"longest name", `{"` + strings.Repeat("x", 1000) + `":?`, 1004, "", "invalid character '?' at start of value"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := jsonpatch.Parse([]byte(test.doc))
			got, ok := errors.AsType[*jsonpatch.SyntaxError](err)
			if !ok {
				t.Fatalf("%v, want a SyntaxError", err)
			}
			if start, cut := strings.CutSuffix(test.message, "…"); cut && strings.HasPrefix(got.Message, start) {
				test.message = got.Message
			}
			want := &jsonpatch.SyntaxError{Offset: test.offset, Path: test.path, Message: test.message}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(jsonpatch.SyntaxError{}, "Err")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSyntaxErrorText(t *testing.T) {
	cause := errors.New("cause")
	tests := []struct {
		err  jsonpatch.SyntaxError
		want string
	}{
		{jsonpatch.SyntaxError{Message: "bad"}, "bad (byte 0)"},
		{jsonpatch.SyntaxError{Offset: 7, Path: "/a/0", Message: "bad", Err: cause}, "bad (byte 7, at /a/0)"},
	}
	for _, test := range tests {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if got := errors.Is(&test.err, cause); got != (test.err.Err != nil) {
			t.Errorf("%q is its cause: %v", test.want, got)
		}
	}
}

func TestNamesDoNotShareTheDocument(t *testing.T) {
	doc := []byte(`{"model":1}`)
	object, err := jsonpatch.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	name := object.Members()[0].Name
	copy(doc, `{"xxxxx"`)
	if name != "model" {
		t.Errorf("the name has become %q with the document", name)
	}
}

// TestLargeDocument has a request with an image: 20 MB in one string.
func TestLargeDocument(t *testing.T) {
	image := base64.StdEncoding.EncodeToString(make([]byte, 15<<20))
	before := `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]}],"model":`
	after := `,"stream":true}`
	object, err := jsonpatch.Parse([]byte(before + `"a"` + after))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(object.Apply(jsonpatch.Edit{Name: "model", Value: []byte(`"b-long"`)})); got != before+`"b-long"`+after {
		t.Errorf("Apply: %d bytes, want %d", len(got), len(before)+8+len(after))
	}
	if got, ok := jsonpatch.Find(object.Bytes(), "stream"); !ok || string(got) != "true" {
		t.Errorf("Find: %s, %v", got, ok)
	}
	if got := jsonpatch.Skip(object.Bytes(), 0); got != len(object.Bytes()) {
		t.Errorf("Skip: %d, want %d", got, len(object.Bytes()))
	}
}
