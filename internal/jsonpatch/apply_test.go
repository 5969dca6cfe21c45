package jsonpatch_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

func set(name, value string) jsonpatch.Edit {
	return jsonpatch.Edit{Name: name, Value: jsontext.Value(value)}
}

func remove(name string) jsonpatch.Edit { return jsonpatch.Edit{Name: name} }

func rename(name, newName string) jsonpatch.Edit {
	return jsonpatch.Edit{Name: name, NewName: newName}
}

func edits(e ...jsonpatch.Edit) []jsonpatch.Edit { return e }

func TestApply(t *testing.T) {
	tests := []struct {
		name, doc string
		edits     []jsonpatch.Edit
		want      string
	}{
		{"set", ` {"z":1 , "model" : "a" ,"m":{"model":"a"}} `, edits(set("model", `"b"`)), ` {"z":1 , "model" : "b" ,"m":{"model":"a"}} `},
		{"set an escaped name", `{"\u006dodel":"a"}`, edits(set("model", `"b"`)), `{"\u006dodel":"b"}`},
		{"set two", `{"a":1,"b":2,"c":3}`, edits(set("c", "[30]"), set("a", "10")), `{"a":10,"b":2,"c":[30]}`},
		{"set twice", `{"a":1}`, edits(set("a", "2"), set("a", "3")), `{"a":3}`},
		{"set and set back", `{"a":1,"b":2}`, edits(set("a", "2"), set("b", "3"), set("a", "1")), `{"a":1,"b":3}`},
		{"set to null", `{"a":1}`, edits(set("a", "null")), `{"a":null}`},
		{"append", `{"model":"a" } `, edits(set("n", "1"), set("o", "2")), `{"model":"a","n":1,"o":2 } `},
		{"append to an empty object", ` { } `, edits(set("n", "1")), ` { "n":1} `},
		{"append twice", `{}`, edits(set("n", "1"), set("n", "2")), `{"n":2}`},
		{"append and remove", `{"a":1}`, edits(set("n", "1"), remove("n"), set("o", "2")), `{"a":1,"o":2}`},
		{"append a name with escapes", `{}`, edits(set("\"\n\\é<", "1")), `{"\"\n\\é<":1}`},
		{"remove the first", `{ "a":1, "b":2}`, edits(remove("a")), `{ "b":2}`},
		{"remove a middle one", `{"a":1 ,"b":2, "c":3}`, edits(remove("b")), `{"a":1, "c":3}`},
		{"remove the last", `{"a":1, "b":2 }`, edits(remove("b")), `{"a":1 }`},
		{"remove the last two", `{"a":1, "b":2 , "c":3}`, edits(remove("b"), remove("c")), `{"a":1}`},
		{"remove the first two", `{"a":1, "b":2 , "c":3}`, edits(remove("b"), remove("a")), `{"c":3}`},
		{"remove the outer two", `{"a":1, "b":2 , "c":3}`, edits(remove("c"), remove("a")), `{"b":2}`},
		{"remove all", `{ "a":1, "b":2 }`, edits(remove("a"), remove("b")), `{  }`},
		{"remove all and append", `{ "a":1, "b":2 }`, edits(remove("a"), remove("b"), set("c", "3")), `{ "c":3 }`},
		{"remove the last and append", `{"a":1, "b":2 }`, edits(remove("b"), set("c", "3")), `{"a":1,"c":3 }`},
		{"remove and set", `{"a":1,"b":2}`, edits(remove("a"), set("a", "3")), `{"b":2,"a":3}`},
		{"empty value", `{"a":1,"b":2}`, edits(set("a", "")), `{"b":2}`},
		{"rename", `{"a" : 1,"b":2}`, edits(rename("a", "c")), `{"c" : 1,"b":2}`},
		{"rename an escaped name", `{"\u0061":1}`, edits(rename("a", `"`)), `{"\"":1}`},
		{"rename and set", `{"a" : 1,"b":2}`, edits(jsonpatch.Edit{Name: "a", NewName: "c", Value: jsontext.Value("9")}), `{"c" : 9,"b":2}`},
		{"rename and set an absent one", `{"b":2}`, edits(jsonpatch.Edit{Name: "a", NewName: "c", Value: jsontext.Value("9")}), `{"b":2,"c":9}`},
		{"rename and set the new one", `{"a":1}`, edits(rename("a", "b"), set("b", "2")), `{"b":2}`},
		{"rename and set the old one", `{"a":1}`, edits(rename("a", "b"), set("a", "2")), `{"b":1,"a":2}`},
		{"set and rename", `{"a":1}`, edits(set("a", "2"), rename("a", "b")), `{"b":2}`},
		{"rename over one before", `{"a":1, "b":2, "c":3}`, edits(rename("c", "a")), `{"b":2, "a":3}`},
		{"rename over one after", `{"a":1, "b":2, "c":3}`, edits(rename("a", "c")), `{"c":1, "b":2}`},
		{"rename over an appended one", `{"a":1}`, edits(set("b", "2"), rename("a", "b")), `{"b":1}`},
		{"rename there and back", `{"\u0061":1}`, edits(rename("a", "b"), rename("b", "a")), `{"\u0061":1}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := parse(t, test.doc)
			got := object.Apply(test.edits...)
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			parse(t, string(got))
			if string(object.Bytes()) != test.doc {
				t.Errorf("the original has become %s", object.Bytes())
			}
		})
	}
}

func TestApplyWithoutEffectCopiesNothing(t *testing.T) {
	object := parse(t, ` {"a" : 1, "\u0062": "x"} `)
	tests := []struct {
		name  string
		edits []jsonpatch.Edit
	}{
		{"no edits", nil},
		{"remove an absent one", edits(remove("c"))},
		{"rename an absent one", edits(rename("c", "a"))},
		{"rename to the same", edits(rename("a", "a"), rename("b", "b"))},
		{"set to the same", edits(set("a", "1"), set("b", `"x"`))},
		{"append and remove", edits(set("c", "1"), remove("c"))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := object.Apply(test.edits...); &got[0] != &object.Bytes()[0] || len(got) != len(object.Bytes()) {
				t.Errorf("another document: %s", got)
			}
			if allocs := testing.AllocsPerRun(10, func() { object.Apply(test.edits...) }); allocs > 0 {
				t.Errorf("%v allocations", allocs)
			}
		})
	}
}

func TestApplyAllocatesTheResultOnly(t *testing.T) {
	object := parse(t, `{"model":"a","stream":true,"messages":[]}`)
	edit := edits(set("model", `"upstream-model"`), remove("stream"), set("seed", "1"), rename("messages", "input"))
	if allocs := testing.AllocsPerRun(10, func() { object.Apply(edit...) }); allocs != 1 {
		t.Errorf("%v allocations, want 1", allocs)
	}
}

func TestResultsCannotGrowIntoTheDocument(t *testing.T) {
	text := []byte(`{"a":1,"b":2}tail`)
	object, err := jsonpatch.Parse(text[:13])
	if err != nil {
		t.Fatal(err)
	}
	value, _ := object.Get("a")
	_ = append(value, "xxx"...)
	_ = append(object.Bytes(), "xxx"...)
	_ = append(object.Apply(), "xxx"...)
	if got := string(text); got != `{"a":1,"b":2}tail` {
		t.Errorf("the document has become %s", got)
	}
}

func TestZeroObject(t *testing.T) {
	var object jsonpatch.Object
	if got := string(object.Bytes()); got != "{}" {
		t.Errorf("Bytes: %s", got)
	}
	if got, ok := object.Get("a"); ok {
		t.Errorf("Get: %s", got)
	}
	if got := string(object.Apply(set("a", "1"), remove("b"))); got != `{"a":1}` {
		t.Errorf("Apply: %s", got)
	}
}

// TestApplyManyEditsOfManyMembers would take minutes if each edit looked at each member.
func TestApplyManyEditsOfManyMembers(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`{"keep":0`)
	removals := make([]jsonpatch.Edit, 200_000)
	for i := range removals {
		name := strconv.Itoa(i)
		doc.WriteString(`,"` + name + `":null`)
		removals[i] = remove(name)
	}
	doc.WriteString(`}`)
	if got := string(parse(t, doc.String()).Apply(removals...)); got != `{"keep":0}` {
		t.Errorf("%d bytes", len(got))
	}
}

// TestApplyChangesOnlyWhatIsAsked makes one random edit of each kind in each of many random documents, and then a few
// at once.
func TestApplyChangesOnlyWhatIsAsked(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 0))
		doc := randomDocument(random)
		object := parse(t, doc)
		members := object.Members()
		value := randomValue(random, 2)
		check := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("seed %d: %s in %s\nis   %s\nwant %s", seed, what, doc, got, want)
			}
			parse(t, got)
		}
		absent := "absent" // random names are others
		end := strings.LastIndexByte(doc, '}')
		if n := len(members); n > 0 {
			i := random.IntN(n)
			m := members[i]
			check("set "+m.Name, string(object.Apply(set(m.Name, value))), doc[:m.ValueStart]+value+doc[m.ValueEnd:])

			nameEnd := jsonpatch.Skip(doc, m.NameStart)
			check("rename "+m.Name, string(object.Apply(rename(m.Name, absent))), doc[:m.NameStart]+`"absent"`+doc[nameEnd:])

			from, to := m.NameStart, m.ValueEnd
			if i > 0 {
				from = members[i-1].ValueEnd
			} else if n > 1 {
				to = members[1].NameStart
			}
			check("remove "+m.Name, string(object.Apply(remove(m.Name))), doc[:from]+doc[to:])

			end = members[n-1].ValueEnd
			check("append", string(object.Apply(set(absent, value))), doc[:end]+`,"absent":`+value+doc[end:])
		} else {
			check("append", string(object.Apply(set(absent, value))), doc[:end]+`"absent":`+value+doc[end:])
		}

		several := make([]jsonpatch.Edit, random.IntN(6))
		for k := range several {
			several[k] = randomEdit(random, members)
		}
		checkApply(t, object, several)
	}
}

// checkApply compares what Apply makes of a document with a plain model of its members.
func checkApply(t *testing.T, object jsonpatch.Object, several []jsonpatch.Edit) {
	t.Helper()
	doc := object.Bytes()
	before := bytes.Clone(doc)
	got := object.Apply(several...)
	if !bytes.Equal(doc, before) {
		t.Fatalf("%+v: the original was %s, is %s", several, before, doc)
	}
	after, err := jsonpatch.Parse(got)
	if err != nil {
		t.Fatalf("%+v: %s became %s: %v", several, doc, got, err)
	}
	if diff := cmp.Diff(applyToModel(modelOf(object), several), modelOf(after)); diff != "" {
		t.Errorf("%+v: %s became %s; members (-want +got):\n%s", several, doc, got, diff)
	}
	opening, closing := bytes.IndexByte(doc, '{')+1, bytes.LastIndexByte(doc, '}')
	if !bytes.HasPrefix(got, doc[:opening]) || !bytes.HasSuffix(got, doc[closing:]) {
		t.Errorf("%+v: %s became %s: text outside the object changed", several, doc, got)
	}
}

// modelMember is a member of the model: its name, the text between name and value, and its value.
type modelMember struct{ Name, Between, Value string }

func modelOf(object jsonpatch.Object) []modelMember {
	doc := string(object.Bytes())
	list := make([]modelMember, len(object.Members()))
	for i, m := range object.Members() {
		list[i] = modelMember{m.Name, doc[jsonpatch.Skip(doc, m.NameStart):m.ValueStart], doc[m.ValueStart:m.ValueEnd]}
	}
	return list
}

func applyToModel(list []modelMember, several []jsonpatch.Edit) []modelMember {
	index := func(name string) int {
		return slices.IndexFunc(list, func(m modelMember) bool { return m.Name == name })
	}
	for _, e := range several {
		i := index(e.Name)
		if i < 0 && e.Value != nil {
			i = len(list)
			list = append(list, modelMember{Name: e.Name, Between: ":"})
		}
		if i < 0 {
			continue
		}
		if e.Value != nil {
			list[i].Value = string(e.Value)
		}
		if other := index(e.NewName); e.NewName != "" && e.NewName != e.Name {
			list[i].Name = e.NewName
			if other >= 0 {
				list = slices.Delete(list, other, other+1)
			}
		}
		if e.Value == nil && e.NewName == "" {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

func randomEdit(random *rand.Rand, members []jsonpatch.Member) jsonpatch.Edit {
	name := func() string {
		if random.IntN(3) == 0 || len(members) == 0 {
			return []string{"new", "Ω\"\\", "x\n"}[random.IntN(3)]
		}
		return members[random.IntN(len(members))].Name
	}
	e := remove(name())
	if random.IntN(2) == 0 {
		e.Value = jsontext.Value(randomValue(random, 1))
	}
	if random.IntN(3) == 0 {
		e.NewName = name()
	}
	return e
}

// randomDocument writes an object with members in odd but valid ways. No name comes twice.
func randomDocument(random *rand.Rand) string {
	return randomSpace(random) + randomObject(random, 3) + randomSpace(random)
}

func randomObject(random *rand.Rand, depth int) string {
	names := []string{
		"model", `\u006dodels`, "stream", "", "é", `\u00e9\u00e9`, `\"`, `\\`, `\\\"`, "{", "}", "日本語", "😀", `\ud83d\ude00!`, ",", ":",
	}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	members := make([]string, random.IntN(len(names)))
	for i := range members {
		members[i] = randomSpace(random) + `"` + names[i] + `"` + randomSpace(random) + ":" +
			randomSpace(random) + randomValue(random, depth-1) + randomSpace(random)
	}
	if len(members) == 0 {
		return "{" + randomSpace(random) + "}"
	}
	return "{" + strings.Join(members, ",") + "}"
}

func randomValue(random *rand.Rand, depth int) string {
	values := []string{
		"0", "-0", "1.0", "0.1e-2", "1E+400", "9007199254740993", "12345678901234567890123", "null", "true", "false",
		`""`, `"\\"`, `"\\\""`, `"]}"`, `"<>&"`, `"\u2028"`, "\"\u2028\"", `"日本語 👩‍🚀"`, `"\/\b"`, `"` + strings.Repeat("long ", 20) + `"`,
	}
	switch kind := random.IntN(4); {
	case kind == 0 && depth > 0:
		return randomObject(random, depth)
	case kind == 1 && depth > 0:
		elements := make([]string, random.IntN(4))
		for i := range elements {
			elements[i] = randomSpace(random) + randomValue(random, depth-1) + randomSpace(random)
		}
		return "[" + strings.Join(elements, ",") + "]"
	default:
		return values[random.IntN(len(values))]
	}
}

func randomSpace(random *rand.Rand) string {
	return []string{"", "", "", " ", "\n\t", "\r\n  "}[random.IntN(6)]
}

func parse(t *testing.T, doc string) jsonpatch.Object {
	t.Helper()
	object, err := jsonpatch.Parse([]byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return object
}
