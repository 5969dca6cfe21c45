package gateway

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// Each of these methods and functions decodes or encodes one member of the object that the codec is at.

// text is for a string.
func (c *codec) text(name string, p *string, need bool) { c.textAs(readText, name, p, `""`, need) }

// textOrJSON is for a string that some servers write as the JSON value which it should have been the text of.
func (c *codec) textOrJSON(name string, p *string, need bool) {
	c.textAs(readTextOrJSON, name, p, `""`, need)
}

// textOrNull is for a string that is required and null when it is empty.
func (c *codec) textOrNull(name string, p *string) { c.textAs(readText, name, p, "null", required) }

func (c *codec) textAs(read func(jsontext.Value) string, name string, p *string, empty string, need bool) {
	number := c.member()
	if c.decoding {
		value := c.find(name)
		if value != nil {
			*p = read(value)
		}
		plain := kindOf(value) == '"'
		if *p == "" {
			plain = string(value) == empty
		}
		c.present(number, value, need, *p == "", plain)
		return
	}
	if odd := c.remembered(number); odd != nil && read(odd) == *p {
		c.again(name, odd)
		return
	}
	if *p == "" {
		c.zero(number, name, empty, need)
		return
	}
	c.name(name)
	c.quote(*p)
}

// present notes what the Go value of a decoded member cannot tell. Value is nil if the member is absent; plain says
// that the value is written as we would write it.
func (c *codec) present(number int, value jsontext.Value, need, isZero, plain bool) {
	switch {
	case value != nil && !plain:
		c.keep(number, value)
	case isZero && need == (value == nil):
		c.except(number)
	}
}

func readText(value jsontext.Value) string {
	if kindOf(value) != '"' {
		return ""
	}
	return unquoteText(value)
}

func readTextOrJSON(value jsontext.Value) string {
	switch kindOf(value) {
	case '"':
		return unquoteText(value)
	case 'n':
		return ""
	default:
		return string(value)
	}
}

// unquoteText returns the text of a JSON string. Texts that occur everywhere cost no memory.
func unquoteText(quoted []byte) string {
	inside := quoted[1 : len(quoted)-1]
	switch string(inside) { // no copy: the compiler sees to that
	case "":
		return ""
	case "chat.completion":
		return "chat.completion"
	case "chat.completion.chunk":
		return "chat.completion.chunk"
	case "default":
		return "default"
	case "embedding":
		return "embedding"
	case "function":
		return "function"
	case "image_url":
		return "image_url"
	case "list":
		return "list"
	case "stop":
		return FinishStop
	case "text":
		return "text"
	case "tool_calls":
		return FinishToolCalls
	case "assistant":
		return RoleAssistant
	case "system":
		return RoleSystem
	case "tool":
		return RoleTool
	case "user":
		return RoleUser
	}
	if bytes.IndexByte(inside, '\\') >= 0 {
		inside, _ = jsontext.AppendUnquote(nil, quoted) // no error: the text is valid
	}
	return string(inside)
}

// integer is for a whole number.
func (c *codec) integer(name string, p *int64, need bool) {
	number := c.member()
	if c.decoding {
		value := c.find(name)
		n, plain := readInteger(value)
		*p = n
		c.present(number, value, need, *p == 0, plain)
		return
	}
	if odd := c.remembered(number); odd != nil {
		if n, _ := readInteger(odd); n == *p {
			c.again(name, odd)
			return
		}
	}
	if *p == 0 {
		c.zero(number, name, "0", need)
		return
	}
	c.name(name)
	c.buf = strconv.AppendInt(c.buf, *p, 10)
}

// readInteger returns the number that value is, without its fraction, and 0 for what is no number that fits. Plain says
// that the value is a whole number as we would write it.
func readInteger(value jsontext.Value) (n int64, plain bool) {
	digits := value
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return readLongInteger(value)
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return readLongInteger(value)
		}
		n = n*10 + int64(d-'0')
	}
	if len(digits) < len(value) {
		return -n, n != 0 // -0 is not what we would write
	}
	return n, true
}

func readLongInteger(value jsontext.Value) (n int64, plain bool) {
	if kindOf(value) != '0' {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return n, true
	}
	const limit = 1 << 63
	if f, err := strconv.ParseFloat(string(value), 64); err == nil && f > -limit && f < limit {
		return int64(f), false
	}
	return 0, false
}

// integerPtr is for a whole number for which 0 is not the same as none.
func (c *codec) integerPtr(name string, p **int64) {
	scalar(c, name, p, func(value jsontext.Value) (n int64, ok, plain bool) {
		n, plain = readInteger(value)
		return n, plain || n != 0, plain
	}, func(n int64) { c.buf = strconv.AppendInt(c.buf, n, 10) })
}

// floatPtr is for a number for which 0 is not the same as none.
func (c *codec) floatPtr(name string, p **float64) { scalar(c, name, p, readFloat, c.appendFloat) }

// booleanPtr is for a truth value for which false is not the same as none.
func (c *codec) booleanPtr(name string, p **bool) {
	scalar(c, name, p, func(value jsontext.Value) (b, ok, plain bool) {
		kind := kindOf(value)
		ok = kind == 't' || kind == 'f'
		return kind == 't', ok, ok
	}, func(b bool) { c.buf = strconv.AppendBool(c.buf, b) })
}

// scalar is for a value that is absent when its pointer is nil. Read returns the value of a text, whether it has one,
// and whether write would write it like that.
func scalar[T comparable](c *codec, name string, p **T,
	read func(jsontext.Value) (v T, ok, plain bool), write func(T),
) {
	number := c.member()
	if c.decoding {
		if value := c.find(name); value != nil {
			v, ok, plain := read(value)
			if ok {
				*p = &v
			}
			c.present(number, value, optional, false, plain)
		}
		return
	}
	if odd := c.remembered(number); odd != nil {
		if v, ok, _ := read(odd); ok == (*p != nil) && (!ok || v == **p) {
			c.again(name, odd)
			return
		}
	}
	if *p == nil {
		c.zero(number, name, "", optional)
		return
	}
	c.name(name)
	write(**p)
}

func readFloat(value jsontext.Value) (f float64, ok, plain bool) {
	if kindOf(value) != '0' {
		return 0, false, false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0, false, false
	}
	var own [32]byte
	return f, true, string(formatFloat(own[:0], f)) == string(value)
}

// float is for a number that is required.
func (c *codec) float(name string, p *float64) {
	number := c.member()
	if c.decoding {
		value := c.find(name)
		f, _, plain := readFloat(value)
		*p = f
		c.present(number, value, required, *p == 0, plain)
		return
	}
	if odd := c.remembered(number); odd != nil {
		if f, _, _ := readFloat(odd); f == *p {
			c.again(name, odd)
			return
		}
	}
	if *p == 0 {
		c.zero(number, name, "0", required)
		return
	}
	c.name(name)
	c.appendFloat(*p)
}

// raw is for any JSON value; empty is absent.
func (c *codec) raw(name string, p *jsontext.Value) {
	c.member()
	if c.decoding {
		*p = slices.Clone(c.find(name))
		return
	}
	if len(*p) > 0 {
		c.again(name, *p)
	}
}

// list is for a list of what read can read; nil is absent.
func list[T any](c *codec, name string, p *[]T, need bool,
	read func(jsontext.Value) ([]T, bool), same func(a, b []T) bool, write func(T),
) {
	number := c.member()
	if c.decoding {
		value := c.find(name)
		elements, plain := read(value)
		*p = elements
		c.present(number, value, need, *p == nil, plain)
		return
	}
	if odd := c.remembered(number); odd != nil {
		if was, _ := read(odd); (was == nil) == (*p == nil) && same(was, *p) {
			c.again(name, odd)
			return
		}
	}
	if *p == nil {
		c.zero(number, name, "[]", need)
		return
	}
	c.name(name)
	c.buf = append(c.buf, '[')
	for i, v := range *p {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		write(v)
	}
	c.buf = append(c.buf, ']')
}

// texts is for a list of strings.
func (c *codec) texts(name string, p *[]string) {
	list(c, name, p, optional, readTexts, slices.Equal, c.quote)
}

// oneOrMoreTexts is for a list of strings that may also be one string.
func (c *codec) oneOrMoreTexts(name string, p *[]string) {
	list(c, name, p, optional, func(value jsontext.Value) (texts []string, plain bool) {
		if kindOf(value) == '"' {
			return []string{unquoteText(value)}, false
		}
		return readTexts(value)
	}, slices.Equal, c.quote)
}

// readTexts returns the texts of a list of strings, nil if value is something else.
func readTexts(value jsontext.Value) (texts []string, plain bool) {
	if kindOf(value) != '[' {
		return nil, false
	}
	texts, plain = []string{}, true
	jsonpatch.EachElement(value, func(element jsontext.Value) bool {
		if plain = kindOf(element) == '"'; plain {
			texts = append(texts, unquoteText(element))
		}
		return plain
	})
	if !plain {
		return nil, false
	}
	return texts, true
}

// textMap is for an object whose members are strings; nil is absent.
func (c *codec) textMap(name string, p *map[string]string) { //nolint:gocritic // the map itself is set
	number := c.member()
	if c.decoding {
		if value := c.find(name); value != nil {
			texts, plain := readTextMap(value)
			*p = texts
			c.present(number, value, optional, false, plain)
		}
		return
	}
	if odd := c.remembered(number); odd != nil && *p == nil {
		c.again(name, odd)
		return
	}
	if *p == nil {
		c.zero(number, name, "", optional)
		return
	}
	c.name(name)
	start := len(c.buf)
	for _, key := range slices.Sorted(maps.Keys(*p)) {
		c.buf = append(c.buf, ',')
		c.quote(key)
		c.buf = append(c.buf, ':')
		c.quote((*p)[key])
	}
	if len(c.buf) == start {
		c.buf = append(c.buf, '{')
	}
	c.buf[start] = '{'
	c.buf = append(c.buf, '}')
}

func readTextMap(value jsontext.Value) (texts map[string]string, plain bool) {
	if kindOf(value) != '{' {
		return nil, false
	}
	texts, plain = map[string]string{}, true
	jsonpatch.EachMember(value, func(name, text jsontext.Value) bool {
		if plain = kindOf(text) == '"'; plain {
			texts[string(unescape(name))] = unquoteText(text)
		}
		return plain
	})
	if !plain {
		return nil, false
	}
	return texts, true
}

// objects is for a list of objects. An element that is no object is the zero value, which remembers it; nil is absent.
func objects[T any, P objectPtr[T]](c *codec, name string, p *[]T, need bool) {
	number := c.member()
	if c.decoding {
		value, at := c.locate(name)
		plain := kindOf(value) == '['
		if plain {
			*p = decodeObjects[T, P](c, at)
		}
		c.present(number, value, need, *p == nil, plain)
		return
	}
	switch odd := c.remembered(number); {
	case *p != nil:
		c.name(name)
		encodeObjects[T, P](c, *p)
	case odd != nil:
		c.again(name, odd)
	default:
		c.zero(number, name, "[]", need)
	}
}

func decodeObjects[T any, P objectPtr[T]](c *codec, at int) []T {
	first := len(c.entries)
	c.index(at)
	all := make([]T, len(c.entries)-first)
	for i := range all {
		c.decode(c.entries[first+i].value, P(&all[i]))
	}
	c.entries = c.entries[:first]
	return all
}

func encodeObjects[T any, P objectPtr[T]](c *codec, list []T) {
	c.buf = append(c.buf, '[')
	for i := range list {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.encode(P(&list[i]))
	}
	c.buf = append(c.buf, ']')
}

// pointer is for an object that is absent when its pointer is nil.
func pointer[T any, P objectPtr[T]](c *codec, name string, p **T) {
	number := c.member()
	if c.decoding {
		switch value, at := c.locate(name); kindOf(value) {
		case '{':
			*p = new(T)
			c.decode(at, P(*p))
		case 0: // absent
		default:
			c.keep(number, value)
		}
		return
	}
	switch odd := c.remembered(number); {
	case *p != nil:
		c.name(name)
		c.encode(P(*p))
	case odd != nil:
		c.again(name, odd)
	default:
		c.zero(number, name, "", optional)
	}
}

// inline is for an object that is a value in Go, so that its members can be read without a look at a pointer.
func inline(c *codec, name string, o object, need bool) {
	number := c.member()
	if c.decoding {
		_, at := c.locate(name)
		c.decode(at, o)
		if need == (at == absent) {
			c.except(number)
		}
		return
	}
	except := c.origin.exceptions&(1<<number) != 0
	if need && !except {
		c.name(name)
		c.encode(o)
		return
	}
	// What has nothing to say is left out, unless it was there when it was decoded.
	start, bare, omitted := len(c.buf), c.bare, c.omitted
	c.name(name)
	from := len(c.buf)
	c.bare, c.omitted = true, false
	c.encode(o)
	empty := len(c.buf) == from+len("{}")
	if !empty && c.omitted && !bare {
		c.buf, c.bare = c.buf[:from], false
		c.encode(o)
	}
	if empty && (need || !except) {
		c.buf = c.buf[:start]
	}
	c.bare, c.omitted = bare, omitted || c.omitted
}
