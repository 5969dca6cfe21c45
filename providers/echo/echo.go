// Package echo answers without any upstream, and always in the same way. It is there to try a gateway and its clients
// out with: plain and streamed, with tools, structured output, embeddings and usage.
//
// The answer to a chat is the text of its last user message; after a tool's result it is that result. With tool_choice
// "required", or naming a function, the answer is a call of the first or the named tool, unless a tool's result has come
// last. With a response_format of json_object it is {"echo": text}, with json_schema the smallest document that the
// schema admits, with the text in its strings; a tool's arguments are made from its parameters likewise. A stream has
// one chunk for each word. An embedding is a unit vector that depends on nothing but the text. A token is a word:
// prompt_tokens are the words of all messages, completion_tokens those of the answer.
package echo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
)

// Provider answers every call itself. Make one with [New].
type Provider struct{ name string }

// New returns a provider with the given name.
func New(name string) *Provider { return &Provider{name: name} }

// Name implements [gateway.Provider].
func (p *Provider) Name() string { return p.name }

// Do implements [gateway.Handler].
func (p *Provider) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, gateway.AsError(err)
	}
	switch req.API {
	case gateway.APIChat:
		return p.chat(ctx, req)
	case gateway.APIEmbeddings:
		return p.embed(req)
	default:
		return nil, p.invalid(req, "", fmt.Sprintf("the interface %q is not supported", req.API))
	}
}

func (p *Provider) invalid(req *gateway.Request, param, message string) *gateway.Error {
	return &gateway.Error{
		Kind: gateway.ErrInvalidRequest, Status: http.StatusBadRequest, Code: "invalid_value", Param: param,
		Message: message, Outcome: gateway.OutcomeRejected, Provider: p.name, Model: req.Model,
	}
}

// The members of a chat that make a difference.
type (
	chatRequest struct {
		Messages      []message      `json:"messages"`
		N             *int           `json:"n"`
		Tools         []tool         `json:"tools"`
		ToolChoice    jsontext.Value `json:"tool_choice"`
		Format        *format        `json:"response_format"`
		StreamOptions *struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	message struct {
		Role    string         `json:"role"`
		Content jsontext.Value `json:"content"`
	}
	tool struct {
		Type     string `json:"type"`
		Function struct {
			Name       string         `json:"name"`
			Parameters jsontext.Value `json:"parameters"`
		} `json:"function"`
	}
	format struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema jsontext.Value `json:"schema"`
		} `json:"json_schema"`
	}
)

// The members of an answer, in the order in which they are written.
type (
	completion struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   any      `json:"usage,omitzero"`
	}
	choice struct {
		Index    int     `json:"index"`
		Message  *said   `json:"message,omitzero"`
		Delta    *delta  `json:"delta,omitzero"`
		Logprobs any     `json:"logprobs"`
		Finish   *string `json:"finish_reason"`
	}
	said struct {
		Role      string  `json:"role"`
		Content   *string `json:"content"`
		Refusal   *string `json:"refusal"`
		ToolCalls []call  `json:"tool_calls,omitempty"`
	}
	delta struct {
		Role      string  `json:"role,omitzero"`
		Content   *string `json:"content,omitzero"`
		ToolCalls []call  `json:"tool_calls,omitempty"`
	}
	call struct {
		Index    *int   `json:"index,omitzero"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	report struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens,omitzero"`
		Total      int64 `json:"total_tokens"`
	}
)

// created is when every answer was made: the beginning of 2025.
const created = 1735689600

const maxChoices = 128

func (p *Provider) chat(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	var in chatRequest
	if err := json.Unmarshal(req.Body, &in, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, p.invalid(req, "", "the document is not a chat request: "+err.Error())
	}
	if len(in.Messages) == 0 {
		return nil, p.invalid(req, "messages", "\"messages\" must have at least one message")
	}
	n := 1
	if in.N != nil {
		if n = *in.N; n < 1 || n > maxChoices {
			return nil, p.invalid(req, "n", fmt.Sprintf("\"n\" must be from 1 to %d", maxChoices))
		}
	}
	a := answer{completion: completion{ID: "chatcmpl-" + identify(req), Created: created, Model: req.Model}, n: n}
	prompt := 0
	for _, m := range in.Messages {
		prompt += len(strings.Fields(m.text()))
	}
	if tool := in.chosenTool(); tool != nil {
		a.call = &call{ID: "call_" + identify(req)[:24], Type: "function"}
		a.call.Function.Name = tool.Function.Name
		a.call.Function.Arguments = instanceOf(tool.Function.Parameters, in.said())
		a.words = strings.Fields(a.call.Function.Arguments)
	} else {
		a.text = in.formatted()
		a.words = strings.SplitAfter(a.text, " ")
	}
	words := len(strings.Fields(a.text))
	if a.call != nil {
		words = len(a.words)
	}
	a.usage = gateway.Usage{Input: int64(prompt), Output: int64(words * n)}
	if !req.Stream {
		return a.plain()
	}
	a.asked = in.StreamOptions != nil && in.StreamOptions.IncludeUsage
	events, err := a.events()
	if err != nil {
		return nil, err
	}
	return &gateway.Response{Stream: gateway.NewStream(&reader{ctx: ctx, events: events})}, nil
}

// identify returns 32 hexadecimal digits that are the same for the same request.
func identify(req *gateway.Request) string {
	sum := sha256.Sum256(append([]byte(req.TraceID+"\x00"), req.Body...))
	return hex.EncodeToString(sum[:16])
}

// text returns the text of a message, whose content is a string or a list of parts.
func (m message) text() string {
	switch m.Content.Kind() {
	case '"':
		var text string
		_ = json.Unmarshal(m.Content, &text)
		return text
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal(m.Content, &parts, jsontext.AllowDuplicateNames(true))
		var texts []string
		for _, part := range parts {
			if part.Text != "" {
				texts = append(texts, part.Text)
			}
		}
		return strings.Join(texts, "\n")
	default:
		return ""
	}
}

// said returns what is echoed.
func (r *chatRequest) said() string {
	if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
		return last.text()
	}
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" {
			return m.text()
		}
	}
	return ""
}

func (r *chatRequest) chosenTool() *tool {
	if len(r.Tools) == 0 || r.Messages[len(r.Messages)-1].Role == "tool" {
		return nil
	}
	if string(r.ToolChoice) == `"required"` {
		if r.Tools[0].Function.Name == "" {
			return nil
		}
		return &r.Tools[0]
	}
	var named tool
	if r.ToolChoice.Kind() != '{' || json.Unmarshal(r.ToolChoice, &named) != nil {
		return nil
	}
	for i := range r.Tools {
		if name := r.Tools[i].Function.Name; name != "" && name == named.Function.Name {
			return &r.Tools[i]
		}
	}
	return nil
}

// formatted returns the answer's text in the form that was asked for.
func (r *chatRequest) formatted() string {
	said := r.said()
	switch {
	case r.Format == nil:
		return said
	case r.Format.Type == "json_object":
		text, err := json.Marshal(map[string]string{"echo": said})
		if err != nil {
			return "{}" // never: JSON has given us the text
		}
		return string(text)
	case r.Format.Type == "json_schema":
		return instanceOf(r.Format.JSONSchema.Schema, said)
	default:
		return said
	}
}

// answer is what is answered, before it takes the form of a document or a stream.
type answer struct {
	completion

	n     int
	text  string
	words []string
	call  *call // instead of text
	usage gateway.Usage
	asked bool // for the usage report at the end of the stream
}

func (a *answer) finish() *string {
	reason := "stop"
	if a.call != nil {
		reason = "tool_calls"
	}
	return &reason
}

func (a *answer) report() report {
	prompt, completion := a.usage.PromptTokens(), a.usage.CompletionTokens()
	return report{prompt, completion, prompt + completion}
}

func (a *answer) plain() (*gateway.Response, error) {
	out := a.completion
	out.Object, out.Usage = "chat.completion", a.report()
	message := &said{Role: "assistant", Content: &a.text}
	if a.call != nil {
		message.Content, message.ToolCalls = nil, []call{*a.call}
	}
	for i := range a.n {
		out.Choices = append(out.Choices, choice{Index: i, Message: message, Finish: a.finish()})
	}
	body, err := json.Marshal(&out)
	if err != nil {
		return nil, err
	}
	return &gateway.Response{Body: body, Usage: &a.usage, OutputBytes: a.n * len(a.text)}, nil
}

// events returns the chunks of a stream: for each choice its role, its words and its finish, and then the usage.
func (a *answer) events() (events []gateway.Event, err error) {
	out := a.completion
	out.Object = "chat.completion.chunk"
	if a.asked {
		out.Usage = jsontext.Value("null")
	}
	add := func(event gateway.Event, d delta, finish *string) {
		for i := range a.n {
			out.Choices = []choice{{Index: i, Delta: &d, Finish: finish}}
			data, failure := json.Marshal(&out)
			if failure != nil {
				err = failure
			}
			event.Data = string(data)
			events = append(events, event)
		}
	}
	empty := ""
	add(gateway.Event{}, delta{Role: "assistant", Content: &empty}, nil)
	if a.call != nil {
		first, index := *a.call, 0
		first.Index = &index
		add(gateway.Event{Output: true, OutputBytes: len(first.Function.Arguments)}, delta{ToolCalls: []call{first}}, nil)
	} else {
		for _, word := range a.words {
			if word != "" {
				add(gateway.Event{Output: true, OutputBytes: len(word)}, delta{Content: &word}, nil)
			}
		}
	}
	add(gateway.Event{Finished: true}, delta{}, a.finish())
	out.Choices, out.Usage = []choice{}, a.report()
	data, failure := json.Marshal(&out)
	if failure != nil {
		return nil, failure
	}
	return append(events, gateway.Event{Data: string(data), Usage: &a.usage, Hidden: !a.asked}), err
}

// reader hands out events until the call's context ends or it is closed.
type reader struct {
	ctx    context.Context //nolint:containedctx // the stream's own, which lasts as long as its call
	events []gateway.Event
	closed atomic.Bool
}

// Next implements [gateway.EventReader].
func (r *reader) Next() (gateway.Event, error) {
	if err := r.ctx.Err(); err != nil {
		return gateway.Event{}, gateway.AsError(err)
	}
	if len(r.events) == 0 || r.closed.Load() {
		return gateway.Event{}, io.EOF
	}
	event := r.events[0]
	r.events = r.events[1:]
	return event, nil
}

// Buffered reports that Next never waits.
func (r *reader) Buffered() bool { return len(r.events) > 0 }

// Close implements [gateway.EventReader].
func (r *reader) Close() error {
	r.closed.Store(true)
	return nil
}
