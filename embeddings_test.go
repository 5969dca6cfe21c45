package gateway_test

import (
	"encoding/base64"
	"math"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
)

func TestEmbeddingInput(t *testing.T) {
	tests := []struct {
		input  gateway.EmbeddingInput
		json   string
		texts  []string
		tokens [][]int64
	}{
		{gateway.EmbedText("a<b"), `"a<b"`, []string{"a<b"}, nil},
		{gateway.EmbedText(""), `""`, []string{""}, nil},
		{gateway.EmbedTexts("a", "b"), `["a","b"]`, []string{"a", "b"}, nil},
		{gateway.EmbedTexts(), `[]`, []string{}, nil},
		{gateway.EmbedTokens(1, 2), `[1,2]`, nil, [][]int64{{1, 2}}},
		{gateway.EmbedTokenLists([]int64{1}, []int64{2, 3}), `[[1],[2,3]]`, nil, [][]int64{{1}, {2, 3}}},
		{gateway.EmbeddingInput{}, `null`, nil, nil},
		{decode[gateway.EmbeddingInput](t, `["a",1]`), `["a",1]`, nil, nil},
		{decode[gateway.EmbeddingInput](t, `[1,[2]]`), `[1,[2]]`, nil, nil},
		{decode[gateway.EmbeddingInput](t, `[[1],null]`), `[[1],null]`, nil, nil},
		{decode[gateway.EmbeddingInput](t, `{"a":1}`), `{"a":1}`, nil, nil},
	}
	for _, test := range tests {
		if got := encode(t, test.input); got != test.json {
			t.Errorf("%s, want %s", got, test.json)
		}
		if diff := cmp.Diff(test.texts, test.input.Texts()); diff != "" {
			t.Errorf("%s: texts (-want +got):\n%s", test.json, diff)
		}
		if diff := cmp.Diff(test.tokens, test.input.TokenLists()); diff != "" {
			t.Errorf("%s: tokens (-want +got):\n%s", test.json, diff)
		}
	}
	if got, want := encode(t, gateway.EmbeddingRequest{Model: "m"}), `{"model":"m"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r := gateway.EmbeddingRequest{Model: "m", Input: gateway.EmbedText("t"), Dimensions: gateway.Int(256)}
	if got, want := encode(t, r), `{"model":"m","input":"t","dimensions":256}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestVector(t *testing.T) {
	want := []float32{0.5, -1, 0.25, 2, 1e-7, math.MaxFloat32}
	for _, text := range []string{
		`[0.5,-1,0.25,2,1e-07,3.4028235e+38]`, `"AAAAPwAAgL8AAIA+AAAAQJW/1jP//39/"`,
		string(gateway.FloatVector(want)), string(gateway.Base64Vector(want)), `"` + gateway.EncodeEmbedding(want) + `"`,
	} {
		e := gateway.Embedding{Embedding: jsontext.Value(text)}
		if got, err := e.Vector(); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v (%v)", text, got, err)
		}
	}
	for _, text := range []string{`"!"`, `"` + base64.StdEncoding.EncodeToString([]byte("abc")) + `"`, `null`, ``, `["a"]`, `[1e99]`, `{}`, `"`, `"AA`} {
		e := gateway.Embedding{Embedding: jsontext.Value(text)}
		if got, err := e.Vector(); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
	if got := encode(t, gateway.Embedding{Object: "embedding", Embedding: gateway.FloatVector(nil)}); got != `{"object":"embedding","index":0,"embedding":[]}` {
		t.Errorf("an empty vector: %s", got)
	}
}
