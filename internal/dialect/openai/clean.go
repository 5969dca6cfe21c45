package openai

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what is shown of an upstream's words.
const maxText = 500

const hidden, hiddenAddress = "***", "[address]"

var (
	// credential finds what looks like a key or token, also when the upstream has masked a part of it.
	credential = regexp.MustCompile(`(?i)\bbearer\s+[^\s"',;]+` +
		`|\b(?:sk|pk|rk|gsk|xai|r8|hf|pplx|ghp)[-_][A-Za-z0-9*_.\-]{4,}` +
		`|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_\-]{20,}|\bya29\.[A-Za-z0-9_\-]+` +
		`|\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]*`)
	link    = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.\-]*://[^\s"'<>)\]]+`)
	address = regexp.MustCompile(`(?i)\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b` +
		`|\[[0-9a-f:.]*:[0-9a-f:.]*\](?::\d+)?` +
		`|\blocalhost(?::\d+)?\b` +
		`|\b(?:[a-z0-9\-]+\.)+(?:internal|local|localdomain|svc|lan|corp|intranet)\b(?::\d+)?`)
)

// clean makes an upstream's words fit for a caller: without secrets, internal addresses and control characters, and
// short. A link to a public page stays, without its query.
func (u Upstream) clean(text string) string {
	if text == "" {
		return ""
	}
	text = text[:min(len(text), 8*maxText)]
	for _, secret := range u.Secrets {
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	if strings.ContainsAny(u.Host, ".:") {
		text = strings.ReplaceAll(text, u.Host, hiddenAddress)
	}
	text = credential.ReplaceAllString(text, hidden)
	text = link.ReplaceAllStringFunc(text, cleanLink)
	text = address.ReplaceAllString(text, hiddenAddress)
	text = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r): // such as marks that turn the direction of writing
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

func cleanLink(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || !strings.Contains(u.Hostname(), ".") {
		return hiddenAddress
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil || address.MatchString(u.Hostname()) {
		return hiddenAddress
	}
	public, _, _ := strings.Cut(link, "?")
	return public
}
