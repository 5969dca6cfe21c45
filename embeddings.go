package gateway

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EmbeddingRequest is the typed view of an embeddings request.
type EmbeddingRequest struct {
	Model          string         `json:"model"` // an alias
	Input          EmbeddingInput `json:"input"`
	EncodingFormat string         `json:"encoding_format,omitzero"` // float or base64
	Dimensions     *int64         `json:"dimensions,omitempty"`
	User           string         `json:"user,omitzero"`

	Extra jsontext.Value `json:",embed"`

	source jsontext.Value
}

type embeddingRequest EmbeddingRequest

// MarshalJSONTo implements json.MarshalerTo.
func (r EmbeddingRequest) MarshalJSONTo(e *jsontext.Encoder) error {
	return encodeLossless(e, (*embeddingRequest)(&r), r.source)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Values of unexpected types are not seen but kept.
func (r *EmbeddingRequest) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	source, err := readDocument(d)
	if err != nil {
		return err
	}
	return decodeDocument(source, (*embeddingRequest)(r), func() { r.source = source })
}

// EmbeddingInput is what to embed: one text, several, one list of tokens, or several. Exactly one member is set.
type EmbeddingInput struct {
	Text       *string
	Texts      []string
	Tokens     []int64
	TokenLists [][]int64
}

// EmbedText returns an input of one text.
func EmbedText(text string) EmbeddingInput { return EmbeddingInput{Text: &text} }

// EmbedTexts returns an input of several texts.
func EmbedTexts(texts ...string) EmbeddingInput { return EmbeddingInput{Texts: texts} }

// MarshalJSONTo implements json.MarshalerTo.
func (i EmbeddingInput) MarshalJSONTo(e *jsontext.Encoder) error {
	switch {
	case i.Text != nil:
		return e.WriteToken(jsontext.String(*i.Text))
	case i.TokenLists != nil:
		return json.MarshalEncode(e, i.TokenLists)
	case i.Tokens != nil:
		return json.MarshalEncode(e, i.Tokens)
	default:
		return json.MarshalEncode(e, i.Texts)
	}
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (i *EmbeddingInput) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*i = EmbeddingInput{}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	switch list := elements(raw); {
	case raw.Kind() == '"':
		i.Text = new(string)
		err = json.Unmarshal(raw, i.Text)
	case len(list) == 0 || list[0].Kind() == '"':
		err = json.Unmarshal(raw, &i.Texts)
	case list[0].Kind() == '[':
		err = json.Unmarshal(raw, &i.TokenLists)
	default:
		err = json.Unmarshal(raw, &i.Tokens)
	}
	if err != nil {
		*i = EmbeddingInput{} // a mixture, or something else: the document's text keeps it
	}
	return nil
}

// EmbeddingResponse is the typed view of an embeddings answer.
type EmbeddingResponse struct {
	Object string      `json:"object"` // list
	Data   []Embedding `json:"data"`
	Model  string      `json:"model"`
	Usage  *ChatUsage  `json:"usage,omitempty"`

	Extra jsontext.Value `json:",embed"`

	source jsontext.Value
}

type embeddingResponse EmbeddingResponse

// MarshalJSONTo implements json.MarshalerTo.
func (r EmbeddingResponse) MarshalJSONTo(e *jsontext.Encoder) error {
	return encodeLossless(e, (*embeddingResponse)(&r), r.source)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Values of unexpected types are not seen but kept.
func (r *EmbeddingResponse) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	source, err := readDocument(d)
	if err != nil {
		return err
	}
	return r.decode(source)
}

// decode takes over source.
func (r *EmbeddingResponse) decode(source jsontext.Value) error {
	return decodeDocument(source, (*embeddingResponse)(r), func() { r.source = source })
}

// Embedding is one vector.
type Embedding struct {
	Object string `json:"object"` // embedding
	Index  int64  `json:"index"`  // of the input that it belongs to
	// Embedding is a list of numbers, or a string: the base64 form of little-endian float32. See Vector.
	Embedding jsontext.Value `json:"embedding"`

	Extra jsontext.Value `json:",embed"`
}

// Vector returns the vector, whichever form it has.
func (e *Embedding) Vector() ([]float32, error) {
	switch e.Embedding.Kind() {
	case '[':
		var vector []float32
		err := json.Unmarshal(e.Embedding, &vector)
		return vector, err
	case '"':
		text, _ := unquote(e.Embedding)
		return decodeVector(text)
	default:
		return nil, errors.New("the embedding is neither a list of numbers nor a string")
	}
}

func decodeVector(text string) ([]float32, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
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

// EncodeVector returns the base64 form of a vector: little-endian float32, as OpenAI's encoding_format base64 has it.
func EncodeVector(vector []float32) string {
	raw := make([]byte, 4*len(vector))
	for i, v := range vector {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
