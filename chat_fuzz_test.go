package gateway_test

import (
	"math/rand/v2"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
)

func FuzzChatRequest(f *testing.F)       { fuzz[gateway.ChatRequest](f, requests) }
func FuzzChatResponse(f *testing.F)      { fuzz[gateway.ChatResponse](f, responses) }
func FuzzChatChunk(f *testing.F)         { fuzz[gateway.ChatChunk](f, chunks) }
func FuzzEmbeddingRequest(f *testing.F)  { fuzz[gateway.EmbeddingRequest](f, embeddingRequests) }
func FuzzEmbeddingResponse(f *testing.F) { fuzz[gateway.EmbeddingResponse](f, embeddingResponses) }

// fuzz checks that every object goes through a T unchanged, and that nothing makes it panic.
func fuzz[T any, P interface {
	*T
	json.Unmarshaler
}](f *testing.F, seeds []string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	for _, seed := range []string{`"`, `"a`, `[`, `[{`, `{"a`, `{"a":`, `{"a":1,`, `{1:2}`, `{"a" 1}`, `null`, `[{"type":"text`} {
		f.Add([]byte(seed))
	}
	random := rand.New(rand.NewPCG(7, 8))
	for range 30 {
		f.Add([]byte(`{"messages":` + randomValue(random, 5) + `,"choices":` + randomValue(random, 5) + `,"input":` + randomValue(random, 3) + `}`))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if v := jsontext.Value(text); v.IsValid() && v.Kind() == '{' {
			roundTrip[T](t, text)
			return
		}
		_ = P(new(T)).UnmarshalJSON(text)
		_ = new(gateway.Content).UnmarshalJSON(text)
		_ = new(gateway.ToolChoice).UnmarshalJSON(text)
		_ = new(gateway.EmbeddingInput).UnmarshalJSON(text)
		var value T
		if json.Unmarshal(text, &value) == nil {
			t.Errorf("%T decodes %q", value, text)
		}
	})
}
