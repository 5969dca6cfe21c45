package gateway

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ChatRequest is the typed view of a chat completions request, as OpenAI's API reference has it.
//
// Typed values are lossless, here and at every level below: what is decoded and encoded again means the same. Members
// that a type does not name are kept in Extra. A member whose value has an unexpected type is zero, and is encoded as
// it was for as long as it stays zero. So are null, members that were there although they are zero, and numbers such
// as 1.0. Encode them with json/v2 or with encoding/json, as you like.
//
// A member that is a pointer is absent when it is nil, for with these zero says something; see [Int], [Float] and
// [Bool]. The others are absent when they are zero.
type ChatRequest struct {
	Model    string    `json:"model"`    // an alias
	Messages []Message `json:"messages"` // at least one

	MaxCompletionTokens *int64            `json:"max_completion_tokens"` // reasoning included
	MaxTokens           *int64            `json:"max_tokens"`            // deprecated; what many servers still want
	Temperature         *float64          `json:"temperature"`           // 0 to 2; 1 by default
	TopP                *float64          `json:"top_p"`                 // 0 to 1; 1 by default
	N                   *int64            `json:"n"`                     // how many answers; 1 by default
	Stop                []string          `json:"stop"`                  // up to four texts to stop at; a single string, too, is decoded
	Seed                *int64            `json:"seed"`
	PresencePenalty     *float64          `json:"presence_penalty"`  // -2 to 2; 0 by default
	FrequencyPenalty    *float64          `json:"frequency_penalty"` // -2 to 2; 0 by default
	LogitBias           jsontext.Value    `json:"logit_bias"`        // an object: token id to -100 to 100
	Logprobs            *bool             `json:"logprobs"`          // report the log probabilities of the answer's tokens
	TopLogprobs         *int64            `json:"top_logprobs"`      // of how many alternatives, 0 to 20
	Tools               []Tool            `json:"tools"`
	ToolChoice          *ToolChoice       `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"` // true by default
	ResponseFormat      *ResponseFormat   `json:"response_format"`
	ReasoningEffort     string            `json:"reasoning_effort"` // none, minimal, low, medium, high, xhigh, max
	Verbosity           string            `json:"verbosity"`        // low, medium, high
	Modalities          []string          `json:"modalities"`       // text, audio; ["text"] by default
	Audio               *AudioOutput      `json:"audio"`            // required when the modalities include audio
	Prediction          *Prediction       `json:"prediction"`
	ServiceTier         string            `json:"service_tier"` // auto, default, flex, priority, …
	Metadata            map[string]string `json:"metadata"`     // stored with the answer
	Store               *bool             `json:"store"`
	User                string            `json:"user"`              // deprecated; see the next two
	SafetyIdentifier    string            `json:"safety_identifier"` // names the end user without revealing who it is
	PromptCacheKey      string            `json:"prompt_cache_key"`
	Stream              *bool             `json:"stream"` // set by Chat and ChatStream
	StreamOptions       *StreamOptions    `json:"stream_options"`

	Functions    []FunctionDefinition `json:"functions"`     // deprecated: see Tools
	FunctionCall *ToolChoice          `json:"function_call"` // deprecated: see ToolChoice

	Extra jsontext.Value `json:",embed"` // an object with all other members; nil if there are none

	origin origin
}

func (r *ChatRequest) members(c *codec) {
	c.object(&r.origin, &r.Extra)
	c.text("model", &r.Model, required)
	objects(c, "messages", &r.Messages, required)
	c.integerPtr("max_completion_tokens", &r.MaxCompletionTokens)
	c.integerPtr("max_tokens", &r.MaxTokens)
	c.floatPtr("temperature", &r.Temperature)
	c.floatPtr("top_p", &r.TopP)
	c.integerPtr("n", &r.N)
	c.oneOrMoreTexts("stop", &r.Stop)
	c.integerPtr("seed", &r.Seed)
	c.floatPtr("presence_penalty", &r.PresencePenalty)
	c.floatPtr("frequency_penalty", &r.FrequencyPenalty)
	c.raw("logit_bias", &r.LogitBias)
	c.booleanPtr("logprobs", &r.Logprobs)
	c.integerPtr("top_logprobs", &r.TopLogprobs)
	objects(c, "tools", &r.Tools, optional)
	c.toolChoice("tool_choice", &r.ToolChoice)
	c.booleanPtr("parallel_tool_calls", &r.ParallelToolCalls)
	pointer(c, "response_format", &r.ResponseFormat)
	c.text("reasoning_effort", &r.ReasoningEffort, optional)
	c.text("verbosity", &r.Verbosity, optional)
	c.texts("modalities", &r.Modalities)
	pointer(c, "audio", &r.Audio)
	pointer(c, "prediction", &r.Prediction)
	c.text("service_tier", &r.ServiceTier, optional)
	c.textMap("metadata", &r.Metadata)
	c.booleanPtr("store", &r.Store)
	c.text("user", &r.User, optional)
	c.text("safety_identifier", &r.SafetyIdentifier, optional)
	c.text("prompt_cache_key", &r.PromptCacheKey, optional)
	c.booleanPtr("stream", &r.Stream)
	pointer(c, "stream_options", &r.StreamOptions)
	objects(c, "functions", &r.Functions, optional)
	c.toolChoice("function_call", &r.FunctionCall)
}

// Int returns a pointer to n, for members such as [ChatRequest].MaxCompletionTokens.
func Int(n int64) *int64 { return new(n) }

// Float returns a pointer to f, for members such as [ChatRequest].Temperature.
func Float(f float64) *float64 { return new(f) }

// Bool returns a pointer to b, for members such as [ChatRequest].Store.
func Bool(b bool) *bool { return new(b) }

// StreamOptions says what a stream carries beside the answer.
type StreamOptions struct {
	IncludeUsage       *bool `json:"include_usage"`       // a last chunk reports usage; false by default
	IncludeObfuscation *bool `json:"include_obfuscation"` // pads the chunks; true by default

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (o *StreamOptions) members(c *codec) {
	c.object(&o.origin, &o.Extra)
	c.booleanPtr("include_usage", &o.IncludeUsage)
	c.booleanPtr("include_obfuscation", &o.IncludeObfuscation)
}

// AudioOutput says how an answer is to be spoken.
type AudioOutput struct {
	Voice  string `json:"voice"`
	Format string `json:"format"` // wav, mp3, flac, opus, pcm16; a stream needs pcm16

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (o *AudioOutput) members(c *codec) {
	c.object(&o.origin, &o.Extra)
	c.text("voice", &o.Voice, required)
	c.text("format", &o.Format, required)
}

// Prediction is text that much of the answer will repeat, which makes it faster.
type Prediction struct {
	Type    string  `json:"type"` // content
	Content Content `json:"content"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (p *Prediction) members(c *codec) {
	c.object(&p.origin, &p.Extra)
	c.text("type", &p.Type, required)
	c.content("content", &p.Content)
}

// ResponseFormat is the form that an answer must have.
type ResponseFormat struct {
	Type       string      `json:"type"` // text, json_object, json_schema
	JSONSchema *JSONSchema `json:"json_schema"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (f *ResponseFormat) members(c *codec) {
	c.object(&f.origin, &f.Extra)
	c.text("type", &f.Type, required)
	pointer(c, "json_schema", &f.JSONSchema)
}

// JSONSchema is the schema of a structured answer.
type JSONSchema struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      jsontext.Value `json:"schema"`
	Strict      *bool          `json:"strict"` // false by default

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (s *JSONSchema) members(c *codec) {
	c.object(&s.origin, &s.Extra)
	c.text("name", &s.Name, required)
	c.text("description", &s.Description, optional)
	c.raw("schema", &s.Schema)
	c.booleanPtr("strict", &s.Strict)
}

// JSONFormat returns the format of an answer that is any JSON object. The word JSON must occur in the messages.
func JSONFormat() *ResponseFormat { return &ResponseFormat{Type: "json_object"} }

// SchemaFormat returns the format of an answer that follows a JSON Schema strictly.
func SchemaFormat(name string, schema jsontext.Value) *ResponseFormat {
	return &ResponseFormat{
		Type: "json_schema", JSONSchema: &JSONSchema{Name: name, Schema: schema, Strict: Bool(true)},
	}
}

// decode decodes an answer that nobody has checked yet.
func (r *ChatResponse) decode(source jsontext.Value) error { return json.Unmarshal(source, r) }

// decode decodes an event that nobody has checked yet.
func (k *ChatChunk) decode(source jsontext.Value) error { return json.Unmarshal(source, k) }
