package openai

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what is shown of an upstream's words.
const maxText = 500

var (
	credential = regexp.MustCompile(`(?i)\bbearer\s+[^\s"',;]+|\b(?:sk|pk|rk|gsk|xai|r8|hf|pplx|key|tok|AKIA|ASIA|AIza|ya29)[-_.]?[A-Za-z0-9*_\-.]{12,}|\bAIza[A-Za-z0-9_\-]{20,}`)
	address    = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.\-]*://[^\s"'<>)\]]+|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\[[0-9a-f:.]*:[0-9a-f:.]*\](?::\d+)?|\blocalhost(?::\d+)?\b|\b[a-z0-9\-.]+\.(?:internal|local|svc|lan|corp)\b(?:[a-z0-9\-.]*)(?::\d+)?`)
)

// clean makes an upstream's words fit for a caller: without secrets, addresses and control characters, and short.
func (u Upstream) clean(text string) string {
	if text == "" {
		return ""
	}
	text = text[:min(len(text), 8*maxText)]
	for _, secret := range u.Secrets {
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	text = credential.ReplaceAllString(text, "***")
	text = address.ReplaceAllString(text, "[address]")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
