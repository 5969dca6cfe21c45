package gateway

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// ChatAccumulator adds up the chunks of a streamed answer to the answer that a plain call would have given. It takes
// streams as servers really send them: choices interleaved, ids repeated, changing or missing, content as text or in
// parts, usage on any chunk. Of members that the types do not name it joins lists and keeps the latest of all others.
//
// The zero value is ready to use. An accumulator must not be used by several goroutines at the same time.
type ChatAccumulator struct {
	response ChatResponse
	extra    accumulatedExtra
	choices  []*accumulatedChoice // in the order of their first chunks
}

// Add adds a chunk.
func (a *ChatAccumulator) Add(k *ChatChunk) {
	r := &a.response
	r.ID, r.Model, r.Created = cmp.Or(r.ID, k.ID), cmp.Or(r.Model, k.Model), cmp.Or(r.Created, k.Created)
	r.ServiceTier = cmp.Or(k.ServiceTier, r.ServiceTier)
	r.SystemFingerprint = cmp.Or(k.SystemFingerprint, r.SystemFingerprint)
	if k.Usage != nil {
		r.Usage = k.Usage // totals so far: the last ones count
	}
	a.extra.add(k.Extra)
	for i := range k.Choices {
		a.choice(k.Choices[i].Index).add(&k.Choices[i])
	}
}

// Response returns what has been added up so far. Later chunks do not change it.
func (a *ChatAccumulator) Response() *ChatResponse {
	r := a.response
	r.Object = "chat.completion"
	r.Extra = a.extra.object("obfuscation") // padding, which means nothing
	r.Choices = make([]ChatChoice, 0, len(a.choices))
	for _, choice := range a.choices {
		r.Choices = append(r.Choices, choice.choice())
	}
	slices.SortStableFunc(r.Choices, func(x, y ChatChoice) int { return cmp.Compare(x.Index, y.Index) })
	return &r
}

func (a *ChatAccumulator) choice(index int64) *accumulatedChoice {
	for _, choice := range a.choices {
		if choice.index == index {
			return choice
		}
	}
	choice := &accumulatedChoice{index: index}
	a.choices = append(a.choices, choice)
	return choice
}

// accumulatedChoice is one of the answers so far.
type accumulatedChoice struct {
	index                       int64
	role, finish                string
	content                     accumulatedContent
	refusal                     strings.Builder
	reasoningContent, reasoning strings.Builder
	calls                       []*accumulatedCall
	open                        *accumulatedCall // the call that the last delta has added to
	function                    FunctionCall     // deprecated; its arguments are beside
	arguments                   strings.Builder
	annotations                 []Annotation
	audio                       *MessageAudio // its texts are beside
	audioData, transcript       strings.Builder
	logprobs                    *Logprobs
	extra, messageExtra         accumulatedExtra
}

func (a *accumulatedChoice) add(h *ChunkChoice) {
	d := &h.Delta
	a.role, a.finish = cmp.Or(a.role, d.Role), cmp.Or(h.FinishReason, a.finish)
	a.content.add(&d.Content)
	a.refusal.WriteString(d.Refusal)
	a.reasoningContent.WriteString(d.ReasoningContent)
	a.reasoning.WriteString(d.Reasoning)
	a.addCalls(d.ToolCalls)
	if f := d.FunctionCall; f != nil {
		a.function.Name = cmp.Or(a.function.Name, f.Name)
		a.arguments.WriteString(f.Arguments)
	}
	a.annotations = append(a.annotations, d.Annotations...)
	a.addAudio(d.Audio)
	if l := h.Logprobs; l != nil {
		if a.logprobs == nil {
			a.logprobs = new(Logprobs)
		}
		a.logprobs.Content = append(a.logprobs.Content, l.Content...)
		a.logprobs.Refusal = append(a.logprobs.Refusal, l.Refusal...)
	}
	a.extra.add(h.Extra)
	a.messageExtra.add(d.Extra)
}

func (a *accumulatedChoice) addAudio(piece *MessageAudio) {
	if piece == nil {
		return
	}
	if a.audio == nil {
		a.audio = new(MessageAudio)
	}
	a.audio.ID = cmp.Or(a.audio.ID, piece.ID)
	a.audioData.WriteString(piece.Data)
	a.transcript.WriteString(piece.Transcript)
	a.audio.ExpiresAt = cmp.Or(piece.ExpiresAt, a.audio.ExpiresAt)
}

// choice returns a copy of the answer so far.
func (a *accumulatedChoice) choice() ChatChoice {
	h := ChatChoice{Index: a.index, FinishReason: a.finish, Extra: a.extra.object()}
	if a.logprobs != nil {
		h.Logprobs = &Logprobs{Content: slices.Clone(a.logprobs.Content), Refusal: slices.Clone(a.logprobs.Refusal)}
	}
	m := &h.Message
	m.Role = cmp.Or(a.role, RoleAssistant)
	m.Content = a.content.content()
	m.Refusal, m.ReasoningContent, m.Reasoning = a.refusal.String(), a.reasoningContent.String(), a.reasoning.String()
	m.Annotations = slices.Clone(a.annotations)
	m.Extra = a.messageExtra.object()
	if a.audio != nil {
		m.Audio = &MessageAudio{
			ID: a.audio.ID, Data: a.audioData.String(), Transcript: a.transcript.String(), ExpiresAt: a.audio.ExpiresAt,
		}
	}
	for _, call := range a.calls {
		m.ToolCalls = append(m.ToolCalls, call.call())
	}
	if a.function.Name != "" || a.arguments.Len() > 0 { // some servers send an empty one with every answer
		m.FunctionCall = &FunctionCall{Name: a.function.Name, Arguments: a.arguments.String()}
	}
	return h
}

// accumulatedCall is a tool call so far.
type accumulatedCall struct {
	index                *int64 // as the server counts; nil if it does not
	id, kind, name       string
	arguments            strings.Builder // or a custom tool's input
	custom               bool
	extra, functionExtra accumulatedExtra
}

// addCalls adds to the calls that the deltas belong to. Deltas of one call have its index. Where a server gives none,
// or the same one to all calls, another id begins another call, and so does a further name in the same chunk.
func (a *accumulatedChoice) addCalls(deltas []ToolCallDelta) {
	var seen []*accumulatedCall // by this chunk
	for i := range deltas {
		d := &deltas[i]
		call := a.open
		if d.Index != nil {
			call = a.callAt(*d.Index)
		}
		name := d.Function.Name
		if d.Custom != nil {
			name = cmp.Or(name, d.Custom.Name)
		}
		switch {
		case call == nil, d.ID != "" && call.id != "" && d.ID != call.id,
			d.ID == "" && name != "" && call.name != "" && slices.Contains(seen, call):
			call = &accumulatedCall{index: d.Index}
			a.calls = append(a.calls, call)
		}
		call.add(d, name)
		a.open = call
		seen = append(seen, call)
	}
}

// callAt returns the latest call that the server counts as index.
func (a *accumulatedChoice) callAt(index int64) *accumulatedCall {
	for _, call := range slices.Backward(a.calls) {
		if call.index != nil && *call.index == index {
			return call
		}
	}
	return nil
}

func (a *accumulatedCall) add(d *ToolCallDelta, name string) {
	a.id, a.kind, a.name = cmp.Or(a.id, d.ID), cmp.Or(a.kind, d.Type), cmp.Or(a.name, name)
	a.arguments.WriteString(d.Function.Arguments)
	if d.Custom != nil {
		a.custom = true
		a.arguments.WriteString(d.Custom.Input)
	}
	a.extra.add(d.Extra)
	a.functionExtra.add(d.Function.Extra)
}

func (a *accumulatedCall) call() ToolCall {
	t := ToolCall{ID: a.id, Type: a.kind, Extra: a.extra.object()}
	if a.custom {
		t.Type = cmp.Or(t.Type, "custom")
		t.Custom = &CustomCall{Name: a.name, Input: a.arguments.String()}
		return t
	}
	t.Type = cmp.Or(t.Type, "function")
	t.Function = FunctionCall{Name: a.name, Arguments: a.arguments.String(), Extra: a.functionExtra.object()}
	return t
}

// accumulatedContent is a message's content so far: a text, or parts if any delta has come as parts.
type accumulatedContent struct {
	text    strings.Builder
	hasText bool
	parts   []*accumulatedPart
}

type accumulatedPart struct {
	part  ContentPart
	text  strings.Builder
	extra accumulatedExtra
}

func (a *accumulatedContent) add(content *Content) {
	switch {
	case content.kind == '"' && len(a.parts) > 0:
		if content.text != "" {
			a.addPart(TextPart(content.text))
		}
	case content.kind == '"':
		a.hasText = true
		a.text.WriteString(content.text)
	case content.kind == '[':
		if a.text.Len() > 0 && len(a.parts) == 0 && len(content.parts) > 0 {
			a.addPart(TextPart(a.text.String()))
		}
		for _, part := range content.parts {
			a.addPart(part)
		}
	}
}

// addPart joins the part to the last one where both are pieces of the same text or thought.
func (a *accumulatedContent) addPart(part ContentPart) {
	whole := part.ImageURL != nil || part.InputAudio != nil || part.File != nil || part.Refusal != ""
	if last := len(a.parts) - 1; whole || last < 0 || a.parts[last].part.Type != part.Type {
		a.parts = append(a.parts, &accumulatedPart{part: part})
	}
	last := a.parts[len(a.parts)-1]
	last.text.WriteString(part.Text)
	last.extra.add(part.Extra)
}

func (a *accumulatedContent) content() Content {
	switch {
	case len(a.parts) > 0:
		parts := make([]ContentPart, 0, len(a.parts))
		for _, p := range a.parts {
			part := p.part
			part.Text, part.Extra = p.text.String(), p.extra.object()
			parts = append(parts, part)
		}
		return PartsContent(parts...)
	case a.hasText:
		return TextContent(a.text.String())
	default:
		return NullContent()
	}
}

// accumulatedExtra is what has come of the members that a type does not name.
type accumulatedExtra []extraMember

type extraMember struct {
	name  string // as it was written, without the quotes
	value jsontext.Value
}

func (a *accumulatedExtra) add(extra jsontext.Value) {
	if extra == nil {
		return
	}
	jsonpatch.EachMember(extra, func(name, value jsontext.Value) bool {
		i := slices.IndexFunc(*a, func(m extraMember) bool { return m.name == string(name) })
		switch {
		case i < 0:
			*a = append(*a, extraMember{name: string(name), value: value.Clone()})
		case value.Kind() == 'n':
		case value.Kind() == '[' && (*a)[i].value.Kind() == '[':
			(*a)[i].value = joinLists((*a)[i].value, value)
		default:
			(*a)[i].value = append((*a)[i].value[:0], value...)
		}
		return true
	})
}

// joinLists appends the elements of the list b to the list a.
func joinLists(a, b jsontext.Value) jsontext.Value {
	jsonpatch.EachElement(b, func(element jsontext.Value) bool {
		a = bytes.TrimRight(a[:len(a)-1], " \t\r\n")
		if a[len(a)-1] != '[' {
			a = append(a, ',')
		}
		a = append(append(a, element...), ']')
		return true
	})
	return a
}

// object returns the members but the ignored ones as an object, nil if there are none.
func (a *accumulatedExtra) object(ignored ...string) jsontext.Value {
	var object jsontext.Value
	for _, m := range *a {
		if slices.Contains(ignored, m.name) {
			continue
		}
		separator := `,"`
		if object == nil {
			separator = `{"`
		}
		object = append(append(append(object, separator...), m.name...), `":`...)
		object = append(object, m.value...)
	}
	if object != nil {
		object = append(object, '}')
	}
	return object
}
