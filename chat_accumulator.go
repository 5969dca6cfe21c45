package gateway

import "strings"

// ChatAccumulator adds the chunks of a streamed answer up to the answer that a plain call would have given. The zero
// value is ready to use. It takes streams as servers really send them: choices interleaved, ids repeated or missing,
// usage on any chunk. It is not safe for concurrent use.
type ChatAccumulator struct {
	response ChatResponse
	choices  []*accumulatedChoice // in order of appearance
}

type accumulatedChoice struct {
	index     int64
	role      string
	content   strings.Builder
	refusal   strings.Builder
	reasoning strings.Builder
	finish    string
	calls     []*accumulatedCall
	open      *accumulatedCall // the call that the last delta added to

	hasContent bool
}

type accumulatedCall struct {
	index     int64 // -1 when the server gave none
	call      ToolCall
	name      string
	arguments strings.Builder
}

// Add adds a chunk.
func (a *ChatAccumulator) Add(c *ChatChunk) {
	r := &a.response
	r.ID, r.Model = firstText(r.ID, c.ID), firstText(r.Model, c.Model)
	if r.Created == 0 {
		r.Created = c.Created
	}
	r.SystemFingerprint = firstText(r.SystemFingerprint, c.SystemFingerprint)
	r.ServiceTier = firstText(c.ServiceTier, r.ServiceTier) // the tier that was used is known at the end
	if c.Usage != nil {
		r.Usage = c.Usage // running totals: the last one counts
	}
	for i := range c.Choices {
		a.choice(c.Choices[i].Index).add(&c.Choices[i])
	}
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (a *ChatAccumulator) choice(index int64) *accumulatedChoice {
	for _, c := range a.choices {
		if c.index == index {
			return c
		}
	}
	c := &accumulatedChoice{index: index}
	a.choices = append(a.choices, c)
	return c
}

func (a *accumulatedChoice) add(c *ChunkChoice) {
	d := &c.Delta
	a.role = firstText(a.role, d.Role)
	if !d.Content.IsZero() && d.Content.kind != 'n' {
		a.hasContent = true
		a.content.WriteString(d.Content.Text())
	}
	a.refusal.WriteString(d.Refusal)
	a.reasoning.WriteString(firstText(d.ReasoningContent, d.Reasoning)) // the same text may come under both names
	if c.FinishReason != nil && *c.FinishReason != "" && a.finish == "" {
		a.finish = *c.FinishReason
	}
	for i := range d.ToolCalls {
		a.addCall(&d.ToolCalls[i])
	}
}

// addCall adds to the call that the delta belongs to. Deltas belong together by their index; where a server gives none,
// or the same one to all calls, a new id begins a new call.
func (a *accumulatedChoice) addCall(d *ToolCallDelta) {
	index := int64(-1)
	if d.Index != nil {
		index = *d.Index
	}
	call := a.open
	if index >= 0 {
		call = nil
		for _, c := range a.calls {
			if c.index == index {
				call = c // the latest one with that index
			}
		}
	}
	if call == nil || d.ID != "" && call.call.ID != "" && d.ID != call.call.ID {
		call = &accumulatedCall{index: index}
		a.calls = append(a.calls, call)
	}
	a.open = call
	call.call.ID, call.call.Type = firstText(call.call.ID, d.ID), firstText(call.call.Type, d.Type)
	if d.Custom != nil {
		call.call.Custom = d.Custom
	}
	if call.call.Extra == nil {
		call.call.Extra = d.Extra
	}
	if f := d.Function; f != nil {
		call.name = firstText(call.name, f.Name)
		call.arguments.WriteString(f.Arguments)
	}
}

// Response returns what has been added up so far.
func (a *ChatAccumulator) Response() *ChatResponse {
	r := a.response
	r.Object = "chat.completion"
	r.Choices = make([]ChatChoice, 0, len(a.choices))
	for _, c := range a.choices {
		r.Choices = append(r.Choices, ChatChoice{Index: c.index, Message: c.message(), FinishReason: c.finish})
	}
	return &r
}

func (a *accumulatedChoice) message() Message {
	m := Message{
		Role: firstText(a.role, RoleAssistant), Content: NullContent(), Refusal: a.refusal.String(),
		ReasoningContent: a.reasoning.String(),
	}
	if a.hasContent && (a.content.Len() > 0 || len(a.calls) == 0) {
		m.Content = TextContent(a.content.String())
	}
	for _, c := range a.calls {
		call := c.call
		call.Type = firstText(call.Type, "function")
		if call.Type == "function" {
			call.Function = &FunctionCall{Name: c.name, Arguments: c.arguments.String()}
		}
		m.ToolCalls = append(m.ToolCalls, call)
	}
	return m
}
