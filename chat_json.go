package gateway

// The encodings of the typed values, for json/v2 and for encoding/json.

// MarshalJSON implements json.Marshaler.
func (r ChatRequest) MarshalJSON() ([]byte, error) { return encodeDocument(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *ChatRequest) UnmarshalJSON(text []byte) error { return decodeInto(text, r) }

// MarshalJSON implements json.Marshaler.
func (r ChatResponse) MarshalJSON() ([]byte, error) { return encodeDocument(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *ChatResponse) UnmarshalJSON(text []byte) error { return decodeInto(text, r) }

// MarshalJSON implements json.Marshaler.
func (k ChatChunk) MarshalJSON() ([]byte, error) { return encodeDocument(&k) }

// UnmarshalJSON implements json.Unmarshaler.
func (k *ChatChunk) UnmarshalJSON(text []byte) error { return decodeInto(text, k) }

// MarshalJSON implements json.Marshaler.
func (r EmbeddingRequest) MarshalJSON() ([]byte, error) { return encodeDocument(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *EmbeddingRequest) UnmarshalJSON(text []byte) error { return decodeInto(text, r) }

// MarshalJSON implements json.Marshaler.
func (r EmbeddingResponse) MarshalJSON() ([]byte, error) { return encodeDocument(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *EmbeddingResponse) UnmarshalJSON(text []byte) error { return decodeInto(text, r) }

// MarshalJSON implements json.Marshaler.
func (o StreamOptions) MarshalJSON() ([]byte, error) { return encodeDocument(&o) }

// UnmarshalJSON implements json.Unmarshaler.
func (o *StreamOptions) UnmarshalJSON(text []byte) error { return decodeInto(text, o) }

// MarshalJSON implements json.Marshaler.
func (o AudioOutput) MarshalJSON() ([]byte, error) { return encodeDocument(&o) }

// UnmarshalJSON implements json.Unmarshaler.
func (o *AudioOutput) UnmarshalJSON(text []byte) error { return decodeInto(text, o) }

// MarshalJSON implements json.Marshaler.
func (p Prediction) MarshalJSON() ([]byte, error) { return encodeDocument(&p) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Prediction) UnmarshalJSON(text []byte) error { return decodeInto(text, p) }

// MarshalJSON implements json.Marshaler.
func (f ResponseFormat) MarshalJSON() ([]byte, error) { return encodeDocument(&f) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *ResponseFormat) UnmarshalJSON(text []byte) error { return decodeInto(text, f) }

// MarshalJSON implements json.Marshaler.
func (s JSONSchema) MarshalJSON() ([]byte, error) { return encodeDocument(&s) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *JSONSchema) UnmarshalJSON(text []byte) error { return decodeInto(text, s) }

// MarshalJSON implements json.Marshaler.
func (h ChatChoice) MarshalJSON() ([]byte, error) { return encodeDocument(&h) }

// UnmarshalJSON implements json.Unmarshaler.
func (h *ChatChoice) UnmarshalJSON(text []byte) error { return decodeInto(text, h) }

// MarshalJSON implements json.Marshaler.
func (h ChunkChoice) MarshalJSON() ([]byte, error) { return encodeDocument(&h) }

// UnmarshalJSON implements json.Unmarshaler.
func (h *ChunkChoice) UnmarshalJSON(text []byte) error { return decodeInto(text, h) }

// MarshalJSON implements json.Marshaler.
func (d Delta) MarshalJSON() ([]byte, error) { return encodeDocument(&d) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Delta) UnmarshalJSON(text []byte) error { return decodeInto(text, d) }

// MarshalJSON implements json.Marshaler.
func (u ChatUsage) MarshalJSON() ([]byte, error) { return encodeDocument(&u) }

// UnmarshalJSON implements json.Unmarshaler.
func (u *ChatUsage) UnmarshalJSON(text []byte) error { return decodeInto(text, u) }

// MarshalJSON implements json.Marshaler.
func (d PromptTokensDetails) MarshalJSON() ([]byte, error) { return encodeDocument(&d) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *PromptTokensDetails) UnmarshalJSON(text []byte) error { return decodeInto(text, d) }

// MarshalJSON implements json.Marshaler.
func (d CompletionTokensDetails) MarshalJSON() ([]byte, error) { return encodeDocument(&d) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *CompletionTokensDetails) UnmarshalJSON(text []byte) error { return decodeInto(text, d) }

// MarshalJSON implements json.Marshaler.
func (l Logprobs) MarshalJSON() ([]byte, error) { return encodeDocument(&l) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *Logprobs) UnmarshalJSON(text []byte) error { return decodeInto(text, l) }

// MarshalJSON implements json.Marshaler.
func (t TokenLogprob) MarshalJSON() ([]byte, error) { return encodeDocument(&t) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *TokenLogprob) UnmarshalJSON(text []byte) error { return decodeInto(text, t) }

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) { return encodeDocument(&m) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(text []byte) error { return decodeInto(text, m) }

// MarshalJSON implements json.Marshaler.
func (p ContentPart) MarshalJSON() ([]byte, error) { return encodeDocument(&p) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *ContentPart) UnmarshalJSON(text []byte) error { return decodeInto(text, p) }

// MarshalJSON implements json.Marshaler.
func (i ImageURL) MarshalJSON() ([]byte, error) { return encodeDocument(&i) }

// UnmarshalJSON implements json.Unmarshaler.
func (i *ImageURL) UnmarshalJSON(text []byte) error { return decodeInto(text, i) }

// MarshalJSON implements json.Marshaler.
func (a InputAudio) MarshalJSON() ([]byte, error) { return encodeDocument(&a) }

// UnmarshalJSON implements json.Unmarshaler.
func (a *InputAudio) UnmarshalJSON(text []byte) error { return decodeInto(text, a) }

// MarshalJSON implements json.Marshaler.
func (f File) MarshalJSON() ([]byte, error) { return encodeDocument(&f) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *File) UnmarshalJSON(text []byte) error { return decodeInto(text, f) }

// MarshalJSON implements json.Marshaler.
func (a MessageAudio) MarshalJSON() ([]byte, error) { return encodeDocument(&a) }

// UnmarshalJSON implements json.Unmarshaler.
func (a *MessageAudio) UnmarshalJSON(text []byte) error { return decodeInto(text, a) }

// MarshalJSON implements json.Marshaler.
func (a Annotation) MarshalJSON() ([]byte, error) { return encodeDocument(&a) }

// UnmarshalJSON implements json.Unmarshaler.
func (a *Annotation) UnmarshalJSON(text []byte) error { return decodeInto(text, a) }

// MarshalJSON implements json.Marshaler.
func (u URLCitation) MarshalJSON() ([]byte, error) { return encodeDocument(&u) }

// UnmarshalJSON implements json.Unmarshaler.
func (u *URLCitation) UnmarshalJSON(text []byte) error { return decodeInto(text, u) }

// MarshalJSON implements json.Marshaler.
func (t Tool) MarshalJSON() ([]byte, error) { return encodeDocument(&t) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tool) UnmarshalJSON(text []byte) error { return decodeInto(text, t) }

// MarshalJSON implements json.Marshaler.
func (d FunctionDefinition) MarshalJSON() ([]byte, error) { return encodeDocument(&d) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *FunctionDefinition) UnmarshalJSON(text []byte) error { return decodeInto(text, d) }

// MarshalJSON implements json.Marshaler.
func (d CustomDefinition) MarshalJSON() ([]byte, error) { return encodeDocument(&d) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *CustomDefinition) UnmarshalJSON(text []byte) error { return decodeInto(text, d) }

// MarshalJSON implements json.Marshaler.
func (n ToolName) MarshalJSON() ([]byte, error) { return encodeDocument(&n) }

// UnmarshalJSON implements json.Unmarshaler.
func (n *ToolName) UnmarshalJSON(text []byte) error { return decodeInto(text, n) }

// MarshalJSON implements json.Marshaler.
func (a AllowedTools) MarshalJSON() ([]byte, error) { return encodeDocument(&a) }

// UnmarshalJSON implements json.Unmarshaler.
func (a *AllowedTools) UnmarshalJSON(text []byte) error { return decodeInto(text, a) }

// MarshalJSON implements json.Marshaler.
func (t ToolCall) MarshalJSON() ([]byte, error) { return encodeDocument(&t) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *ToolCall) UnmarshalJSON(text []byte) error { return decodeInto(text, t) }

// MarshalJSON implements json.Marshaler.
func (f FunctionCall) MarshalJSON() ([]byte, error) { return encodeDocument(&f) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *FunctionCall) UnmarshalJSON(text []byte) error { return decodeInto(text, f) }

// MarshalJSON implements json.Marshaler.
func (u CustomCall) MarshalJSON() ([]byte, error) { return encodeDocument(&u) }

// UnmarshalJSON implements json.Unmarshaler.
func (u *CustomCall) UnmarshalJSON(text []byte) error { return decodeInto(text, u) }

// MarshalJSON implements json.Marshaler.
func (t ToolCallDelta) MarshalJSON() ([]byte, error) { return encodeDocument(&t) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *ToolCallDelta) UnmarshalJSON(text []byte) error { return decodeInto(text, t) }

// MarshalJSON implements json.Marshaler.
func (f FunctionCallDelta) MarshalJSON() ([]byte, error) { return encodeDocument(&f) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *FunctionCallDelta) UnmarshalJSON(text []byte) error { return decodeInto(text, f) }

// MarshalJSON implements json.Marshaler.
func (u CustomCallDelta) MarshalJSON() ([]byte, error) { return encodeDocument(&u) }

// UnmarshalJSON implements json.Unmarshaler.
func (u *CustomCallDelta) UnmarshalJSON(text []byte) error { return decodeInto(text, u) }

// MarshalJSON implements json.Marshaler.
func (e Embedding) MarshalJSON() ([]byte, error) { return encodeDocument(&e) }

// UnmarshalJSON implements json.Unmarshaler.
func (e *Embedding) UnmarshalJSON(text []byte) error { return decodeInto(text, e) }

// MarshalJSON implements json.Marshaler.
func (t TopLogprob) MarshalJSON() ([]byte, error) { return encodeDocument(&t) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *TopLogprob) UnmarshalJSON(text []byte) error { return decodeInto(text, t) }

// MarshalJSON implements json.Marshaler.
func (u EmbeddingUsage) MarshalJSON() ([]byte, error) { return encodeDocument(&u) }

// UnmarshalJSON implements json.Unmarshaler.
func (u *EmbeddingUsage) UnmarshalJSON(text []byte) error { return decodeInto(text, u) }
