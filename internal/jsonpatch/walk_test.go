package jsonpatch_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// chunk is an event of a streamed chat, as OpenAI sends it.
const chunk = `{"id":"chatcmpl-AbC123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-2024-08-06",` +
	`"service_tier":"default","system_fingerprint":"fp_1234567890","choices":[{"index":0,"delta":` +
	`{"content":" hello \"world\""},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x1y2"}`

func TestSkip(t *testing.T) {
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	tests := []struct {
		name, doc string
		pos, want int
	}{
		{"number", `-1.5E+3,`, 0, 7},
		{"literal", `true}`, 0, 4},
		{"at the end", `null`, 0, 4},
		{"after space", " \t\r\n1 ", 0, 5},
		{"in the middle", `{"a":12}`, 5, 7},
		{"string", ` "a" `, 0, 4},
		{"empty string", `""`, 0, 2},
		{"escaped quote", `"\""x`, 0, 4},
		{"escaped backslash", `"\\"x`, 0, 4},
		{"both", `"\\\""x`, 0, 6},
		{"escaped quote in a long string", `"` + strings.Repeat("a", 100) + `\""x`, 0, 104},
		{"escaped backslash in a long string", `"` + strings.Repeat("a", 100) + `\\"x`, 0, 104},
		{"UTF-8 string", `"日本語"x`, 0, 11},
		{"object", `{"a":"}"}x`, 0, 9},
		{"array", ` [[],{}]x`, 0, 8},
		{"deep", deep, 0, 20_000},
		{"too deep", "[" + deep + "]", 0, -1},
		{"nothing", ``, 0, -1},
		{"space", `  `, 0, -1},
		{"before the text", `1`, -1, -1},
		{"far before the text", `1`, -1 << 62, -1},
		{"behind the text", `1`, 1, -1},
		{"far behind the text", `1`, 1 << 62, -1},
		{"string without an end", `"a`, 0, -1},
		{"string that ends in an escape", `"\"`, 0, -1},
		{"string that ends in a backslash", `"\`, 0, -1},
		{"object without an end", `{"a":1`, 0, -1},
		{"string in an array without an end", `["a]`, 0, -1},
		{"closing bracket", `}`, 0, -1},
		{"comma", `,1`, 0, -1},
		{"garbage", "\x00\xff", 0, -1},
	}
	for _, test := range tests {
		if got := jsonpatch.Skip(test.doc, test.pos); got != test.want {
			t.Errorf("%s: Skip(%.40q, %d) is %d, want %d", test.name, test.doc, test.pos, got, test.want)
		}
		if got := jsonpatch.Skip([]byte(test.doc), test.pos); got != test.want {
			t.Errorf("%s: Skip(%.40q, %d) of bytes is %d, want %d", test.name, test.doc, test.pos, got, test.want)
		}
	}
}

// TestSkipStringsOfEachLength has quotes and backslashes at each place of the words in which strings are read.
func TestSkipStringsOfEachLength(t *testing.T) {
	for n := range 50 {
		filler := strings.Repeat("x", n)
		tests := []struct {
			doc  string
			want int
		}{
			{`"` + filler + `"`, n + 2},
			{`"` + filler + `" "y"`, n + 2},
			{`"` + filler + `\"y"`, n + 5},
			{`"` + filler + `\\"y"`, n + 4},
			{`"` + filler + "\xa2\xdc!#[]\"", n + 8}, // bytes that differ from a quote or a backslash by one bit
			{`"` + filler, -1},
			{`"` + filler + `\"`, -1},
			{`"` + filler + `\`, -1},
		}
		for _, test := range tests {
			if got := jsonpatch.Skip(test.doc, 0); got != test.want {
				t.Errorf("Skip(%q, 0) is %d, want %d", test.doc, got, test.want)
			}
		}
	}
}

// TestSkipBackslashes would take minutes if the backslashes before a quote were counted again for each quote.
func TestSkipBackslashes(t *testing.T) {
	tests := []struct{ name, doc string }{
		{"run", `"` + strings.Repeat(`\\`, 1<<21) + `"`},
		{"run before a quote", `"` + strings.Repeat(`\\`, 1<<21) + `\""`},
		{"escaped quotes", `"` + strings.Repeat(`\"`, 1<<21) + `"`},
		{"run before escaped quotes", `"` + strings.Repeat(`\\`, 1<<20) + strings.Repeat(`\"`, 1<<20) + `"`},
		{"runs and escaped quotes in turn", `"` + strings.Repeat(strings.Repeat(`\\`, 1<<10)+`\"`, 1<<10) + `"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, doc := range []string{test.doc, `{"a":[` + test.doc + `]}`} {
				if got := jsonpatch.Skip(doc, 0); got != len(doc) {
					t.Errorf("%d, want %d", got, len(doc))
				}
			}
		})
	}
}

func TestFind(t *testing.T) {
	tests := []struct {
		name, object, member, want string
		ok                         bool
	}{
		{"scalar", `{"a":1,"b":2}`, "b", "2", true},
		{"space", " { \"a\" : 1 , \"b\" : {\"c\": 2} } ", "b", `{"c": 2}`, true},
		{"usage of a chunk", chunk, "usage", "null", true},
		{"not inside", `{"a":{"c":1}}`, "c", "", false},
		{"not in a string", `{"a":",\"c\":1,","b":2}`, "c", "", false},
		{"first of two", `{"a":1,"a":2}`, "a", "1", true},
		{"part of a name", `{"ab":1,"a":2}`, "a", "2", true},
		{"empty name", `{"a":1,"":2}`, "", "2", true},
		{"absent", `{"a":1}`, "b", "", false},
		{"empty object", `{ }`, "a", "", false},
		{"escaped name", `{"\u0061":1}`, "a", "", false},
		{"escaped name as written", `{"\u0061":1}`, `\u0061`, "", false},
		{"name with a quote", `{"a\"b":1}`, `a"b`, "", false},
		{"array", `["a",1]`, "a", "", false},
		{"string", `"a"`, "a", "", false},
		{"nothing", ``, "a", "", false},
		{"before it breaks", `{"a":1,"b":`, "a", "1", true},
		{"after it breaks", `{"x":1 "a":1}`, "a", "", false},
		{"cut in the value", `{"a":12`, "a", "", false},
		{"cut before the value", `{"a":`, "a", "", false},
		{"cut in the name", `{"a`, "a", "", false},
		{"no value", `{"a":}`, "a", "", false},
		{"no colon", `{"a" 1}`, "a", "", false},
		{"no name", `{a:1}`, "a", "", false},
	}
	for _, test := range tests {
		got, ok := jsonpatch.Find(test.object, test.member)
		if got != test.want || ok != test.ok {
			t.Errorf("%s: Find(%s, %q) is %q, %v; want %q, %v", test.name, test.object, test.member, got, ok, test.want, test.ok)
		}
		value, ok := jsonpatch.Find(jsontext.Value(test.object), test.member)
		if string(value) != test.want || ok != test.ok {
			t.Errorf("%s: Find(%s, %q) of bytes is %q, %v; want %q, %v", test.name, test.object, test.member, value, ok, test.want, test.ok)
		}
	}
}

func TestEachMember(t *testing.T) {
	tests := []struct {
		name, object string
		want         []string
		ok           bool
	}{
		{"all", ` { "a" : 1,"\u0062":{"c":2} ,"d":[]} `, []string{"a=1", `\u0062={"c":2}`, "d=[]"}, true},
		{"none", `{}`, nil, true},
		{"until told to stop", `{"a":1,"stop":2,"b":3,?`, []string{"a=1", "stop=2"}, true},
		{"text after it", `{"a":1}?`, []string{"a=1"}, true},
		{"until it breaks", `{"a":1,"b":2,}`, []string{"a=1", "b=2"}, false},
		{"cut", `{"a":1,"b":2`, []string{"a=1"}, false},
		{"only opened", `{`, nil, false},
		{"comma only", `{,}`, nil, false},
		{"closed by the wrong bracket", `{"a":1]`, nil, false},
		{"array", `[]`, nil, false},
		{"nothing", ``, nil, false},
	}
	for _, test := range tests {
		var got []string
		ok := jsonpatch.EachMember(test.object, func(name, value string) bool {
			got = append(got, name+"="+value)
			return name != "stop"
		})
		if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok {
			t.Errorf("%s: %v, want %v; members (-want +got):\n%s", test.name, ok, test.ok, diff)
		}
	}
}

func TestEachElement(t *testing.T) {
	tests := []struct {
		name, array string
		want        []string
		ok          bool
	}{
		{"all", " [ 1,\"a,b\" , {\"c\":[2]},[ ]\n] ", []string{"1", `"a,b"`, `{"c":[2]}`, "[ ]"}, true},
		{"none", `[ ]`, nil, true},
		{"until told to stop", `[1,"stop",2,?`, []string{"1", `"stop"`}, true},
		{"text after it", `[1]?`, []string{"1"}, true},
		{"until it breaks", `[1,2,]`, []string{"1", "2"}, false},
		{"cut", `[1,2`, []string{"1"}, false},
		{"only opened", `[`, nil, false},
		{"closed by the wrong bracket", `[1}`, nil, false},
		{"object", `{"a":1}`, nil, false},
		{"nothing", ``, nil, false},
	}
	for _, test := range tests {
		var got []string
		ok := jsonpatch.EachElement([]byte(test.array), func(value []byte) bool {
			got = append(got, string(value))
			return string(value) != `"stop"`
		})
		if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok {
			t.Errorf("%s: %v, want %v; elements (-want +got):\n%s", test.name, ok, test.ok, diff)
		}
	}
}

func TestWalkingAllocatesNothing(t *testing.T) {
	value := jsontext.Value(chunk)
	tests := []struct {
		name string
		walk func()
	}{
		{"Skip", func() { jsonpatch.Skip(chunk, 0) }},
		{"Skip of a value", func() { jsonpatch.Skip(value, 0) }},
		{"Find", func() { jsonpatch.Find(chunk, "usage") }},
		{"Find in a value", func() { jsonpatch.Find(value, "usage") }},
		{"EachMember", func() { jsonpatch.EachMember(value, func(_, _ jsontext.Value) bool { return true }) }},
	}
	for _, test := range tests {
		if allocs := testing.AllocsPerRun(10, test.walk); allocs > 0 {
			t.Errorf("%s: %v allocations", test.name, allocs)
		}
	}
}
