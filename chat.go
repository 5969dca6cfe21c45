package gateway

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ChatRequest is the typed view of a chat completions request, as OpenAI's API reference has it. Members that it does
// not name are kept in Extra, here and at every level below, so that decoding and encoding again changes nothing.
//
// A pointer or nil slice that is nil is absent. To send a member that the type does not know, put it into Extra.
type ChatRequest struct {
	Model    string    `json:"model"`    // an alias
	Messages []Message `json:"messages"` // at least one

	MaxCompletionTokens *int64          `json:"max_completion_tokens,omitempty"` // reasoning included
	MaxTokens           *int64          `json:"max_tokens,omitempty"`            // deprecated; what many servers still want
	Temperature         *float64        `json:"temperature,omitempty"`           // 0 to 2
	TopP                *float64        `json:"top_p,omitempty"`
	N                   *int64          `json:"n,omitempty"` // how many answers; 1 by default
	Stop                *StopSequences  `json:"stop,omitempty"`
	Seed                *int64          `json:"seed,omitempty"`
	PresencePenalty     *float64        `json:"presence_penalty,omitempty"`
	FrequencyPenalty    *float64        `json:"frequency_penalty,omitempty"`
	LogitBias           jsontext.Value  `json:"logit_bias,omitzero"`
	Logprobs            *bool           `json:"logprobs,omitempty"`
	TopLogprobs         *int64          `json:"top_logprobs,omitempty"`
	Tools               []Tool          `json:"tools,omitzero"`
	ToolChoice          *ToolChoice     `json:"tool_choice,omitempty"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls,omitempty"`
	ResponseFormat      *ResponseFormat `json:"response_format,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitzero"` // none, minimal, low, medium, high, xhigh, max
	Verbosity           string          `json:"verbosity,omitzero"`        // low, medium, high
	Modalities          []string        `json:"modalities,omitzero"`       // text, audio
	Audio               jsontext.Value  `json:"audio,omitzero"`
	Prediction          jsontext.Value  `json:"prediction,omitzero"`
	ServiceTier         string          `json:"service_tier,omitzero"`
	Metadata            jsontext.Value  `json:"metadata,omitzero"`
	User                string          `json:"user,omitzero"`
	PromptCacheKey      string          `json:"prompt_cache_key,omitzero"`
	Store               *bool           `json:"store,omitempty"`
	Stream              *bool           `json:"stream,omitempty"` // set by Chat and ChatStream
	StreamOptions       *StreamOptions  `json:"stream_options,omitempty"`

	Extra jsontext.Value `json:",embed"` // a JSON object with all other members; nil if there are none

	source jsontext.Value
}

// StreamOptions says what a stream carries beside the answer.
type StreamOptions struct {
	IncludeUsage *bool `json:"include_usage,omitempty"` // a last chunk reports usage

	Extra jsontext.Value `json:",embed"`
}

type chatRequest ChatRequest

// MarshalJSONTo implements json.MarshalerTo.
func (r ChatRequest) MarshalJSONTo(e *jsontext.Encoder) error {
	return encodeLossless(e, (*chatRequest)(&r), r.source)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Values of unexpected types are not seen but kept.
func (r *ChatRequest) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	source, err := readDocument(d)
	if err != nil {
		return err
	}
	return decodeDocument(source, (*chatRequest)(r), func() { r.source = source })
}

// ChatResponse is the typed view of a chat completion.
type ChatResponse struct {
	ID                string       `json:"id"`
	Object            string       `json:"object"`  // chat.completion
	Created           int64        `json:"created"` // seconds since 1970
	Model             string       `json:"model"`   // the upstream's name for what answered
	Choices           []ChatChoice `json:"choices"`
	Usage             *ChatUsage   `json:"usage,omitempty"`
	ServiceTier       string       `json:"service_tier,omitzero"`
	SystemFingerprint string       `json:"system_fingerprint,omitzero"`

	Extra jsontext.Value `json:",embed"`

	source jsontext.Value
}

// ChatChoice is one of the answers of a chat completion.
type ChatChoice struct {
	Index        int64          `json:"index"`
	Message      Message        `json:"message"`
	FinishReason string         `json:"finish_reason"` // stop, length, tool_calls, content_filter, …
	Logprobs     jsontext.Value `json:"logprobs,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

type chatResponse ChatResponse

// Text returns the text of the first answer.
func (r *ChatResponse) Text() string {
	if len(r.Choices) == 0 {
		return ""
	}
	return r.Choices[0].Message.Content.Text()
}

// ToolCalls returns the tool calls of the first answer.
func (r *ChatResponse) ToolCalls() []ToolCall {
	if len(r.Choices) == 0 {
		return nil
	}
	return r.Choices[0].Message.ToolCalls
}

// MarshalJSONTo implements json.MarshalerTo.
func (r ChatResponse) MarshalJSONTo(e *jsontext.Encoder) error {
	return encodeLossless(e, (*chatResponse)(&r), r.source)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Values of unexpected types are not seen but kept.
func (r *ChatResponse) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	source, err := readDocument(d)
	if err != nil {
		return err
	}
	return r.decode(source)
}

// decode takes over source.
func (r *ChatResponse) decode(source jsontext.Value) error {
	return decodeDocument(source, (*chatResponse)(r), func() { r.source = source })
}

// ChatChunk is the typed view of one event of a streamed chat completion.
type ChatChunk struct {
	ID                string        `json:"id"`
	Object            string        `json:"object"` // chat.completion.chunk
	Created           int64         `json:"created"`
	Model             string        `json:"model"`
	Choices           []ChunkChoice `json:"choices"`         // may be empty: look before indexing
	Usage             *ChatUsage    `json:"usage,omitempty"` // of the whole answer, on the last chunk
	ServiceTier       string        `json:"service_tier,omitzero"`
	SystemFingerprint string        `json:"system_fingerprint,omitzero"`

	Extra jsontext.Value `json:",embed"`

	source jsontext.Value
}

// ChunkChoice is what a chunk adds to one of the answers.
type ChunkChoice struct {
	Index        int64          `json:"index"`
	Delta        Delta          `json:"delta"`
	FinishReason *string        `json:"finish_reason"` // nil until the answer's last chunk
	Logprobs     jsontext.Value `json:"logprobs,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// Delta is what a chunk adds to a message.
type Delta struct {
	Role             string          `json:"role,omitzero"`
	Content          Content         `json:"content,omitzero"`
	Refusal          string          `json:"refusal,omitzero"`
	ReasoningContent string          `json:"reasoning_content,omitzero"` // DeepSeek, Qwen, vLLM and others
	Reasoning        string          `json:"reasoning,omitzero"`         // OpenRouter, Groq and others
	ToolCalls        []ToolCallDelta `json:"tool_calls,omitzero"`
	FunctionCall     *FunctionCall   `json:"function_call,omitempty"` // deprecated
	Audio            jsontext.Value  `json:"audio,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

type chatChunk ChatChunk

// Text returns the text that the chunk adds to the first answer.
func (c *ChatChunk) Text() string {
	for i := range c.Choices {
		if c.Choices[i].Index == 0 {
			return c.Choices[i].Delta.Content.Text()
		}
	}
	return ""
}

// MarshalJSONTo implements json.MarshalerTo.
func (c ChatChunk) MarshalJSONTo(e *jsontext.Encoder) error {
	return encodeLossless(e, (*chatChunk)(&c), c.source)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Values of unexpected types are not seen but kept.
func (c *ChatChunk) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	source, err := readDocument(d)
	if err != nil {
		return err
	}
	return c.decode(source)
}

// decode takes over source.
func (c *ChatChunk) decode(source jsontext.Value) error {
	return decodeDocument(source, (*chatChunk)(c), func() { c.source = source })
}

// ChatUsage is a usage report as OpenAI's interface has it. Every detail is a part of its parent. For billing see
// [Usage], whose buckets are disjoint.
type ChatUsage struct {
	PromptTokens            int64                    `json:"prompt_tokens"`
	CompletionTokens        int64                    `json:"completion_tokens"`
	TotalTokens             int64                    `json:"total_tokens"`
	PromptTokensDetails     *PromptTokensDetails     `json:"prompt_tokens_details,omitempty"`
	CompletionTokensDetails *CompletionTokensDetails `json:"completion_tokens_details,omitempty"`

	Extra jsontext.Value `json:",embed"`
}

// PromptTokensDetails are parts of the prompt's tokens.
type PromptTokensDetails struct {
	CachedTokens     int64 `json:"cached_tokens,omitzero"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitzero"`
	AudioTokens      int64 `json:"audio_tokens,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// CompletionTokensDetails are parts of the completion's tokens.
type CompletionTokensDetails struct {
	ReasoningTokens          int64 `json:"reasoning_tokens,omitzero"`
	AudioTokens              int64 `json:"audio_tokens,omitzero"`
	AcceptedPredictionTokens int64 `json:"accepted_prediction_tokens,omitzero"`
	RejectedPredictionTokens int64 `json:"rejected_prediction_tokens,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// Message is one message of a conversation.
type Message struct {
	Role             string         `json:"role"` // one of the Role… constants
	Content          Content        `json:"content,omitzero"`
	Name             string         `json:"name,omitzero"`
	Refusal          string         `json:"refusal,omitzero"`
	ReasoningContent string         `json:"reasoning_content,omitzero"` // some servers want it back on later turns
	Reasoning        string         `json:"reasoning,omitzero"`
	ToolCalls        []ToolCall     `json:"tool_calls,omitzero"`
	ToolCallID       string         `json:"tool_call_id,omitzero"`   // of the call that a tool message answers
	FunctionCall     *FunctionCall  `json:"function_call,omitempty"` // deprecated
	Annotations      jsontext.Value `json:"annotations,omitzero"`
	Audio            jsontext.Value `json:"audio,omitzero"`

	Extra jsontext.Value `json:",embed"`
}

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
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
	kind  jsontext.Kind // 0 absent, '"' text, '[' parts, 'n' null
	text  string
	parts []ContentPart
}

// TextContent returns content that is a text.
func TextContent(text string) Content { return Content{kind: '"', text: text} }

// PartsContent returns content that is a list of parts.
func PartsContent(parts ...ContentPart) Content { return Content{kind: '[', parts: parts} }

// NullContent returns content that is written as null, which some servers want beside tool calls.
func NullContent() Content { return Content{kind: 'n'} }

// IsZero reports whether the content is absent.
func (c Content) IsZero() bool { return c.kind == 0 }

// Text returns the content's text: that of all text parts, joined.
func (c Content) Text() string {
	if c.kind != '[' {
		return c.text
	}
	var b strings.Builder
	for _, p := range c.parts {
		if p.Text != nil {
			b.WriteString(*p.Text)
		}
	}
	return b.String()
}

// Parts returns the content as parts: a text is one part, null and absent content none.
func (c Content) Parts() []ContentPart {
	if c.kind == '"' {
		return []ContentPart{TextPart(c.text)}
	}
	return c.parts
}
