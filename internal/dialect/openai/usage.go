package openai

import (
	"math"
	"strconv"
	"strings"

	"github.com/gatewright/gateway"
)

// counts are the numbers of a usage report, as the various servers name them. Those that are absent are negative.
type counts struct {
	prompt, completion, total     int64
	cached, written               int64
	audioIn, imageIn              int64
	reasoning, audioOut, imageOut int64
	reported                      bool
}

// parseUsage sorts a usage report into disjoint buckets. It returns nil when raw reports nothing.
//
// Cached and written tokens are a part of the prompt, audio and image tokens a part of what they are a detail of.
// Reasoning tokens are a part of the completion, unless the total shows that they were added to it (xAI), or that some
// were not reported at all (Gemini's compatible interface). Numbers that contradict one another are clamped.
func parseUsage(raw string) *gateway.Usage {
	var c counts
	s := scanner{text: raw}
	c.scan(&s)
	if s.bad || !c.reported {
		return nil
	}
	return c.sort()
}

func (c *counts) scan(s *scanner) {
	for ok := s.open('{'); ok; ok = s.more('{') {
		switch s.name() {
		case "prompt_tokens":
			c.set(&c.prompt, s.skip())
		case "completion_tokens":
			c.set(&c.completion, s.skip())
		case "total_tokens":
			c.set(&c.total, s.skip())
		case "prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens", "cache_read_input_tokens":
			c.cached = max(c.cached, count(s.skip()))
		case "cache_creation_input_tokens", "cache_write_tokens":
			c.written = max(c.written, count(s.skip()))
		case "reasoning_tokens":
			c.reasoning = max(c.reasoning, count(s.skip()))
		case "prompt_tokens_details":
			c.scanPrompt(s)
		case "completion_tokens_details":
			c.scanCompletion(s)
		default:
			s.skip()
		}
	}
}

func (c *counts) scanPrompt(s *scanner) {
	for ok := s.open('{'); ok; ok = s.more('{') {
		switch s.name() {
		case "cached_tokens":
			c.cached = max(c.cached, count(s.skip()))
		case "cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens":
			c.written = max(c.written, count(s.skip()))
		case "audio_tokens":
			c.audioIn = count(s.skip())
		case "image_tokens":
			c.imageIn = count(s.skip())
		default:
			s.skip()
		}
	}
}

func (c *counts) scanCompletion(s *scanner) {
	for ok := s.open('{'); ok; ok = s.more('{') {
		switch s.name() {
		case "reasoning_tokens":
			c.reasoning = max(c.reasoning, count(s.skip()))
		case "audio_tokens":
			c.audioOut = count(s.skip())
		case "image_tokens":
			c.imageOut = count(s.skip())
		default:
			s.skip()
		}
	}
}

// set notes one of the numbers without which a report is none.
func (c *counts) set(to *int64, raw string) {
	if raw == "" || raw == "null" {
		return
	}
	*to, c.reported = count(raw), true
}

func (c *counts) sort() *gateway.Usage {
	if c.prompt == 0 && c.completion == 0 {
		c.prompt = c.total // Voyage has nothing but the total
	}
	if hidden := c.total - c.prompt - c.completion; hidden > 0 && c.completion > 0 {
		switch c.reasoning {
		case hidden:
			c.completion += hidden
		case 0:
			c.completion += hidden
			c.reasoning = hidden
		}
	}
	var u gateway.Usage
	rest := c.prompt
	u.CacheRead = take(&rest, c.cached)
	u.CacheWrite = take(&rest, c.written)
	u.InputAudio = take(&rest, c.audioIn)
	u.InputImage = take(&rest, c.imageIn)
	u.Input = rest
	rest = c.completion
	u.OutputAudio = take(&rest, c.audioOut)
	u.OutputImage = take(&rest, c.imageOut)
	u.Reasoning = take(&rest, c.reasoning)
	u.Output = rest
	return &u
}

// take takes up to n from rest.
func take(rest *int64, n int64) int64 {
	n = min(n, *rest)
	*rest -= n
	return n
}

// count reads a number of tokens: 0 for what is none, negative, or absurd.
func count(raw string) int64 {
	raw = strings.Trim(raw, `"`)
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return min(max(n, 0), math.MaxInt32*1024)
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f < 0 || f > math.MaxInt32*1024 {
		return 0
	}
	return int64(math.Round(f))
}
