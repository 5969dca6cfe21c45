package echo

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
)

const (
	defaultDimensions = 256
	maxDimensions     = 4096
	maxInputs         = 2048
)

type (
	embeddingRequest struct {
		Input      jsontext.Value `json:"input"`
		Encoding   string         `json:"encoding_format"`
		Dimensions *int           `json:"dimensions"`
	}
	embeddings struct {
		Object string      `json:"object"`
		Data   []embedding `json:"data"`
		Model  string      `json:"model"`
		Usage  report      `json:"usage"`
	}
	embedding struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
)

func (p *Provider) embed(req *gateway.Request) (*gateway.Response, error) {
	var in embeddingRequest
	if err := json.Unmarshal(req.Body, &in, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, p.invalid(req, "", "the document is not an embeddings request: "+err.Error())
	}
	size := defaultDimensions
	if in.Dimensions != nil {
		if size = *in.Dimensions; size < 1 || size > maxDimensions {
			return nil, p.invalid(req, "dimensions", fmt.Sprintf("\"dimensions\" must be from 1 to %d", maxDimensions))
		}
	}
	inputs, tokens := readInputs(in.Input)
	if len(inputs) == 0 || len(inputs) > maxInputs {
		return nil, p.invalid(req, "input", fmt.Sprintf("\"input\" must be a text, a list of tokens, or a list of up to %d of either", maxInputs))
	}
	out := embeddings{Object: "list", Model: req.Model, Usage: report{Prompt: tokens, Total: tokens}}
	for i, input := range inputs {
		vector := vectorOf(input, size)
		e := embedding{Object: "embedding", Index: i, Embedding: vector}
		if in.Encoding == "base64" {
			e.Embedding = encode(vector)
		}
		out.Data = append(out.Data, e)
	}
	body, err := json.Marshal(&out)
	if err != nil {
		return nil, err
	}
	return &gateway.Response{Body: body, Usage: &gateway.Usage{Input: tokens}}, nil
}

// readInputs returns the inputs in a form that tells them apart, and how many tokens they are.
func readInputs(raw jsontext.Value) (inputs []string, tokens int64) {
	var text string
	var ids []int64
	var list []jsontext.Value
	switch {
	case raw == nil:
		return nil, 0
	case json.Unmarshal(raw, &text) == nil && text != "":
		return []string{text}, int64(len(strings.Fields(text)))
	case json.Unmarshal(raw, &ids) == nil && len(ids) > 0:
		return []string{fmt.Sprint(ids)}, int64(len(ids))
	case json.Unmarshal(raw, &list) == nil:
		for _, item := range list {
			if item.Kind() != '"' && item.Kind() != '[' {
				return nil, 0
			}
			input, n := readInputs(item)
			if len(input) != 1 {
				return nil, 0
			}
			inputs, tokens = append(inputs, input[0]), tokens+n
		}
		return inputs, tokens
	default:
		return nil, 0
	}
}

// vectorOf returns a vector of length 1 whose direction comes from hashes of text.
func vectorOf(text string, size int) []float32 {
	vector := make([]float32, 0, size+8)
	sum := 0.0
	for block := uint64(0); len(vector) < size; block++ {
		hash := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, block), text...))
		for i := 0; i < len(hash) && len(vector) < size; i += 4 {
			value := float64(binary.LittleEndian.Uint32(hash[i:]))/math.MaxUint32*2 - 1
			vector = append(vector, float32(value))
			sum += value * value
		}
	}
	length := float32(math.Sqrt(sum))
	for i := range vector {
		vector[i] /= length
	}
	return vector
}

// encode returns the vector as OpenAI's interface does: base64 of little-endian 32-bit numbers.
func encode(vector []float32) string {
	raw := make([]byte, 0, 4*len(vector))
	for _, value := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(value))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
