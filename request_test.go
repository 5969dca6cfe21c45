package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
)

func TestNewRequest(t *testing.T) {
	tests := []struct {
		name, body string
		model      string
		stream     bool
		param      string // of the error; "-" for none
		message    string // part of the error's message
	}{
		{"plain", `{"model":"a"}`, "a", false, "", ""},
		{"stream", ` { "stream" : true , "model" : "a" } `, "a", true, "", ""},
		{"stream null", `{"model":"a","stream":null}`, "a", false, "", ""},
		{"escaped", `{"\u006dodel":"\u0061\/b"}`, "a/b", false, "", ""},
		{"nested model is not the model", `{"metadata":{"model":"x"},"model":"a","messages":[{"model":"y"}]}`, "a", false, "", ""},
		{"numbers no float holds", `{"model":"a","seed":9007199254740993,"x":1e400}`, "a", false, "", ""},
		{"empty", ``, "", false, "-", "the document is empty"},
		{"blank", " \n", "", false, "-", "the document is empty"},
		{"array", `[]`, "", false, "-", "must be a JSON object, not an array"},
		{"two values", `{"model":"a"}{}`, "", false, "-", "(byte 13)"},
		{"cut", `{"model":"a"`, "", false, "-", "(byte 12"},
		{"duplicate", `{"model":"a","model":"b"}`, "", false, "model", "duplicate object member name (byte 13, at /model)"},
		{"nested duplicate", `{"model":"a","x":[{"y":1,"y":2}]}`, "", false, "x[0].y", "duplicate object member name"},
		{"UTF-8", "{\"model\":\"a\xff\"}", "", false, "model", "invalid UTF-8"},
		{"surrogate", `{"model":"\ud800"}`, "", false, "model", "surrogate"},
		{"no model", `{}`, "", false, "model", "missing"},
		{"model null", `{"model":null}`, "", false, "model", "non-empty string"},
		{"model empty", `{"model":""}`, "", false, "model", "non-empty string"},
		{"stream text", `{"model":"a","stream":"true"}`, "", false, "stream", "boolean"},
		{"deep", `{"model":"a","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "", false, "*", "depth"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req, err := gateway.NewRequest(gateway.APIChat, []byte(test.body))
			if test.message == "" {
				if err != nil {
					t.Fatalf("error: %v", err)
				}
				if req.Model != test.model || req.Stream != test.stream || string(req.Body) != test.body {
					t.Errorf("model %q, stream %v, body %s", req.Model, req.Stream, req.Body)
				}
				return
			}
			e := gateway.AsError(err)
			if e == nil || !errors.Is(err, gateway.ErrInvalidRequest) || e.Status != 400 || e.Outcome != gateway.OutcomeRejected {
				t.Fatalf("error: %v, want ErrInvalidRequest with 400", err)
			}
			if param := strings.TrimPrefix(test.param, "-"); e.Param != param && test.param != "*" {
				t.Errorf("param %q, want %q", e.Param, param)
			}
			if !strings.Contains(e.Message, test.message) {
				t.Errorf("message %q does not say %q", e.Message, test.message)
			}
		})
	}
}

func TestRewriteTouchesOnlyWhatItIsTold(t *testing.T) {
	set := func(name, value string) gateway.Edit { return gateway.Edit{Name: name, Value: jsontext.Value(value)} }
	remove := func(name string) gateway.Edit { return gateway.Edit{Name: name} }
	rename := func(name, to string) gateway.Edit { return gateway.Edit{Name: name, NewName: to} }
	edits := func(e ...gateway.Edit) []gateway.Edit { return e }
	tests := []struct {
		name, body string
		edits      []gateway.Edit
		want       string
	}{
		{"nothing", ` {"model" : "a"} `, nil, ` {"model" : "a"} `},
		{"set", ` {"z":1 , "model" : "a" ,"m":{"model":"a"}} `, edits(set("model", `"b"`)), ` {"z":1 , "model" : "b" ,"m":{"model":"a"}} `},
		{"escaped name", `{"\u006dodel":"a"}`, edits(set("model", `"b"`)), `{"\u006dodel":"b"}`},
		{"append", `{"model":"a" } `, edits(set("n", "1"), set("o", "2")), `{"model":"a","n":1,"o":2 } `},
		{"append to nothing", `{ }`, edits(set("n", "1")), `{ "n":1}`},
		{"remove first", `{"a":1, "b":2}`, edits(remove("a")), `{"b":2}`},
		{"remove middle", `{"a":1, "b":2, "c":3}`, edits(remove("b")), `{"a":1, "c":3}`},
		{"remove last", `{"a":1, "b":2 }`, edits(remove("b")), `{"a":1 }`},
		{"remove last two", `{"a":1, "b":2 , "c":3}`, edits(remove("b"), remove("c")), `{"a":1}`},
		{"remove first two", `{"a":1, "b":2 , "c":3}`, edits(remove("b"), remove("a")), `{"c":3}`},
		{"remove outer two", `{"a":1, "b":2 , "c":3}`, edits(remove("c"), remove("a")), `{"b":2}`},
		{"remove all", `{ "a":1, "b":2 }`, edits(remove("a"), remove("b")), `{  }`},
		{"remove all and append", `{ "a":1, "b":2 }`, edits(remove("a"), remove("b"), set("c", "3")), `{ "c":3 }`},
		{"remove last and append", `{"a":1, "b":2 }`, edits(remove("b"), set("c", "3")), `{"a":1,"c":3 }`},
		{"remove absent", `{"a":1}`, edits(remove("b")), `{"a":1}`},
		{"rename", `{"a" : 1,"b":2}`, edits(rename("a", "c")), `{"c" : 1,"b":2}`},
		{"rename and set", `{"a" : 1,"b":2}`, edits(gateway.Edit{Name: "a", NewName: "c", Value: jsontext.Value("9")}), `{"c" : 9,"b":2}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := &gateway.Request{Body: []byte(test.body)}
			got, err := req.Rewrite(test.edits...)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := compact(t, got), compact(t, []byte(test.want))
			if want := compact(t, []byte(test.want)); a != want {
				t.Errorf("means %s, want %s", a, want)
			}
			if !strings.Contains(test.name, "remove") && string(got) != test.want {
				t.Errorf("is %s, want %s", got, test.want)
			}
			if string(req.Body) != test.body {
				t.Errorf("the original has become %s", req.Body)
			}
		})
	}
}

func compact(t *testing.T, text []byte) string {
	t.Helper()
	v := jsontext.Value(bytes.Clone(text))
	if err := v.Compact(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(v)
}

// document writes a random JSON object with a model somewhere in it, in odd but valid ways.
func document(random *rand.Rand) (before, value, after string) {
	space := func() string { return []string{"", " ", "\n\t", "\r\n  "}[random.IntN(4)] }
	values := []string{
		`9007199254740993`, `1e400`, `-0`, `1.0`, `0.1e-2`, `12345678901234567890123`, `null`, `true`, `[]`, `{}`,
		`"\u2028"`, "\"\u2028\"", `"<>&"`, `"\\\""`, `{"model":"chat-smart"}`, `[{"model":"chat-smart"},"model"]`,
		`"日本語 👩‍🚀"`, `"\/\b"`, `[1,[2,[3,{"a":[]}]]]`,
	}
	member := func(i int) string {
		names := []string{"messages", "x", "metadata", "é", `\u0061`, "extra body", "tools"}
		return fmt.Sprintf(`%s"%s%d"%s:%s%s%s`, space(), names[random.IntN(len(names))], i, space(), space(),
			values[random.IntN(len(values))], space())
	}
	var b strings.Builder
	b.WriteString(space() + "{")
	n := random.IntN(5)
	for i := range n {
		b.WriteString(member(i) + ",")
	}
	b.WriteString(space() + `"model"` + space() + ":" + space())
	before = b.String()
	b.Reset()
	b.WriteString(space())
	for i := range random.IntN(5) {
		b.WriteString("," + member(n+i))
	}
	b.WriteString("}" + space())
	return before, `"chat-smart"`, b.String()
}

func TestOnlyTheModelChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for range 5000 {
		before, value, after := document(random)
		req, err := gateway.NewRequest(gateway.APIChat, []byte(before+value+after))
		if err != nil {
			t.Fatalf("%s: %v", before+value+after, err)
		}
		got, err := req.Rewrite(gateway.Edit{Name: "model", Value: jsontext.Value(`"real/model:1"`)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before+`"real/model:1"`+after, string(got)); diff != "" {
			t.Fatalf("body (-want +got):\n%s", diff)
		}
	}
}

func TestLargeBodyIsSpliced(t *testing.T) {
	image := strings.Repeat("iVBORw0KGgo=", 20<<20/12)
	before, after := `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+image+`"}}]}],"model":`, `}`
	req, err := gateway.NewRequest(gateway.APIChat, []byte(before+`"a"`+after))
	if err != nil {
		t.Fatal(err)
	}
	got, err := req.Rewrite(gateway.Edit{Name: "model", Value: jsontext.Value(`"b"`)})
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != before+`"b"`+after {
		t.Error("the body is not the caller's but for the model")
	}
	if f := req.Facts(); f.Images != 1 || f.PromptTokens > 5000 {
		t.Errorf("facts %+v: a picture is counted as text", f)
	}
}

func FuzzRewriteModel(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		before, value, after := document(random)
		f.Add([]byte(before + value + after))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := gateway.NewRequest(gateway.APIChat, body)
		if err != nil {
			return
		}
		raw, _ := req.Member("model")
		at := bytes.Index(body, raw)
		got, err := req.Rewrite(gateway.Edit{Name: "model", Value: jsontext.Value(`"m"`)})
		if err != nil {
			t.Fatalf("a valid request cannot be rewritten: %v", err)
		}
		if len(got) != len(body)-len(raw)+3 {
			t.Fatalf("%s became %s", body, got)
		}
		// The model's text may occur earlier as part of something else: try each place.
		for ; at >= 0; at = next(body, raw, at) {
			if string(got) == string(body[:at])+`"m"`+string(body[at+len(raw):]) {
				return
			}
		}
		t.Fatalf("%s became %s", body, got)
	})
}

func next(body, raw []byte, at int) int {
	if i := bytes.Index(body[at+1:], raw); i >= 0 {
		return at + 1 + i
	}
	return -1
}

func TestFacts(t *testing.T) {
	words := strings.Repeat("word ", 8000)
	tests := []struct {
		name string
		api  gateway.API
		body string
		want gateway.Facts
		low  int64 // bounds of the estimate
		high int64
	}{
		{
			"chat", gateway.APIChat,
			`{"model":"a","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"what is this"},{"type":"image_url","image_url":{"url":"data:AAAA"}},{"type":"input_audio","input_audio":{"data":"AAAA"}},{"type":"file","file":{"file_data":"AAAA"}}]}],"tools":[{"type":"function"}],"max_tokens":7,"max_completion_tokens":100,"n":2}`,
			gateway.Facts{Messages: 2, Images: 1, Audio: 1, Files: 1, Tools: 1, N: 2, MaxOutput: 100}, 3000, 3050,
		},
		{"long prompt", gateway.APIChat, `{"model":"a","messages":[{"role":"user","content":"` + words + `"}]}`, gateway.Facts{Messages: 1, N: 1}, 7500, 13500},
		{"Han", gateway.APIChat, `{"model":"a","messages":[{"role":"user","content":"` + strings.Repeat("日本語", 100) + `"}]}`, gateway.Facts{Messages: 1, N: 1}, 200, 350},
		{"embedding text", gateway.APIEmbeddings, `{"model":"a","input":"eight characters"}`, gateway.Facts{Messages: 1, N: 1}, 4, 12},
		{"embedding texts", gateway.APIEmbeddings, `{"model":"a","input":["a","b"]}`, gateway.Facts{Messages: 2, N: 1}, 8, 12},
		{"embedding tokens", gateway.APIEmbeddings, `{"model":"a","input":[1,2,3]}`, gateway.Facts{Messages: 1, N: 1}, 3, 8},
		{"embedding token lists", gateway.APIEmbeddings, `{"model":"a","input":[[1,2,3],[4]]}`, gateway.Facts{Messages: 2, N: 1}, 4, 13},
		{"absurd numbers", gateway.APIChat, `{"model":"a","max_tokens":-5,"n":1e9}`, gateway.Facts{N: 1}, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req, err := gateway.NewRequest(test.api, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			got := req.Facts()
			if got.PromptTokens < test.low || got.PromptTokens > test.high {
				t.Errorf("%d prompt tokens, want %d to %d", got.PromptTokens, test.low, test.high)
			}
			got.PromptTokens, got.TextBytes = 0, 0
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}
