package gateway

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Message is one message of a conversation.
type Message struct {
	Role             string        `json:"role"` // one of the Role… constants
	Content          Content       `json:"content"`
	Name             string        `json:"name"` // tells speakers of the same role apart
	Refusal          string        `json:"refusal"`
	ReasoningContent string        `json:"reasoning_content"` // DeepSeek, Qwen and others; some want it back on later turns
	Reasoning        string        `json:"reasoning"`         // OpenRouter, Groq and others
	ToolCalls        []ToolCall    `json:"tool_calls"`
	ToolCallID       string        `json:"tool_call_id"` // of the call that a tool message answers
	Annotations      []Annotation  `json:"annotations"`
	Audio            *MessageAudio `json:"audio"`
	FunctionCall     *FunctionCall `json:"function_call"` // deprecated

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (m *Message) members(c *codec) {
	c.object(&m.origin, &m.Extra)
	c.text("role", &m.Role, required)
	c.content("content", &m.Content)
	c.text("name", &m.Name, optional)
	c.text("refusal", &m.Refusal, optional)
	c.text("reasoning_content", &m.ReasoningContent, optional)
	c.text("reasoning", &m.Reasoning, optional)
	objects(c, "tool_calls", &m.ToolCalls, optional)
	c.text("tool_call_id", &m.ToolCallID, optional)
	objects(c, "annotations", &m.Annotations, optional)
	pointer(c, "audio", &m.Audio)
	pointer(c, "function_call", &m.FunctionCall)
}

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer" // what newer OpenAI models take system for
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleFunction  = "function" // deprecated
)

// SystemMessage returns a system message.
func SystemMessage(text string) Message { return Message{Role: RoleSystem, Content: TextContent(text)} }

// UserMessage returns a user message of text and, perhaps, further parts such as images.
func UserMessage(text string, parts ...ContentPart) Message {
	if len(parts) == 0 {
		return Message{Role: RoleUser, Content: TextContent(text)}
	}
	return Message{Role: RoleUser, Content: PartsContent(append([]ContentPart{TextPart(text)}, parts...)...)}
}

// AssistantMessage returns an assistant message.
func AssistantMessage(text string) Message {
	return Message{Role: RoleAssistant, Content: TextContent(text)}
}

// ToolMessage returns the result of the tool call with the given id.
func ToolMessage(callID, result string) Message {
	return Message{Role: RoleTool, ToolCallID: callID, Content: TextContent(result)}
}

// Content is what a message says: a text, a list of parts, or an explicit null. The zero value is absent.
type Content struct {
	kind  byte   // 0 absent, '"' text, '[' parts, 'n' null; otherwise it is something else
	text  string // or the JSON text of something else
	parts []ContentPart
}

// TextContent returns content that is a text.
func TextContent(text string) Content { return Content{kind: '"', text: text} }

// PartsContent returns content that is a list of parts.
func PartsContent(parts ...ContentPart) Content { return Content{kind: '[', parts: parts} }

// NullContent returns content that is written as null, which some servers want beside tool calls.
func NullContent() Content { return Content{kind: 'n'} }

// IsZero reports whether the content is absent.
func (m Content) IsZero() bool { return m.kind == 0 }

// Text returns the content's text: that of all text parts, joined.
func (m Content) Text() string {
	switch {
	case m.kind == '"':
		return m.text
	case len(m.parts) == 1:
		return m.parts[0].Text
	}
	var b strings.Builder
	for i := range m.parts {
		b.WriteString(m.parts[i].Text)
	}
	return b.String()
}

// Parts returns the content as parts: a text is one part, null and absent content none.
func (m Content) Parts() []ContentPart {
	if m.kind == '"' {
		return []ContentPart{TextPart(m.text)}
	}
	return m.parts
}

// MarshalJSON implements json.Marshaler.
func (m Content) MarshalJSON() ([]byte, error) {
	var c codec
	c.encodeContent(&m)
	return c.buf, c.err
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Content) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); !isWhole(text) {
		return errMalformed
	}
	*m = Content{}
	c := codec{decoding: true, doc: text}
	c.decodeContent(text, 0, m)
	return c.err
}

// content is for a member that is a Content.
func (c *codec) content(name string, m *Content) {
	c.member()
	if c.decoding {
		value, at := c.locate(name)
		c.decodeContent(value, at, m)
		return
	}
	if !m.IsZero() {
		c.name(name)
		c.encodeContent(m)
	}
}

func (c *codec) decodeContent(value []byte, at int, m *Content) {
	switch m.kind = kindOf(value); m.kind {
	case 0, 'n':
	case '"':
		m.text = unquoteText(value)
	case '[':
		m.parts = decodeObjects[ContentPart](c, at)
	default:
		m.text = string(value)
	}
}

func (c *codec) encodeContent(m *Content) {
	switch m.kind {
	case '"':
		c.quote(m.text)
	case '[':
		encodeObjects(c, m.parts)
	case 0, 'n':
		c.buf = append(c.buf, "null"...)
	default:
		c.buf = append(c.buf, m.text...)
	}
}

// ContentPart is one part of a message's content. The member that Type names is set.
type ContentPart struct {
	Type       string      `json:"type"` // text, image_url, input_audio, file, refusal, or what a server has of its own
	Text       string      `json:"text"`
	ImageURL   *ImageURL   `json:"image_url"`
	InputAudio *InputAudio `json:"input_audio"`
	File       *File       `json:"file"`
	Refusal    string      `json:"refusal"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (p *ContentPart) members(c *codec) {
	c.object(&p.origin, &p.Extra)
	c.text("type", &p.Type, required)
	c.text("text", &p.Text, p.Type == "text")
	pointer(c, "image_url", &p.ImageURL)
	pointer(c, "input_audio", &p.InputAudio)
	pointer(c, "file", &p.File)
	c.text("refusal", &p.Refusal, optional)
}

// ImageURL is an image by reference, or inline as a data: URL.
type ImageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail"` // low, high, auto; auto by default

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (i *ImageURL) members(c *codec) {
	c.object(&i.origin, &i.Extra)
	c.text("url", &i.URL, required)
	c.text("detail", &i.Detail, optional)
}

// InputAudio is inline audio.
type InputAudio struct {
	Data   string `json:"data"`   // base64
	Format string `json:"format"` // wav, mp3

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (a *InputAudio) members(c *codec) {
	c.object(&a.origin, &a.Extra)
	c.text("data", &a.Data, required)
	c.text("format", &a.Format, required)
}

// File is a file by id, or inline as a data: URL.
type File struct {
	FileID   string `json:"file_id"`
	Filename string `json:"filename"`
	FileData string `json:"file_data"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (f *File) members(c *codec) {
	c.object(&f.origin, &f.Extra)
	c.text("file_id", &f.FileID, optional)
	c.text("filename", &f.Filename, optional)
	c.text("file_data", &f.FileData, optional)
}

// TextPart returns a part that is a text.
func TextPart(text string) ContentPart { return ContentPart{Type: "text", Text: text} }

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

// MessageAudio is a spoken answer. In a request it has the id alone, and refers to an earlier answer.
type MessageAudio struct {
	ID         string `json:"id"`
	Data       string `json:"data"` // base64, in the format that the request asked for
	Transcript string `json:"transcript"`
	ExpiresAt  int64  `json:"expires_at"` // seconds since 1970; until then the id can be referred to

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (a *MessageAudio) members(c *codec) {
	c.object(&a.origin, &a.Extra)
	c.text("id", &a.ID, optional)
	c.text("data", &a.Data, optional)
	c.text("transcript", &a.Transcript, optional)
	c.integer("expires_at", &a.ExpiresAt, optional)
}

// Annotation says where something in an answer comes from.
type Annotation struct {
	Type        string       `json:"type"` // url_citation
	URLCitation *URLCitation `json:"url_citation"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (a *Annotation) members(c *codec) {
	c.object(&a.origin, &a.Extra)
	c.text("type", &a.Type, required)
	pointer(c, "url_citation", &a.URLCitation)
}

// URLCitation is a web page that an answer cites.
type URLCitation struct {
	StartIndex int64  `json:"start_index"` // of the passage in the message's text, in characters
	EndIndex   int64  `json:"end_index"`
	URL        string `json:"url"`
	Title      string `json:"title"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (u *URLCitation) members(c *codec) {
	c.object(&u.origin, &u.Extra)
	c.integer("start_index", &u.StartIndex, optional)
	c.integer("end_index", &u.EndIndex, optional)
	c.text("url", &u.URL, required)
	c.text("title", &u.Title, optional)
}
