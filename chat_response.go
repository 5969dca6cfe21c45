package gateway

import "github.com/go-json-experiment/json/jsontext"

// ChatResponse is the typed view of a chat completion: the answer to a [ChatRequest].
type ChatResponse struct {
	ID                string       `json:"id"`
	Object            string       `json:"object"`  // chat.completion
	Created           int64        `json:"created"` // seconds since 1970
	Model             string       `json:"model"`   // the upstream's name for what answered
	Choices           []ChatChoice `json:"choices"`
	Usage             *ChatUsage   `json:"usage"` // nil if the upstream reported none
	ServiceTier       string       `json:"service_tier"`
	SystemFingerprint string       `json:"system_fingerprint"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (r *ChatResponse) members(c *codec) {
	c.object(&r.origin, &r.Extra)
	c.text("id", &r.ID, required)
	c.text("object", &r.Object, required)
	c.integer("created", &r.Created, required)
	c.text("model", &r.Model, required)
	objects(c, "choices", &r.Choices, required)
	pointer(c, "usage", &r.Usage)
	c.text("service_tier", &r.ServiceTier, optional)
	c.text("system_fingerprint", &r.SystemFingerprint, optional)
}

// Text returns the text of the first answer; empty if there is none.
func (r *ChatResponse) Text() string {
	if len(r.Choices) == 0 {
		return ""
	}
	return r.Choices[0].Message.Content.Text()
}

// ToolCalls returns the tool calls of the first answer. Look here, not at the finish reason: servers differ in it.
func (r *ChatResponse) ToolCalls() []ToolCall {
	if len(r.Choices) == 0 {
		return nil
	}
	return r.Choices[0].Message.ToolCalls
}

// ChatChoice is one of the answers of a chat completion.
type ChatChoice struct {
	Index        int64     `json:"index"`
	Message      Message   `json:"message"`
	Logprobs     *Logprobs `json:"logprobs"`
	FinishReason string    `json:"finish_reason"` // one of the Finish… constants, or what a server has of its own

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (h *ChatChoice) members(c *codec) {
	c.object(&h.origin, &h.Extra)
	c.integer("index", &h.Index, required)
	inline(c, "message", &h.Message, required)
	pointer(c, "logprobs", &h.Logprobs)
	c.textOrNull("finish_reason", &h.FinishReason)
}

// Why an answer ended, as OpenAI says it.
const (
	FinishStop          = "stop" // by itself, or at one of the request's stop texts
	FinishLength        = "length"
	FinishToolCalls     = "tool_calls"
	FinishContentFilter = "content_filter"
	FinishFunctionCall  = "function_call" // deprecated
)

// ChatChunk is the typed view of one event of a streamed chat completion. See [ChatAccumulator] for adding them up.
type ChatChunk struct {
	ID                string        `json:"id"`
	Object            string        `json:"object"`  // chat.completion.chunk
	Created           int64         `json:"created"` // seconds since 1970
	Model             string        `json:"model"`
	ServiceTier       string        `json:"service_tier"`
	SystemFingerprint string        `json:"system_fingerprint"`
	Choices           []ChunkChoice `json:"choices"` // may be empty: look before indexing
	Usage             *ChatUsage    `json:"usage"`   // of the answer so far; the last report counts

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (k *ChatChunk) members(c *codec) {
	c.object(&k.origin, &k.Extra)
	c.text("id", &k.ID, required)
	c.text("object", &k.Object, required)
	c.integer("created", &k.Created, required)
	c.text("model", &k.Model, required)
	c.text("service_tier", &k.ServiceTier, optional)
	c.text("system_fingerprint", &k.SystemFingerprint, optional)
	objects(c, "choices", &k.Choices, required)
	pointer(c, "usage", &k.Usage)
}

// Text returns the text that the chunk adds to the first answer.
func (k *ChatChunk) Text() string {
	for i := range k.Choices {
		if k.Choices[i].Index == 0 {
			return k.Choices[i].Delta.Content.Text()
		}
	}
	return ""
}

// ChunkChoice is what a chunk adds to one of the answers.
type ChunkChoice struct {
	Index        int64     `json:"index"` // of the answer
	Delta        Delta     `json:"delta"`
	Logprobs     *Logprobs `json:"logprobs"`
	FinishReason string    `json:"finish_reason"` // empty until the answer's last chunk

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (h *ChunkChoice) members(c *codec) {
	c.object(&h.origin, &h.Extra)
	c.integer("index", &h.Index, required)
	inline(c, "delta", &h.Delta, required)
	pointer(c, "logprobs", &h.Logprobs)
	c.textOrNull("finish_reason", &h.FinishReason)
}

// Delta is what a chunk adds to a message. All of its texts are pieces, except for the role.
type Delta struct {
	Role             string             `json:"role"`
	Content          Content            `json:"content"`
	Refusal          string             `json:"refusal"`
	ReasoningContent string             `json:"reasoning_content"` // DeepSeek, Qwen, vLLM and others
	Reasoning        string             `json:"reasoning"`         // OpenRouter, Groq and others
	ToolCalls        []ToolCallDelta    `json:"tool_calls"`
	Annotations      []Annotation       `json:"annotations"`
	Audio            *MessageAudio      `json:"audio"`
	FunctionCall     *FunctionCallDelta `json:"function_call"` // deprecated

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (d *Delta) members(c *codec) {
	c.object(&d.origin, &d.Extra)
	c.text("role", &d.Role, optional)
	c.content("content", &d.Content)
	c.text("refusal", &d.Refusal, optional)
	c.text("reasoning_content", &d.ReasoningContent, optional)
	c.text("reasoning", &d.Reasoning, optional)
	objects(c, "tool_calls", &d.ToolCalls, optional)
	objects(c, "annotations", &d.Annotations, optional)
	pointer(c, "audio", &d.Audio)
	pointer(c, "function_call", &d.FunctionCall)
}

// ChatUsage is a usage report as OpenAI's interface has it, in tokens. Every detail is a part of its parent. For
// billing see [Usage], whose buckets are disjoint.
type ChatUsage struct {
	PromptTokens            int64                   `json:"prompt_tokens"`
	CompletionTokens        int64                   `json:"completion_tokens"`
	TotalTokens             int64                   `json:"total_tokens"` // the sum of the two
	PromptTokensDetails     PromptTokensDetails     `json:"prompt_tokens_details"`
	CompletionTokensDetails CompletionTokensDetails `json:"completion_tokens_details"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (u *ChatUsage) members(c *codec) {
	c.object(&u.origin, &u.Extra)
	c.integer("prompt_tokens", &u.PromptTokens, required)
	c.integer("completion_tokens", &u.CompletionTokens, required)
	c.integer("total_tokens", &u.TotalTokens, required)
	inline(c, "prompt_tokens_details", &u.PromptTokensDetails, optional)
	inline(c, "completion_tokens_details", &u.CompletionTokensDetails, optional)
}

// PromptTokensDetails are parts of the prompt's tokens.
type PromptTokensDetails struct {
	CachedTokens     int64 `json:"cached_tokens"`      // read from the cache
	CacheWriteTokens int64 `json:"cache_write_tokens"` // written to it
	AudioTokens      int64 `json:"audio_tokens"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (d *PromptTokensDetails) members(c *codec) {
	c.object(&d.origin, &d.Extra)
	c.integer("cached_tokens", &d.CachedTokens, optional)
	c.integer("cache_write_tokens", &d.CacheWriteTokens, optional)
	c.integer("audio_tokens", &d.AudioTokens, optional)
}

// CompletionTokensDetails are parts of the completion's tokens.
type CompletionTokensDetails struct {
	ReasoningTokens          int64 `json:"reasoning_tokens"`
	AudioTokens              int64 `json:"audio_tokens"`
	AcceptedPredictionTokens int64 `json:"accepted_prediction_tokens"`
	RejectedPredictionTokens int64 `json:"rejected_prediction_tokens"` // charged for, though not in the answer

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (d *CompletionTokensDetails) members(c *codec) {
	c.object(&d.origin, &d.Extra)
	c.integer("reasoning_tokens", &d.ReasoningTokens, optional)
	c.integer("audio_tokens", &d.AudioTokens, optional)
	c.integer("accepted_prediction_tokens", &d.AcceptedPredictionTokens, optional)
	c.integer("rejected_prediction_tokens", &d.RejectedPredictionTokens, optional)
}

// Logprobs are the log probabilities of an answer's tokens.
type Logprobs struct {
	Content []TokenLogprob `json:"content"`
	Refusal []TokenLogprob `json:"refusal"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (l *Logprobs) members(c *codec) {
	c.object(&l.origin, &l.Extra)
	objects(c, "content", &l.Content, optional)
	objects(c, "refusal", &l.Refusal, optional)
}

// TokenLogprob is a token with its log probability.
type TokenLogprob struct {
	Token       string         `json:"token"`
	Logprob     float64        `json:"logprob"`      // natural; -9999 for a token that is very unlikely
	Bytes       jsontext.Value `json:"bytes"`        // the token's UTF-8 bytes as a list of numbers, or null
	TopLogprobs []TopLogprob   `json:"top_logprobs"` // the likeliest tokens at this place

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (t *TokenLogprob) members(c *codec) {
	c.object(&t.origin, &t.Extra)
	c.text("token", &t.Token, required)
	c.float("logprob", &t.Logprob)
	c.raw("bytes", &t.Bytes)
	objects(c, "top_logprobs", &t.TopLogprobs, optional)
}

// TopLogprob is one of the likeliest tokens at a place, with its log probability.
type TopLogprob struct {
	Token   string         `json:"token"`
	Logprob float64        `json:"logprob"` // natural
	Bytes   jsontext.Value `json:"bytes"`   // the token's UTF-8 bytes as a list of numbers, or null

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (t *TopLogprob) members(c *codec) {
	c.object(&t.origin, &t.Extra)
	c.text("token", &t.Token, required)
	c.float("logprob", &t.Logprob)
	c.raw("bytes", &t.Bytes)
}
