package openai

import (
	"crypto/rand"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/internal/jsonpatch"
)

// The members of chunks that are repaired or made here. All others are kept as they are.
type (
	chunkDoc struct {
		ID      string         `json:"id"`
		Object  string         `json:"object"`
		Created jsontext.Value `json:"created"`
		Model   string         `json:"model"`
		Choices []choiceDoc    `json:"choices"`
		Usage   jsontext.Value `json:"usage,omitzero"`
		Extra   jsontext.Value `json:",embed"`
	}
	choiceDoc struct {
		Index   *int           `json:"index"`
		Delta   deltaDoc       `json:"delta"`
		Message *deltaDoc      `json:"message,omitzero"`
		Finish  *string        `json:"finish_reason"`
		Extra   jsontext.Value `json:",embed"`
	}
	deltaDoc struct {
		Role      string         `json:"role,omitzero"`
		ToolCalls []toolCallDoc  `json:"tool_calls,omitempty"`
		Extra     jsontext.Value `json:",embed"`
	}
	toolCallDoc struct {
		Index    *int           `json:"index"`
		ID       string         `json:"id,omitzero"`
		Type     string         `json:"type,omitzero"`
		Function *functionDoc   `json:"function,omitzero"`
		Extra    jsontext.Value `json:",embed"`
	}
	functionDoc struct {
		Name      string         `json:"name,omitzero"`
		Arguments jsontext.Value `json:"arguments,omitzero"`
		Extra     jsontext.Value `json:",embed"`
	}
)

// repair fills in what strict SDKs miss in the chunks of a stream.
type repair struct {
	upstream Upstream
	id       string
	choices  map[int]*repairedChoice
}

type repairedChoice struct {
	opened bool
	calls  []repairedCall
	open   int // which of the calls goes on; -1 before the first
}

// repairedCall is a tool call: the index and the id that the upstream gave it.
type repairedCall struct {
	index int
	id    string
}

// chunk returns data repaired, or as it is when it cannot be read.
func (r *repair) chunk(data string) string {
	var doc chunkDoc
	if err := json.Unmarshal([]byte(data), &doc); err != nil {
		return data
	}
	if r.id == "" {
		if r.id = doc.ID; r.id == "" {
			r.id = "chatcmpl-" + newID()
		}
	}
	doc.ID = r.id // some servers change it on the way
	if doc.Object == "" {
		doc.Object = "chat.completion.chunk"
	}
	if doc.Model == "" {
		doc.Model = r.upstream.Model
	}
	if doc.Created.Kind() != '0' {
		doc.Created = jsontext.Value("0")
	}
	for i := range doc.Choices {
		r.choice(&doc.Choices[i], i)
	}
	repaired, err := json.Marshal(&doc)
	if err != nil {
		return data
	}
	return string(repaired)
}

func (r *repair) choice(c *choiceDoc, position int) {
	if c.Index == nil {
		c.Index = &position
	}
	if c.Finish != nil && *c.Finish == "" {
		c.Finish = nil
	}
	state := r.choices[*c.Index]
	if state == nil {
		if r.choices == nil {
			r.choices = make(map[int]*repairedChoice)
		}
		state = &repairedChoice{open: -1}
		r.choices[*c.Index] = state
	}
	// The role is said once.
	if c.Delta.Role = ""; !state.opened {
		c.Delta.Role, state.opened = "assistant", true
	}
	for i := range c.Delta.ToolCalls {
		state.toolCall(&c.Delta.ToolCalls[i])
	}
}

// toolCall gives a part of a tool call the index of its call, and a call's first part an id and a type.
func (s *repairedChoice) toolCall(c *toolCallDoc) {
	position := s.find(c)
	first := position < 0
	if first {
		position = s.add(c)
	} else {
		c.ID, c.Type = "", "" // they are said once
	}
	s.open = position
	c.Index = &position
	if c.Function != nil {
		c.Function.repair(first)
	}
}

// add notes a new call and completes its first part.
func (s *repairedChoice) add(c *toolCallDoc) int {
	call := repairedCall{index: -1, id: c.ID}
	if c.Index != nil {
		call.index = *c.Index
	}
	s.calls = append(s.calls, call)
	if c.ID == "" {
		c.ID = "call_" + newID()
	}
	if c.Type == "" && c.Function != nil {
		c.Type = "function"
	}
	return len(s.calls) - 1
}

// repair makes the arguments a string, and leaves out a name that has been said.
func (f *functionDoc) repair(first bool) {
	if !first {
		f.Name = ""
	}
	switch f.Arguments.Kind() {
	case '"':
	case '{', '[':
		quoted, _ := jsontext.AppendQuote(nil, f.Arguments) // never fails: it is valid JSON
		f.Arguments = quoted
	default:
		f.Arguments = nil
		if first {
			f.Arguments = jsontext.Value(`""`)
		}
	}
}

// find returns which call a part belongs to; -1 for a new one. A server that gives every call the same index still
// gives them ids.
func (s *repairedChoice) find(c *toolCallDoc) int {
	for i, call := range s.calls {
		if c.ID != "" && call.id == c.ID {
			return i
		}
	}
	switch {
	case c.ID != "" && (c.Index == nil || s.hasIndex(*c.Index)):
		return -1
	case c.Index != nil:
		for i, call := range slices.Backward(s.calls) {
			if call.index == *c.Index {
				return i
			}
		}
		return -1
	case c.Function != nil && c.Function.Name != "" && c.ID == "":
		return -1 // neither index nor id: a name begins a call
	default:
		return s.open
	}
}

func (s *repairedChoice) hasIndex(index int) bool {
	for _, call := range s.calls {
		if call.index == index {
			return true
		}
	}
	return false
}

func newID() string { return rand.Text()[:24] }

// eventsOf makes the stream that the upstream should have sent of its plain answer: for each choice its role, what it
// says, and its finish, and then the usage report.
func eventsOf(body []byte, wantsUsage bool) []gateway.Event {
	var doc chunkDoc
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil
	}
	choices, usage := doc.Choices, doc.Usage
	doc.Object, doc.Usage = "chat.completion.chunk", nil
	if doc.Created == nil {
		doc.Created = jsontext.Value("0")
	}
	var events []gateway.Event
	add := func(choices ...choiceDoc) {
		doc.Choices = choices
		data, err := json.Marshal(&doc)
		if err != nil {
			return
		}
		c, _ := readChunk(string(data))
		events = append(events, c.event(string(data), wantsUsage, &keeper{}))
	}
	for i, choice := range choices {
		if choice.Index == nil {
			choice.Index = &i
		}
		said := choice.Delta
		if choice.Message != nil {
			said = *choice.Message
		}
		said.Role = ""
		said.Extra = withoutNulls(said.Extra)
		for i := range said.ToolCalls {
			said.ToolCalls[i].Index = &i
		}
		index := choice.Index
		add(choiceDoc{Index: index, Delta: deltaDoc{Role: "assistant"}})
		add(choiceDoc{Index: index, Delta: said, Extra: choice.Extra})
		finish := choice.Finish
		if finish == nil || *finish == "" {
			stop := "stop"
			finish = &stop
		}
		add(choiceDoc{Index: index, Finish: finish})
	}
	if usage.Kind() == '{' {
		doc.Usage = usage
		add()
	}
	return events
}

// withoutNulls takes the members out that are null: in a delta they mean nothing, and some SDKs mind them.
func withoutNulls(object jsontext.Value) jsontext.Value {
	parsed, err := jsonpatch.Parse(object)
	if err != nil {
		return object
	}
	var edits []jsonpatch.Edit
	for _, m := range parsed.Members() {
		if object[m.ValueStart] == 'n' {
			edits = append(edits, jsonpatch.Edit{Name: m.Name})
		}
	}
	return parsed.Apply(edits...)
}
