package gateway

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// Facts is what routing, limits and estimates need to know of a request's body. It is learnt by one walk over the
// document, when first asked for, without decoding it.
type Facts struct {
	Messages  int   // chat messages, or embedding inputs
	TextBytes int   // length of all text in messages, instructions and inputs, without inline media
	Images    int   // image parts
	Audio     int   // audio parts
	Files     int   // file parts
	Tools     int   // tools offered
	N         int64 // how many answers are asked for; at least 1
	MaxOutput int64 // the most tokens that one answer may have; 0 when the caller set no bound
	// PromptTokens estimates the prompt's tokens. It is within about 30 % for prose and code; never use it for money.
	PromptTokens int64
}

// What an inline part counts for in estimates. Its base64 text says nothing about its tokens.
const (
	tokensPerMessage = 4
	tokensPerMedia   = 1000
)

// Facts returns what is known of the body. It is not safe to call for the first time from several goroutines.
func (r *Request) Facts() Facts {
	if r.facts == nil {
		f := r.learn()
		r.facts = &f
	}
	return *r.facts
}

func (r *Request) learn() Facts {
	f := Facts{N: 1}
	if r.parse() != nil {
		return f
	}
	var text tokenCounter
	switch r.API {
	case APIEmbeddings:
		if raw, ok := r.object.Get("input"); ok {
			f.learnInput(raw, &text)
		}
	default:
		if raw, ok := r.object.Get("messages"); ok {
			jsonpatch.EachElement(raw, func(message jsontext.Value) bool {
				f.Messages++
				f.learnText(message, &text)
				return true
			})
		}
		if raw, ok := r.object.Get("tools"); ok {
			jsonpatch.EachElement(raw, func(jsontext.Value) bool { f.Tools++; return true })
			text.add(raw)
		}
		f.MaxOutput = max(r.integer("max_completion_tokens"), r.integer("max_tokens"), 0)
		f.N = max(r.integer("n"), 1)
	}
	f.TextBytes = text.bytes
	f.PromptTokens = text.tokens() + int64(f.Messages*tokensPerMessage) +
		int64(f.Images+f.Audio+f.Files)*tokensPerMedia
	return f
}

// learnText walks a message, or a part of one, and counts its text and its media.
func (f *Facts) learnText(value jsontext.Value, text *tokenCounter) {
	switch value.Kind() {
	case '"':
		text.add(value)
	case '[':
		jsonpatch.EachElement(value, func(v jsontext.Value) bool { f.learnText(v, text); return true })
	case '{':
		jsonpatch.EachMember(value, func(name, v jsontext.Value) bool {
			switch string(name) {
			case "image_url":
				f.Images++
			case "input_audio":
				f.Audio++
			case "file":
				f.Files++
			case "type", "role", "id", "tool_call_id", "detail":
			default:
				f.learnText(v, text)
			}
			return true
		})
	}
}

// learnInput counts embedding inputs: a text, texts, a list of tokens, or lists of tokens.
func (f *Facts) learnInput(value jsontext.Value, text *tokenCounter) {
	switch value.Kind() {
	case '"':
		f.Messages++
		text.add(value)
	case '[':
		tokens := false
		jsonpatch.EachElement(value, func(v jsontext.Value) bool {
			if v.Kind() == '0' {
				text.known++
				tokens = true
			} else {
				f.learnInput(v, text)
			}
			return true
		})
		if tokens {
			f.Messages++
		}
	}
}

func (r *Request) integer(name string) int64 {
	raw, ok := r.object.Get(name)
	if !ok || raw.Kind() != '0' {
		return 0
	}
	var n int64
	for _, c := range raw {
		if c < '0' || c > '9' || n > 1<<50 {
			return 0 // a fraction, an exponent, a negative or an absurd number: no bound that could be relied on
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// tokenCounter estimates tokens from text: about four characters of Latin script make a token, and about one of a
// script without spaces.
type tokenCounter struct {
	bytes int
	ascii int
	wide  int
	known int64
}

func (t *tokenCounter) add(raw []byte) {
	t.bytes += len(raw)
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			t.ascii++
			i++
			continue
		}
		r, size := utf8.DecodeRune(raw[i:])
		if r < 0x2E80 { // Cyrillic, Greek, accents: denser than Latin, less than Han
			t.ascii += 2
		} else {
			t.wide++
		}
		i += size
	}
}

func (t *tokenCounter) tokens() int64 {
	return t.known + int64((t.ascii+3)/4) + int64(t.wide)
}
