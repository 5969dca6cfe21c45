// Package wire holds the documents that the benchmarks send and receive: the same for all that are compared.
package wire

import (
	"fmt"
	"strings"
)

// The names of the model: what callers ask for, and what the upstream knows.
const (
	Alias = "chat-bench"
	Model = "gpt-4o-mini-2024-07-18"
)

// The usage that Answer and the last event of Events report.
const (
	PromptTokens     = 67
	CompletionTokens = 58
)

// Question is what the shortest request asks, and Text what Answer says.
const (
	Question = "Why does a proxy that buffers bodies use more memory than one that does not? Answer in two sentences."
	Text     = "It keeps each body until all of it has come, so memory grows with the size of the bodies and the number " +
		"of calls. One that passes pieces on needs only a small buffer per call."
)

// Request returns a chat request with model of about the given size, but no shorter than its question. Mode stands in
// the user member, by which the mock upstream knows what to do.
func Request(model, mode string, size int, stream bool) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":%q,"user":%q,`, model, mode)
	if stream {
		b.WriteString(`"stream":true,"stream_options":{"include_usage":true},`)
	}
	b.WriteString(`"temperature":0.2,"max_tokens":256,"messages":[`)
	b.WriteString(`{"role":"system","content":"You are terse."},`)
	const last = 160 // the message with the question
	for i := 0; size-b.Len() > 2*last; i++ {
		role := [...]string{"user", "assistant"}[i%2]
		fmt.Fprintf(&b, `{"role":%q,"content":"%s"},`, role, prose(min(800, size-b.Len()-last)))
	}
	fmt.Fprintf(&b, `{"role":"user","content":%q}]}`, Question)
	return []byte(b.String())
}

// prose returns about n characters, with an escape now and then, as text has.
func prose(n int) string {
	const words = `A proxy that reads a body as a whole keeps all of it until the upstream has taken it, and so its memory ` +
		`grows with the size of the bodies and with the number of calls.\n` +
		`One that passes pieces on (\"streaming\") needs a small buffer for each call, but cannot send a body twice.\n`
	return strings.Repeat(words, max(1, n/len(words)))
}

// Answer returns a whole chat answer of about 600 bytes.
func Answer() []byte {
	return fmt.Appendf(nil, `{"id":"chatcmpl-CQ2b7xY1mTzq0kV3nW8sR5uJ4hL6a","object":"chat.completion","created":1760572800,`+
		`"model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%q,"refusal":null},"logprobs":null,`+
		`"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0}},`+
		`"service_tier":"default","system_fingerprint":"fp_560af6e559"}`,
		Model, Text, PromptTokens, CompletionTokens, PromptTokens+CompletionTokens)
}

// Events returns a stream: an opening event, n events with text, the finish, the usage report and [DONE], each with its
// framing and about 250 bytes long.
func Events(n int) [][]byte {
	const head = `data: {"id":"chatcmpl-CQ2b7xY1mTzq0kV3nW8sR5uJ4hL6a","object":"chat.completion.chunk",` +
		`"created":1760572800,"model":"` + Model + `","service_tier":"default","system_fingerprint":"fp_560af6e559",`
	events := make([][]byte, 0, n+4)
	add := func(format string, args ...any) {
		events = append(events, fmt.Appendf([]byte(head), format+"}\n\n", args...))
	}
	add(`"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,` +
		`"finish_reason":null}],"usage":null`)
	for i := range n {
		add(`"choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"usage":null`, token(i))
	}
	add(`"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null`)
	add(`"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`,
		PromptTokens, CompletionTokens, PromptTokens+CompletionTokens)
	return append(events, []byte("data: [DONE]\n\n"))
}

// token returns the text of an event: words, as models make them, and now and then one with an escape.
func token(i int) string {
	tokens := [...]string{
		" the", " gateway", " keeps", " each", " body", " until", " it", " has", " come", ",", " so", " memory", " grows", ".",
		"\\n", " A", " lean", " one", ` \"just\"`, " passes", " it", " on", ",", " piece", " by", " piece", ".", " That", " is", " all",
	}
	return tokens[i%len(tokens)]
}
