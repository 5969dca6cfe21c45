package openai

import (
	"strings"

	"github.com/gatewright/gateway"
)

// chunk is what one event of a stream says.
type chunk struct {
	hasChoices  bool // there is a choice in it
	output      bool
	outputBytes int
	finishes    int    // how many choices end with it
	usage       string // the raw report; "" if there is none
	err         string // the raw "error" member; "" if there is none
	failed      bool   // the chunk is an error in another form: an answer of a server that has no "error" member

	// Where the text stands that the chunk adds to the answer, without its quotes; more than one: then it is no template.
	textFrom, textTo, texts int

	// Where a "usage":null stands, to be cut out with one comma; both 0 if there is none.
	cutFrom, cutTo int
}

// readChunk reads a chunk. It is false when data is not a JSON object.
func readChunk(data string) (c chunk, ok bool) {
	s := scanner{text: data}
	if s.space() != '{' {
		return c, false
	}
	known := false
	comma := 0 // where the comma before the member stands
	for more := s.open('{'); more; more = s.more('{') {
		s.space()
		start := s.pos
		switch name := s.name(); name {
		case "choices":
			known = true
			c.choices(&s)
		case "usage":
			known = true
			if usage := s.skip(); usage != "null" {
				c.usage = usage
			} else if comma > 0 {
				c.cutFrom, c.cutTo = comma, s.pos
			} else if s.space() == ',' {
				c.cutFrom, c.cutTo = start, s.pos+1
			}
		case "error":
			if value := s.skip(); isSet(value) {
				c.err = value
			}
		case "x_groq":
			known = true
			c.groq(&s)
		case "base_resp":
			if baseFailed(s.skip()) {
				c.failed = true
			}
		case "object":
			known = true
			if s.skip() == `"error"` {
				c.failed = true
			}
		default:
			s.skip()
		}
		if s.space() == ',' {
			comma = s.pos
		}
	}
	if s.bad || s.space() != 0 {
		return c, false
	}
	if !known && c.err == "" {
		c.failed = c.failed || isBareError(data)
	}
	return c, true
}

func (c *chunk) choices(s *scanner) {
	for more := s.open('['); more; more = s.more('[') {
		c.hasChoices = true
		for more := s.open('{'); more; more = s.more('{') {
			switch s.name() {
			case "delta", "message":
				c.delta(s)
			case "text":
				c.add(s.skip())
			case "finish_reason":
				if reason := s.skip(); len(reason) > 2 && reason[0] == '"' {
					c.finishes++
				}
			case "usage": // Moonshot
				if usage := s.skip(); usage != "null" && c.usage == "" {
					c.usage = usage
				}
			default:
				s.skip()
			}
		}
	}
}

func (c *chunk) delta(s *scanner) {
	reasoning := 0 // the same text may come under several names
	for more := s.open('{'); more; more = s.more('{') {
		switch s.name() {
		case "content", "refusal":
			value := s.skip()
			c.add(value)
			c.noteText(s, value)
		case "reasoning", "reasoning_content", "reasoning_details":
			value := s.skip()
			c.output = c.output || isSet(value)
			c.noteText(s, value)
			reasoning = max(reasoning, contentSize(value))
		case "tool_calls":
			c.toolCalls(s)
		case "function_call":
			c.function(s)
		case "audio":
			c.output = isSet(s.skip()) || c.output
		default:
			s.skip()
		}
	}
	c.outputBytes += reasoning
}

// noteText notes where a text stands that was just skipped.
func (c *chunk) noteText(s *scanner, value string) {
	if len(value) > 1 && value[0] == '"' {
		c.textFrom, c.textTo = s.pos-len(value)+1, s.pos-1
		c.texts++
	}
}

// add counts a value as output unless it says nothing.
func (c *chunk) add(value string) {
	if isSet(value) {
		c.output = true
		c.outputBytes += contentSize(value)
	}
}

func (c *chunk) toolCalls(s *scanner) {
	for more := s.open('['); more; more = s.more('[') {
		c.output = true
		for more := s.open('{'); more; more = s.more('{') {
			switch s.name() {
			case "function", "custom":
				c.function(s)
			default:
				s.skip()
			}
		}
	}
}

func (c *chunk) function(s *scanner) {
	for more := s.open('{'); more; more = s.more('{') {
		switch s.name() {
		case "name", "arguments", "input":
			c.add(s.skip())
		default:
			s.skip()
		}
	}
}

func (c *chunk) groq(s *scanner) {
	for more := s.open('{'); more; more = s.more('{') {
		switch s.name() {
		case "usage":
			if usage := s.skip(); usage != "null" && c.usage == "" {
				c.usage = usage
			}
		case "error":
			if value := s.skip(); isSet(value) && c.err == "" {
				c.err = value
			}
		default:
			s.skip()
		}
	}
}

// template remembers a chunk. Most chunks of a stream differ from the one before in nothing but a short text, and then
// need not be read anew.
type template struct {
	before, after string // the text
	chunk         chunk
	misses        int // how many chunks in a row were not like the one before them
}

// maxMisses ends the remembering in streams in which no chunk is like another, as padding differs in each.
const maxMisses = 8

// read reads a chunk like readChunk.
func (t *template) read(data string) (c chunk, ok bool) {
	size := len(data) - len(t.before) - len(t.after)
	if t.before != "" && size > 0 && strings.HasPrefix(data, t.before) && strings.HasSuffix(data, t.after) {
		text := data[len(t.before) : len(t.before)+size]
		if strings.IndexByte(text, '"') < 0 && strings.IndexByte(text, '\\') < 0 {
			t.misses = 0
			c = t.chunk
			c.output, c.outputBytes = true, size
			if c.cutTo > c.textFrom {
				c.cutFrom += size - (c.textTo - c.textFrom)
				c.cutTo += size - (c.textTo - c.textFrom)
			}
			return c, true
		}
	}
	c, ok = readChunk(data)
	if ok && t.misses < maxMisses && c.texts == 1 && c.outputBytes == c.textTo-c.textFrom && c.outputBytes > 0 &&
		c.usage == "" && c.err == "" && !c.failed {
		data := strings.Clone(data)
		*t = template{before: data[:c.textFrom], after: data[c.textTo:], chunk: c, misses: t.misses + 1}
	}
	return c, ok
}

// contentSize returns the length of the text of a string, or of an array of parts, where it is as good as that of the
// array.
func contentSize(value string) int {
	if strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") {
		return len(value)
	}
	return textSize(value)
}

// event is what the gateway makes of the chunk. It keeps a copy of the data, without a "usage":null when the caller did
// not ask for usage.
func (c *chunk) event(data string, wantsUsage bool, keep *keeper) gateway.Event {
	event := gateway.Event{Output: c.output, OutputBytes: c.outputBytes, Finished: c.finishes > 0}
	if c.usage != "" {
		event.Usage = parseUsage(c.usage)
	}
	event.Hidden = !wantsUsage && event.Usage != nil && !c.hasChoices
	if wantsUsage {
		event.Data = keep.strings(data, "")
	} else {
		event.Data = keep.strings(data[:c.cutFrom], data[c.cutTo:]) // both are 0 when there is nothing to cut
	}
	return event
}

// keeper makes copies of texts that lie in a buffer: those of a burst in one piece of memory, which is never used again.
type keeper struct {
	free []byte

	lend bool // no copies are wanted: the text is used at once
	lent []byte
}

// expect tells how many bytes are going to be kept soon.
func (k *keeper) expect(size int) {
	if size > len(k.free) {
		k.free = make([]byte, size)
	}
}

// strings returns a copy of a and b, one behind the other.
func (k *keeper) strings(a, b string) string {
	switch {
	case k.lend && a == "":
		return b
	case k.lend && b == "":
		return a
	case k.lend:
		k.lent = append(append(k.lent[:0], a...), b...)
		return asString(k.lent)
	}
	size := len(a) + len(b)
	k.expect(size)
	kept := k.free[:size:size]
	k.free = k.free[size:]
	copy(kept[copy(kept, a):], b)
	return asString(kept)
}

// isLiveness reports whether data only says that the server is alive.
func isLiveness(data string) bool {
	switch data[0] {
	case '{', '[', '"':
		return data == "{}"
	}
	trimmed := strings.TrimSpace(data)
	return trimmed == "" || trimmed[0] == ':' || trimmed == "null" || trimmed == "{}"
}
