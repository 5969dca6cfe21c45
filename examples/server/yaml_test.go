package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestYAMLBecomesJSON(t *testing.T) {
	tests := []struct{ name, yaml, want string }{
		{"numbers keep their text", "[2.50, 9007199254740993, 1e400, -0.10, 1E+2]", `[2.50,9007199254740993,1e400,-0.10,1E+2]`},
		{"what only looks like one is a word", "[0x1f, 0o17, 007, 1_000, .5, +1, .inf, 2024-01-01, 12:30]", `["0x1f","0o17","007","1_000",".5","+1",".inf","2024-01-01","12:30"]`},
		{"only true and false are booleans", "[true, False, yes, no, on, off, y, n]", `[true,false,"yes","no","on","off","y","n"]`},
		{"null", "{a: ~, b: null, c: , d: Null}", `{"a":null,"b":null,"c":null,"d":null}`},
		{"quoted words are words", `["true", '1', "null", '']`, `["true","1","null",""]`},
		{"tags", "[!!str 1, !!int 1, !!float 2.0, !!null '', !!bool 'true']", `["1",1,2.0,null,true]`},
		{"blocks", "a: |\n  x\n  y\nb: >-\n  x\n  y\n", `{"a":"x\ny\n","b":"x y"}`},
		{"names are strings", "{1: a, true: b, ~: c, on: d}", `{"1":"a","true":"b","~":"c","on":"d"}`},
		{"characters", `["<>&\u2028", "\U0001F600", "\x01"]`, "[\"<>&\u2028\",\"\U0001F600\",\"\\u0001\"]"},
		{"aliases", "a: &x {b: [1]}\nc: *x\n", `{"a":{"b":[1]},"c":{"b":[1]}}`},
		{"merges", "a: &x {b: 1, c: 2}\nd: &y {c: 3, e: 4}\nf: {<<: [*x, *y], b: 9}\n", `{"a":{"b":1,"c":2},"d":{"c":3,"e":4},"f":{"b":9,"c":2,"e":4}}`},
		{"quoted << is a name", `{"<<": 1}`, `{"<<":1}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, faults := parseYAML([]byte(test.yaml))
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			if diff := cmp.Diff(test.want, string(d.json)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestYAMLFaults(t *testing.T) {
	aliases := "a0: &a0 [x, x]\n"
	merges := "m0: &m0 {x: 1}\n"
	for i := range 20 {
		aliases += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
		merges += fmt.Sprintf("m%d: &m%d {<<: [*m%d, *m%d]}\n", i+1, i+1, i, i)
	}
	const large = "the document is too large once its aliases and merges are followed"
	tests := []struct{ name, yaml, want string }{
		{"alias bomb", aliases, large},
		{"merge bomb", merges, large},
		{"large alias", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 100) + "]", large},
		{"deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), "the document is nested too deeply"},
		{"alias of itself", "a: &a\n  b: [*a]\n", "2: a.b[0]: the alias *a contains itself"},
		{"merge of itself", "a: &a\n  <<: *a\n", "2: a: the mapping merges itself"},
		{"merge of a list", "a:\n  <<: [1]\n", "2: a: << takes a mapping, or a list of mappings"},
		{"unknown alias", "a: *b\n", "not valid YAML: unknown anchor 'b' referenced"},
		{"name that is no string", "? [a]\n: b", "1: : the name of a member must be a string"},
		{"unknown tags", "a: !secret x\nb: !!binary aGk=\nc: !!set {x}\n", "1: a: the tag !secret means nothing here\n2: b: the tag !!binary means nothing here\n3: c: the tag !!set means nothing here"},
		{"wrong tag", "a: !!int many\n", `1: a: "many" is not a value of the type !!int`},
		{"invalid UTF-8", "a: \xff\n", "not valid YAML: "},
		{"tab", "a:\n\tb: 1\n", "not valid YAML: found character that cannot start any token"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, faults := parseYAML([]byte(test.yaml))
			if d != nil {
				t.Fatalf("no fault in %.200s", d.json)
			}
			var lines []string
			for _, f := range faults {
				lines = append(lines, fmt.Sprintf("%d: %s: %s", f.line, f.path, f.message))
			}
			if got := strings.Join(lines, "\n"); !strings.Contains(got, test.want) {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"a: &x {b: 1}\nc: {<<: *x, d: ~}\n", "- 1.50\n- yes\n- 'true'\n- 0x1f\n- 1e400\n", "a: *a", "a: &a [*a, *a]", "a: &a {<<: *a}",
		`{"a":[1,{"b":null}]}`, "? [a]\n: b", "<<: [{a: 1}, {a: 2}]\na: 3", "- {alias: a, base_url: b, timeout_seconds: 1.5, retries: x}\n",
		"!!int a: !!str 1", `{"providers":[{"alias":"a","api_key_env":"B","input_price_per_million":0.1}]}`, "%YAML 1.1\n---\n", "{a: 1}\n{b: 2}",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, isJSON bool) {
		file := "f.yaml"
		if isJSON {
			file = "f.json"
		}
		d, faults := parse(file, text)
		if (d == nil) != (len(faults) > 0) {
			t.Fatalf("%q: document %v with faults %v", text, d, faults)
		}
		last := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") +
			strings.Count(string(text), "\u0085") + strings.Count(string(text), "\u2028") + strings.Count(string(text), "\u2029") + 2
		for _, fault := range faults {
			if fault.line < 0 || fault.line > last {
				t.Errorf("%q: a fault in line %d", text, fault.line)
			}
		}
		if d == nil {
			return
		}
		if !d.json.IsValid() {
			t.Errorf("%q becomes %s, which is not JSON", text, d.json)
		}
		if list, ok := d.flatList(); ok {
			out, faults := list.document()
			if !out.json.IsValid() {
				t.Errorf("%q becomes %s, which is not JSON", text, out.json)
			}
			for _, fault := range faults {
				if fault.path == "" && fault.message == "" {
					t.Errorf("%q: an empty fault", text)
				}
			}
		}
	})
}
