package gateway

// Placeholder until the typed view lands (another session of work writes this file).

type (
	ChatRequest struct {
		Model  string
		Stream *bool
	}
	ChatResponse      struct{}
	ChatChunk         struct{}
	EmbeddingRequest  struct{ Model string }
	EmbeddingResponse struct{}
)
