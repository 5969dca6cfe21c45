package calls

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway/bench/internal/wire"
)

// The floor's documents: plain structs with the members that the wire documents have, and nothing else.
type (
	request struct {
		Model         string         `json:"model"`
		Messages      []message      `json:"messages"`
		Temperature   float64        `json:"temperature"`
		MaxTokens     int            `json:"max_tokens"`
		Stream        bool           `json:"stream,omitzero"`
		StreamOptions *streamOptions `json:"stream_options,omitzero"`
	}
	message struct {
		Role    string  `json:"role"`
		Content string  `json:"content"`
		Refusal *string `json:"refusal,omitzero"`
	}
	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	answer struct {
		ID                string   `json:"id"`
		Object            string   `json:"object"`
		Created           int64    `json:"created"`
		Model             string   `json:"model"`
		Choices           []choice `json:"choices"`
		Usage             *usage   `json:"usage"`
		ServiceTier       string   `json:"service_tier"`
		SystemFingerprint string   `json:"system_fingerprint"`
	}
	choice struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		FinishReason string  `json:"finish_reason"`
	}
	usage struct {
		PromptTokens        int64         `json:"prompt_tokens"`
		CompletionTokens    int64         `json:"completion_tokens"`
		TotalTokens         int64         `json:"total_tokens"`
		PromptTokensDetails promptDetails `json:"prompt_tokens_details"`
	}
	promptDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
		AudioTokens  int64 `json:"audio_tokens"`
	}
	chunk struct {
		ID                string        `json:"id"`
		Object            string        `json:"object"`
		Created           int64         `json:"created"`
		Model             string        `json:"model"`
		Choices           []chunkChoice `json:"choices"`
		Usage             *usage        `json:"usage"`
		ServiceTier       string        `json:"service_tier"`
		SystemFingerprint string        `json:"system_fingerprint"`
	}
	chunkChoice struct {
		Index        int     `json:"index"`
		Delta        message `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	}
)

const (
	system      = "You are terse."
	temperature = 0.2
	maxTokens   = 256
)

// floor is what a program does that has no library: net/http and the standard library's next JSON package, into structs.
func floor(transport *Transport) (Contender, error) {
	client := &http.Client{Transport: transport}
	const endpoint = "http://llm.example/v1/chat/completions"
	ask := func(ctx context.Context, stream bool) (*http.Response, error) {
		question := request{
			Model: wire.Model, Temperature: temperature, MaxTokens: maxTokens,
			Messages: []message{{Role: "system", Content: system}, {Role: "user", Content: wire.Question}},
		}
		if stream {
			question.Stream, question.StreamOptions = true, &streamOptions{IncludeUsage: true}
		}
		body, err := json.Marshal(question)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("make the request: %w", err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer sk-upstream")
		res, err := client.Do(req)
		if err != nil {
			return nil, fmt.Errorf("send: %w", err)
		}
		if res.StatusCode != http.StatusOK {
			_ = res.Body.Close()
			return nil, errors.New(res.Status)
		}
		return res, nil
	}
	return Contender{
		Name: Reference,
		Chat: func(ctx context.Context) (string, int64, error) {
			res, err := ask(ctx, false)
			if err != nil {
				return "", 0, err
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				return "", 0, fmt.Errorf("read: %w", err)
			}
			a := new(answer)
			if err := json.Unmarshal(body, a); err != nil {
				return "", 0, fmt.Errorf("decode: %w", err)
			}
			return a.Choices[0].Message.Content, a.Usage.CompletionTokens, nil
		},
		Stream: func(ctx context.Context) (chunks, text int, tokens int64, err error) {
			res, err := ask(ctx, true)
			if err != nil {
				return 0, 0, 0, err
			}
			defer res.Body.Close()
			lines := bufio.NewScanner(res.Body)
			for lines.Scan() {
				data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
				if !ok {
					continue
				}
				if string(data) == "[DONE]" {
					break
				}
				c := new(chunk)
				if err := json.Unmarshal(data, c); err != nil {
					return 0, 0, 0, fmt.Errorf("decode: %w", err)
				}
				chunks++
				for _, choice := range c.Choices {
					text += len(choice.Delta.Content)
				}
				if c.Usage != nil {
					tokens = c.Usage.CompletionTokens
				}
			}
			return chunks, text, tokens, lines.Err()
		},
	}, nil
}
