package echo_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers/echo"
)

func do(t *testing.T, api gateway.API, body string) (*gateway.Response, error) {
	t.Helper()
	req, err := gateway.NewRequest(api, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return echo.New("demo").Do(t.Context(), req)
}

type completion struct {
	ID      string `json:"id"`
	Choices []struct {
		Index   int     `json:"index"`
		Message message `json:"message"`
		Delta   message `json:"delta"`
		Finish  string  `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
	} `json:"usage"`
}

type message struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func TestChat(t *testing.T) {
	const weather = `"tools":[{"type":"function","function":{"name":"other"}},{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1},"unit":{"enum":["C","F"]}},"required":["city","days","unit"]}}}]`
	for _, test := range []struct {
		name, body string
		text       string
		tool, args string
		in, out    int64
	}{
		{name: "text", body: `{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"héllo  <world>"}]}`, text: "héllo  <world>", in: 4, out: 2},
		{name: "parts", body: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what is"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"this"}]}]}`, text: "what is\nthis", in: 3, out: 3},
		{name: "the last user message", body: `{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","content":null},{"role":"user","content":"two"},{"role":"assistant","content":"three"}]}`, text: "two", in: 3, out: 1},
		{name: "nobody said anything", body: `{"model":"m","messages":[{"role":"system","content":"x"}]}`, in: 1},
		{name: "tools are not used unasked", body: `{"model":"m","messages":[{"role":"user","content":"hi"}],"tool_choice":"auto",` + weather + `}`, text: "hi", in: 1, out: 1},
		{name: "required tool", body: `{"model":"m","messages":[{"role":"user","content":"hi"}],"tool_choice":"required",` + weather + `}`, tool: "other", args: "{}", in: 1, out: 1},
		{name: "named tool", body: `{"model":"m","messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"function","function":{"name":"weather"}},` + weather + `}`, tool: "weather", args: `{"city":"hi","days":1,"unit":"C"}`, in: 1, out: 1},
		{name: "after the tool's result", body: `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"x","content":"sunny"}],"tool_choice":"required",` + weather + `}`, text: "sunny", in: 2, out: 1},
		{name: "JSON", body: `{"model":"m","messages":[{"role":"user","content":"a \"b\""}],"response_format":{"type":"json_object"}}`, text: `{"echo":"a \"b\""}`, in: 2, out: 2},
		{
			name: "schema", in: 1, out: 1,
			body: `{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","$defs":{"p":{"type":"object","properties":{"x":{"type":["null","number"]},"next":{"$ref":"#/$defs/p"}},"required":["x"]}},"properties":{"p":{"$ref":"#/$defs/p"},"l":{"type":"array","items":{"type":"boolean"},"minItems":2},"e":{"type":"array"},"a":{"anyOf":[{"const":7},{"type":"string"}]},"skipped":{"type":"string"},"n":{"type":"null"}},"required":["p","l","e","a","n","free"]}}}}`,
			text: `{"p":{"x":0},"l":[false,false],"e":[],"a":7,"n":null,"free":"hi"}`,
		},
		{name: "a schema within itself", body: `{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"array","items":{"$ref":"#"},"minItems":1}}}}`, in: 1, out: 1, text: "?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, err := do(t, gateway.APIChat, test.body)
			if err != nil {
				t.Fatal(err)
			}
			var c completion
			if err := json.Unmarshal(res.Body, &c); err != nil {
				t.Fatal(err)
			}
			want := gateway.Usage{Input: test.in, Output: test.out}
			if *res.Usage != want || c.Usage.Prompt != test.in || c.Usage.Completion != test.out || c.Usage.Total != test.in+test.out {
				t.Errorf("usage %+v, %+v", *res.Usage, c.Usage)
			}
			checkMessage(t, test.text, test.tool, test.args, c.Choices[0].Message, c.Choices[0].Finish)

			again, err := do(t, gateway.APIChat, test.body)
			if err != nil || !bytes.Equal(again.Body, res.Body) {
				t.Error("the answer is not the same again")
			}

			streamed := strings.Replace(test.body, `{"model":"m",`, `{"model":"m","stream":true,`, 1)
			var whole message
			finish := ""
			for event, err := range stream(t, streamed) {
				if err != nil {
					t.Fatal(err)
				}
				var c completion
				if err := json.Unmarshal([]byte(event.Data), &c); err != nil {
					t.Fatal(err)
				}
				if event.Hidden != (event.Usage != nil) || event.Hidden != (len(c.Choices) == 0) {
					t.Errorf("%+v", event)
				}
				if event.Hidden {
					if *event.Usage != want {
						t.Errorf("usage %+v", *event.Usage)
					}
					continue
				}
				if strings.Contains(event.Data, `"usage"`) {
					t.Error(event.Data)
				}
				whole.Content += c.Choices[0].Delta.Content
				whole.ToolCalls = append(whole.ToolCalls, c.Choices[0].Delta.ToolCalls...)
				finish = c.Choices[0].Finish
			}
			checkMessage(t, test.text, test.tool, test.args, whole, finish)
		})
	}
}

func stream(t *testing.T, body string) func(func(gateway.Event, error) bool) {
	t.Helper()
	res, err := do(t, gateway.APIChat, body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Stream.All()
}

func checkMessage(t *testing.T, text, tool, args string, got message, finish string) {
	t.Helper()
	if tool == "" {
		if got.Content != text && text != "?" || finish != "stop" || len(got.ToolCalls) != 0 || text == "?" && !jsontext.Value(got.Content).IsValid() {
			t.Errorf("got %+v %s", got, finish)
		}
		return
	}
	if len(got.ToolCalls) != 1 || got.ToolCalls[0].ID == "" || got.ToolCalls[0].Function.Name != tool ||
		got.ToolCalls[0].Function.Arguments != args || finish != "tool_calls" {
		t.Errorf("got %+v %s", got, finish)
	}
}

func TestChoicesAndUsageOfStreams(t *testing.T) {
	var got []string
	for event, err := range stream(t, `{"model":"m","stream":true,"n":2,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"a b"}]}`) {
		if err != nil || event.Hidden {
			t.Fatal(event, err)
		}
		_, data, _ := strings.Cut(event.Data, `"choices":`)
		got = append(got, fmt.Sprint(event.Output, event.Finished, event.OutputBytes, " ", data))
	}
	want := []string{
		`false false 0 [{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`false false 0 [{"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`true false 2 [{"index":0,"delta":{"content":"a "},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`true false 2 [{"index":1,"delta":{"content":"a "},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`true false 1 [{"index":0,"delta":{"content":"b"},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`true false 1 [{"index":1,"delta":{"content":"b"},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`false true 0 [{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`,
		`false true 0 [{"index":1,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`,
		`false false 0 [],"usage":{"prompt_tokens":2,"completion_tokens":4,"total_tokens":6}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEmbeddings(t *testing.T) {
	vectors := func(body string) (list [][]float32, raw []string, usage *gateway.Usage) {
		res, err := do(t, gateway.APIEmbeddings, body)
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Data []struct {
				Index     int            `json:"index"`
				Embedding jsontext.Value `json:"embedding"`
			} `json:"data"`
		}
		if err := json.Unmarshal(res.Body, &out); err != nil {
			t.Fatal(err)
		}
		for i, d := range out.Data {
			var vector []float32
			if d.Index != i {
				t.Error("index", d.Index)
			}
			if d.Embedding.Kind() == '"' {
				var text string
				_ = json.Unmarshal(d.Embedding, &text)
				bytes, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					t.Fatal(err)
				}
				for ; len(bytes) > 0; bytes = bytes[4:] {
					vector = append(vector, math.Float32frombits(binary.LittleEndian.Uint32(bytes)))
				}
			} else if err := json.Unmarshal(d.Embedding, &vector); err != nil {
				t.Fatal(err)
			}
			list, raw = append(list, vector), append(raw, string(d.Embedding))
		}
		return list, raw, res.Usage
	}
	one, _, usage := vectors(`{"model":"m","input":"a b c"}`)
	sum := 0.0
	for _, v := range one[0] {
		sum += float64(v) * float64(v)
	}
	if len(one[0]) != 256 || math.Abs(sum-1) > 1e-5 || *usage != (gateway.Usage{Input: 3}) {
		t.Errorf("%d numbers, length %v, %+v", len(one[0]), sum, usage)
	}
	encoded, raw, _ := vectors(`{"model":"m","input":["a b c","x"],"encoding_format":"base64"}`)
	if diff := cmp.Diff(one[0], encoded[0]); diff != "" || raw[0][0] != '"' || cmp.Equal(encoded[0], encoded[1]) {
		t.Error(diff)
	}
	if list, _, usage := vectors(`{"model":"m","input":[[1,2],[3]],"dimensions":5}`); len(list) != 2 || len(list[1]) != 5 || usage.Input != 3 {
		t.Error(list, usage)
	}
	if list, _, usage := vectors(`{"model":"m","input":[1,2]}`); len(list) != 1 || usage.Input != 2 {
		t.Error(list, usage)
	}
}

func TestBadRequests(t *testing.T) {
	for _, test := range []struct {
		api         gateway.API
		body, param string
	}{
		{gateway.APIChat, `{"model":"m"}`, "messages"},
		{gateway.APIChat, `{"model":"m","messages":[]}`, "messages"},
		{gateway.APIChat, `{"model":"m","messages":"x"}`, ""},
		{gateway.APIChat, `{"model":"m","messages":[{"role":"user","content":"x"}],"n":0}`, "n"},
		{gateway.APIChat, `{"model":"m","messages":[{"role":"user","content":"x"}],"n":1000000}`, "n"},
		{gateway.APIEmbeddings, `{"model":"m"}`, "input"},
		{gateway.APIEmbeddings, `{"model":"m","input":""}`, "input"},
		{gateway.APIEmbeddings, `{"model":"m","input":[]}`, "input"},
		{gateway.APIEmbeddings, `{"model":"m","input":["a",{}]}`, "input"},
		{gateway.APIEmbeddings, `{"model":"m","input":"a","dimensions":0}`, "dimensions"},
		{"images", `{"model":"m"}`, ""},
	} {
		_, err := do(t, test.api, test.body)
		var e *gateway.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Param != test.param || !errors.Is(e, gateway.ErrInvalidRequest) || e.Provider != "demo" {
			t.Errorf("%s: %+v", test.body, err)
		}
	}
}

func TestCallerLeaves(t *testing.T) {
	req, err := gateway.NewRequest(gateway.APIChat, []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	res, err := echo.New("demo").Do(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := res.Stream.Next(); !errors.Is(err, gateway.ErrCanceled) {
		t.Error(err)
	}
	if _, err := echo.New("demo").Do(ctx, req); !errors.Is(err, gateway.ErrCanceled) {
		t.Error(err)
	}
}

func Example() {
	request, err := gateway.NewRequest(gateway.APIChat, []byte(`{
		"model": "demo", "stream": true, "messages": [{"role": "user", "content": "to be or not"}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	response, err := echo.New("demo").Do(context.Background(), request)
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range response.Stream.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		if event.Usage != nil {
			fmt.Println(event.Usage.PromptTokens(), "words in,", event.Usage.CompletionTokens(), "out")
		}
	}
	// Output: 4 words in, 4 out
}
