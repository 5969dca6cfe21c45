package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EmbeddingRequest is the typed view of an embeddings request. It is as lossless as a [ChatRequest].
type EmbeddingRequest struct {
	Model          string         `json:"model"` // an alias
	Input          EmbeddingInput `json:"input"`
	EncodingFormat string         `json:"encoding_format"` // float or base64; float by default
	Dimensions     *int64         `json:"dimensions"`      // of the vectors, for models that let one choose
	User           string         `json:"user"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (r *EmbeddingRequest) members(c *codec) {
	c.object(&r.origin, &r.Extra)
	c.text("model", &r.Model, required)
	c.raw("input", &r.Input.text)
	c.text("encoding_format", &r.EncodingFormat, optional)
	c.integerPtr("dimensions", &r.Dimensions)
	c.text("user", &r.User, optional)
}

// EmbeddingInput is what to embed: a text, a list of texts, a list of tokens, or a list of such lists. The zero value
// is absent.
type EmbeddingInput struct{ text jsontext.Value }

// EmbedText returns an input of one text.
func EmbedText(text string) EmbeddingInput { return embed(text) }

// EmbedTexts returns an input of several texts.
func EmbedTexts(texts ...string) EmbeddingInput { return embed(texts) }

// EmbedTokens returns an input of one text, as the numbers of its tokens. Only the model's own maker takes them.
func EmbedTokens(tokens ...int64) EmbeddingInput { return embed(tokens) }

// EmbedTokenLists returns an input of several texts, as the numbers of their tokens.
func EmbedTokenLists(lists ...[]int64) EmbeddingInput { return embed(lists) }

func embed(input any) EmbeddingInput {
	text, err := json.Marshal(input, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // strings and integers can be encoded
	}
	return EmbeddingInput{text: text}
}

// IsZero reports whether the input is absent.
func (i EmbeddingInput) IsZero() bool { return i.text == nil }

// Texts returns the texts to embed; nil if the input is something else.
func (i EmbeddingInput) Texts() []string {
	if i.text.Kind() == '"' {
		return []string{unquoteText(i.text)}
	}
	texts, _ := readTexts(i.text)
	return texts
}

// TokenLists returns the lists of tokens to embed; nil if the input is something else. An empty list is taken for one
// of texts.
func (i EmbeddingInput) TokenLists() [][]int64 {
	var lists [][]int64
	if json.Unmarshal(i.text, &lists) == nil && len(lists) > 0 && !slices.ContainsFunc(lists, isNil) {
		return lists
	}
	var list []int64
	if json.Unmarshal(i.text, &list) == nil && len(list) > 0 {
		return [][]int64{list}
	}
	return nil
}

func isNil(list []int64) bool { return list == nil }

// MarshalJSON implements json.Marshaler.
func (i EmbeddingInput) MarshalJSON() ([]byte, error) {
	if i.text == nil {
		return []byte("null"), nil
	}
	return slices.Clone(i.text), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *EmbeddingInput) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); !isWhole(text) {
		return errMalformed
	}
	i.text = slices.Clone(text)
	return nil
}

// EmbeddingResponse is the typed view of an embeddings answer. It is as lossless as a [ChatRequest].
type EmbeddingResponse struct {
	Object string          `json:"object"` // list
	Data   []Embedding     `json:"data"`
	Model  string          `json:"model"`
	Usage  *EmbeddingUsage `json:"usage"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (r *EmbeddingResponse) members(c *codec) {
	c.object(&r.origin, &r.Extra)
	c.text("object", &r.Object, required)
	objects(c, "data", &r.Data, required)
	c.text("model", &r.Model, required)
	pointer(c, "usage", &r.Usage)
}

// decode decodes an answer that nobody has checked yet.
func (r *EmbeddingResponse) decode(source jsontext.Value) error { return json.Unmarshal(source, r) }

// EmbeddingUsage is a usage report as OpenAI's interface has it, in tokens.
type EmbeddingUsage struct {
	PromptTokens int64 `json:"prompt_tokens"`
	TotalTokens  int64 `json:"total_tokens"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (u *EmbeddingUsage) members(c *codec) {
	c.object(&u.origin, &u.Extra)
	c.integer("prompt_tokens", &u.PromptTokens, required)
	c.integer("total_tokens", &u.TotalTokens, required)
}

// Embedding is one vector.
type Embedding struct {
	Object string `json:"object"` // embedding
	Index  int64  `json:"index"`  // of the input that it belongs to
	// Embedding is a list of numbers, or a string: the base64 form of little-endian float32. See Vector, [FloatVector]
	// and [EncodeEmbedding].
	Embedding jsontext.Value `json:"embedding"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (e *Embedding) members(c *codec) {
	c.object(&e.origin, &e.Extra)
	c.text("object", &e.Object, required)
	c.integer("index", &e.Index, required)
	c.raw("embedding", &e.Embedding)
}

// Vector returns the vector, whichever form it has. Base64 is taken for that of float32; a server that encodes float64
// makes a vector twice as long as its model's.
func (e *Embedding) Vector() ([]float32, error) {
	switch e.Embedding.Kind() {
	case '[':
		var vector []float32
		if err := json.Unmarshal(e.Embedding, &vector); err != nil {
			return nil, fmt.Errorf("the embedding is not a list of numbers: %w", err)
		}
		return vector, nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, e.Embedding)
		if err != nil {
			return nil, fmt.Errorf("the embedding is not a JSON string: %w", err)
		}
		return decodeVector(text)
	default:
		return nil, errors.New("the embedding is neither a list of numbers nor a string")
	}
}

func decodeVector(text []byte) ([]float32, error) {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return nil, fmt.Errorf("the embedding is not base64: %w", err)
	}
	if len(raw)%4 != 0 {
		return nil, fmt.Errorf("the embedding has %d bytes, which is no multiple of 4", len(raw))
	}
	vector := make([]float32, len(raw)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return vector, nil
}

// EncodeEmbedding returns the base64 form of a vector: little-endian float32, as OpenAI's encoding_format base64 has
// it.
func EncodeEmbedding(vector []float32) string {
	raw := make([]byte, 4*len(vector))
	for i, v := range vector {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// FloatVector returns a vector as a list of numbers, and Base64Vector as base64, each as the JSON value that an
// [Embedding] has. The numbers of a vector must be finite.
func FloatVector(vector []float32) jsontext.Value {
	list := append(make(jsontext.Value, 0, 12*len(vector)+2), '[')
	for i, v := range vector {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendFloat(list, float64(v), 'g', -1, 32)
	}
	return append(list, ']')
}

// Base64Vector is explained at [FloatVector].
func Base64Vector(vector []float32) jsontext.Value {
	return jsontext.Value(`"` + EncodeEmbedding(vector) + `"`)
}
