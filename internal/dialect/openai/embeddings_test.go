package openai_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/internal/dialect/openai"
)

func TestConvertEmbeddings(t *testing.T) {
	const floats = `{"object":"list", "data":[{"embedding":[0.5, -1,0.25,2],"index":0},{"index":1,"embedding":[1e-7,0,0,0],"x":null}],"usage":{"prompt_tokens":8}}`
	const encoded = `{"object":"list", "data":[{"embedding":"AAAAPwAAgL8AAIA+AAAAQA==","index":0},{"index":1,"embedding":"lb/WMwAAAAAAAAAAAAAAAA==","x":null}],"usage":{"prompt_tokens":8}}`
	tests := []struct{ name, request, answer, want string }{
		{"floats to base64", `{"encoding_format":"base64"}`, floats, encoded},
		{"base64 to floats", `{"encoding_format":"float"}`, encoded, `{"object":"list", "data":[{"embedding":[0.5,-1,0.25,2],"index":0},{"index":1,"embedding":[1e-07,0,0,0],"x":null}],"usage":{"prompt_tokens":8}}`},
		{"nothing asked is floats", `{}`, encoded, `{"object":"list", "data":[{"embedding":[0.5,-1,0.25,2],"index":0},{"index":1,"embedding":[1e-07,0,0,0],"x":null}],"usage":{"prompt_tokens":8}}`},
		{"right already", `{"encoding_format":"base64"}`, encoded, encoded},
		{"right already, floats", `{}`, floats, floats},
		{"float64 in base64", `{"dimensions":1}`, `{"data":[{"embedding":"AAAAAAAA4D8="}]}`, `{"data":[{"embedding":[0.5]}]}`},
		{"no data", `{"encoding_format":"base64"}`, `{"error":1}`, `{"error":1}`},
		{"odd vectors", `{"encoding_format":"base64"}`, `{"data":[{"embedding":["a"]},{"embedding":null},{},5,{"embedding":[1e400]}]}`, `{"data":[{"embedding":["a"]},{"embedding":null},{},5,{"embedding":[1e400]}]}`},
		{"not base64", `{}`, `{"data":[{"embedding":"!"},{"embedding":"AAA="}]}`, `{"data":[{"embedding":"!"},{"embedding":"AAA="}]}`},
		{"not a number", `{}`, `{"data":[{"embedding":"AADAfw=="}]}`, `{"data":[{"embedding":[null]}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := &gateway.Request{API: gateway.APIEmbeddings, Body: []byte(test.request)}
			got := openai.ConvertEmbeddings(req, []byte(test.answer))
			if string(got) != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if !jsontext.Value(got).IsValid() {
				t.Errorf("%s is not JSON", got)
			}
		})
	}
}
