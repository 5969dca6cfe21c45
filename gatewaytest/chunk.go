package gatewaytest

import (
	"context"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
)

// exchange is what the documents of one answer have in common.
type exchange struct {
	id     string
	model  string // as the request names it
	stream bool   // the request asks for a stream
	usage  bool   // and for its usage
}

type exchangeKey struct{}

func (x *exchange) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// exchangeFrom returns the exchange that a Provider or an Upstream has begun. A step that is played by something else
// gets one that says the little that is known.
func exchangeFrom(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{id: "chatcmpl-test", model: "test-model"}
}

// learn takes what the answer depends on from a request.
func (x *exchange) learn(req *gateway.Request) {
	x.model, x.stream = req.Model, req.Stream
	var options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	if raw, ok := req.Member("stream_options"); ok {
		_ = json.Unmarshal(raw, &options) // another shape does not ask for usage
	}
	x.usage = x.stream && options.IncludeUsage
}

// created is the time that all documents bear, so that they can be compared.
const created = "1700000000"

func (x *exchange) head(object string) []byte {
	b := append([]byte(nil), `{"id":`...)
	b = appendString(b, x.id)
	b = append(b, `,"object":"`+object+`","created":`+created+`,"model":`...)
	return appendString(b, x.model)
}

// document is a whole answer.
func (x *exchange) document(text, finish string, usage *gateway.Usage) string {
	b := x.head("chat.completion")
	b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	b = appendString(b, text)
	b = append(b, `,"refusal":null},"logprobs":null,"finish_reason":`...)
	b = appendString(b, finish)
	b = append(b, `}]`...)
	if usage != nil {
		b = appendUsage(append(b, `,"usage":`...), usage)
	}
	return string(append(b, '}'))
}

// chunk is one event of a streamed answer. An empty finish is null.
func (x *exchange) chunk(delta, finish string) string {
	b := x.head("chat.completion.chunk")
	b = append(b, `,"choices":[{"index":0,"delta":`+delta+`,"finish_reason":`...)
	if finish == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, finish)
	}
	b = append(b, `}]`...)
	if x.usage {
		b = append(b, `,"usage":null`...)
	}
	return string(append(b, '}'))
}

// opening is the chunk that only names the role.
func (x *exchange) opening() string { return x.chunk(`{"role":"assistant","content":""}`, "") }

func (x *exchange) delta(text string) string {
	return x.chunk(`{"content":`+string(appendString(nil, text))+`}`, "")
}

// usageChunk is the chunk that reports usage, after the one that finishes the answer.
func (x *exchange) usageChunk(usage *gateway.Usage) string {
	b := append(x.head("chat.completion.chunk"), `,"choices":[],"usage":`...)
	return string(append(appendUsage(b, usage), '}'))
}

// errorDocument is an error as OpenAI writes it, in a document or in an event of a stream.
func errorDocument(message, kind, code string) string {
	b := appendString([]byte(`{"error":{"message":`), message)
	b = appendString(append(b, `,"type":`...), kind)
	b = append(b, `,"param":null,"code":`...)
	if code == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, code)
	}
	return string(append(b, "}}"...))
}

// appendUsage writes the buckets as OpenAI reports them: details are part of the two sums.
func appendUsage(b []byte, u *gateway.Usage) []byte {
	prompt, completion := u.PromptTokens(), u.CompletionTokens()
	b = strconv.AppendInt(append(b, `{"prompt_tokens":`...), prompt, 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), completion, 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), prompt+completion, 10)
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), u.CacheRead, 10)
	b = strconv.AppendInt(append(b, `,"audio_tokens":`...), u.InputAudio, 10)
	b = strconv.AppendInt(append(b, `},"completion_tokens_details":{"reasoning_tokens":`...), u.Reasoning, 10)
	b = strconv.AppendInt(append(b, `,"audio_tokens":`...), u.OutputAudio, 10)
	return append(b, "}}"...)
}

func appendString(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // only invalid UTF-8 is an error, and it is replaced
	return b
}
