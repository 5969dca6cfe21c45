package gateway

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MarshalJSONTo implements json.MarshalerTo.
func (c Content) MarshalJSONTo(e *jsontext.Encoder) error {
	switch c.kind {
	case '"':
		return e.WriteToken(jsontext.String(c.text))
	case '[':
		return json.MarshalEncode(e, c.parts)
	default:
		return e.WriteToken(jsontext.Null)
	}
}

var errContent = errors.New("content must be a string, a list of parts, or null")

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (c *Content) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*c = Content{kind: d.PeekKind()}
	switch c.kind {
	case '"':
		token, err := d.ReadToken()
		if err == nil {
			c.text = token.String()
		}
		return err
	case '[':
		return json.UnmarshalDecode(d, &c.parts)
	case 'n':
		_, err := d.ReadToken()
		return err
	default:
		return errContent
	}
}

// ContentPart is one part of a message's content. Exactly one of the members that Type names is set.
type ContentPart struct {
	Type       string      `json:"type"` // text, image_url, input_audio, file, refusal, or what a server has of its own
	Text       *string     `json:"text,omitempty"`
	ImageURL   *ImageURL   `json:"image_url,omitempty"`
	InputAudio *InputAudio `json:"input_audio,omitempty"`
	File       *File       `json:"file,omitempty"`
	Refusal    string      `json:"refusal,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// ImageURL is an image by reference, or inline as a data: URL.
type ImageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitzero"` // low, high, auto

	Extra jsontext.Value `json:",embed"`
}

// InputAudio is inline audio.
type InputAudio struct {
	Data   string `json:"data"`   // base64
	Format string `json:"format"` // wav, mp3

	Extra jsontext.Value `json:",embed"`
}

// File is a file by id, or inline as a data: URL.
type File struct {
	FileID   string `json:"file_id,omitzero"`
	Filename string `json:"filename,omitzero"`
	FileData string `json:"file_data,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// TextPart returns a part that is a text.
func TextPart(text string) ContentPart { return ContentPart{Type: "text", Text: &text} }

// ImagePart returns a part that is an image: an https or data: URL.
func ImagePart(url string) ContentPart {
	return ContentPart{Type: "image_url", ImageURL: &ImageURL{URL: url}}
}

// AudioPart returns a part that is audio in base64, in the format wav or mp3.
func AudioPart(base64, format string) ContentPart {
	return ContentPart{Type: "input_audio", InputAudio: &InputAudio{Data: base64, Format: format}}
}

// FilePart returns a part that is a file as a data: URL.
func FilePart(name, dataURL string) ContentPart {
	return ContentPart{Type: "file", File: &File{Filename: name, FileData: dataURL}}
}

// StopSequences are where to stop generating: one text, or up to four.
type StopSequences struct {
	texts []string
	list  bool
}

// StopAt returns the sequences for stopping at any of the texts. One text is written as a string, several as a list.
func StopAt(texts ...string) *StopSequences {
	return &StopSequences{texts: texts, list: len(texts) != 1}
}

// Texts returns the texts.
func (s *StopSequences) Texts() []string {
	if s == nil {
		return nil
	}
	return s.texts
}

// MarshalJSONTo implements json.MarshalerTo.
func (s StopSequences) MarshalJSONTo(e *jsontext.Encoder) error {
	if !s.list && len(s.texts) == 1 {
		return e.WriteToken(jsontext.String(s.texts[0]))
	}
	return json.MarshalEncode(e, s.texts)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *StopSequences) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*s = StopSequences{list: d.PeekKind() == '['}
	if s.list {
		return json.UnmarshalDecode(d, &s.texts)
	}
	s.texts = make([]string, 1)
	return json.UnmarshalDecode(d, &s.texts[0])
}

// Tool is something that the model may call.
type Tool struct {
	Type     string              `json:"type"` // function, custom, or what a server has of its own
	Function *FunctionDefinition `json:"function,omitempty"`
	Custom   jsontext.Value      `json:"custom,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// FunctionDefinition describes a function to the model.
type FunctionDefinition struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	Parameters  jsontext.Value `json:"parameters,omitzero"` // a JSON Schema
	Strict      *bool          `json:"strict,omitempty"`

	Extra jsontext.Value `json:",embed"`
}

// FunctionTool returns a tool that is a function. Parameters is a JSON Schema; nil for none.
func FunctionTool(name, description string, parameters jsontext.Value) Tool {
	return Tool{Type: "function", Function: &FunctionDefinition{
		Name: name, Description: description, Parameters: parameters,
	}}
}

// ToolChoice says whether and what the model must call.
type ToolChoice struct {
	// Mode is none, auto or required; empty when the choice is an object.
	Mode string
	// Object is the choice in its other forms: a named function, a custom tool, allowed tools.
	Object jsontext.Value
}

// ToolMode returns the choice none, auto or required.
func ToolMode(mode string) *ToolChoice { return &ToolChoice{Mode: mode} }

// ToolNamed returns the choice of one function.
func ToolNamed(name string) *ToolChoice {
	quoted, _ := jsontext.AppendQuote(nil, name) // always valid
	return &ToolChoice{Object: jsontext.Value(`{"type":"function","function":{"name":` + string(quoted) + `}}`)}
}

// MarshalJSONTo implements json.MarshalerTo.
func (c ToolChoice) MarshalJSONTo(e *jsontext.Encoder) error {
	if c.Object != nil {
		return e.WriteValue(c.Object)
	}
	return e.WriteToken(jsontext.String(c.Mode))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (c *ToolChoice) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*c = ToolChoice{}
	if d.PeekKind() == '"' {
		return json.UnmarshalDecode(d, &c.Mode)
	}
	return json.UnmarshalDecode(d, &c.Object)
}

// ToolCall is a call that the model makes.
type ToolCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"` // function or custom
	Function *FunctionCall  `json:"function,omitempty"`
	Custom   jsontext.Value `json:"custom,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// FunctionCall is a call of a function.
type FunctionCall struct {
	Name string `json:"name"`
	// Arguments is JSON text as the model wrote it: it may be empty, invalid, or cut off.
	Arguments string `json:"arguments"`

	Extra jsontext.Value `json:",embed"`
}

// ToolCallDelta is what a chunk adds to a tool call. The call's id and name come once, its arguments in pieces.
type ToolCallDelta struct {
	Index    *int64             `json:"index,omitempty"` // which call of the answer; some servers leave it out
	ID       string             `json:"id,omitzero"`
	Type     string             `json:"type,omitzero"`
	Function *FunctionCallDelta `json:"function,omitempty"`
	Custom   jsontext.Value     `json:"custom,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// FunctionCallDelta is what a chunk adds to a call of a function.
type FunctionCallDelta struct {
	Name      string `json:"name,omitzero"`
	Arguments string `json:"arguments,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// ResponseFormat is the form that an answer must have.
type ResponseFormat struct {
	Type       string      `json:"type"` // text, json_object, json_schema
	JSONSchema *JSONSchema `json:"json_schema,omitempty"`

	Extra jsontext.Value `json:",embed"`
}

// JSONSchema is the schema of a structured answer.
type JSONSchema struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	Schema      jsontext.Value `json:"schema,omitzero"`
	Strict      *bool          `json:"strict,omitempty"`

	Extra jsontext.Value `json:",embed"`
}
