package openai

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatewright/gateway"
)

// Upstream says whose answers are read, for error messages.
type Upstream struct {
	Provider    string
	Model       string
	Fingerprint string   // of the key that was used
	Secrets     []string // texts that must not be shown to anyone
	Host        string   // of the upstream, which is not shown either
}

// failure is an error answer of whatever shape.
type failure struct {
	message string
	typ     string
	code    string
	param   string
	html    bool
}

// DecodeError makes an answer with another status than 200 an error.
func (u Upstream) DecodeError(status int, h http.Header, body []byte) *gateway.Error {
	f := readFailure(asString(body))
	if strings.Contains(h.Get("Content-Type"), "html") {
		f.html = true
	}
	err := u.classify(status, f)
	err.UpstreamStatus = status
	err.RetryAfter = RetryAfter(h, time.Now())
	if strings.EqualFold(h.Get("X-Should-Retry"), "false") {
		err.NoRetry = true
	}
	return err
}

// classify says what a failure with the given HTTP status means.
func (u Upstream) classify(status int, f failure) *gateway.Error {
	e := &gateway.Error{
		Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_error",
		Outcome: gateway.OutcomeRejected, Provider: u.Provider, Model: u.Model, KeyFingerprint: u.Fingerprint,
	}
	said := u.clean(f.message)
	switch {
	case f.html:
		said = fmt.Sprintf("upstream returned HTML, status %d", status)
	case said == "":
		said = cmp.Or(http.StatusText(status), "no reason given")
	}
	name := strconv.Quote(u.Provider)
	e.Message = fmt.Sprintf("the upstream %s failed with status %d: %s", name, status, said)

	switch {
	case !f.html && isQuota(status, f):
		e.Kind, e.Code = gateway.ErrUpstreamQuota, "upstream_quota_exhausted"
		e.Message = "the gateway's account at the upstream " + name + " is exhausted: " + said
	case !f.html && isContentFilter(status, f):
		u.callersFault(e, http.StatusBadRequest, f, said)
		e.Kind, e.Code = gateway.ErrContentFilter, cmp.Or(e.Code, "content_filter")
	case !f.html && isContextLength(status, f):
		u.callersFault(e, http.StatusBadRequest, f, said)
		e.Kind, e.Code = gateway.ErrContextLength, "context_length_exceeded"
	case status == http.StatusTooManyRequests:
		e.Kind, e.Status, e.Code = gateway.ErrUpstreamLimit, http.StatusTooManyRequests, "upstream_rate_limited"
		e.Outcome = gateway.OutcomeRefused
		e.Message = "the upstream " + name + " limits the gateway's rate: " + said
		e.NoRetry = contains(f.message, "request too large")
	case status == http.StatusUnauthorized, status == http.StatusForbidden && !f.html:
		e.Kind, e.Code = gateway.ErrUpstreamAuth, "upstream_auth"
		e.Message = "the upstream " + name + " refused the gateway's credentials"
		e.Err = fmt.Errorf("upstream status %d: %s", status, said)
	case status == http.StatusBadRequest, status == http.StatusNotFound,
		status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		u.callersFault(e, status, f, said)
	case status >= 300 && status < 400:
		e.Message = "the upstream " + name + " answered with a redirect, which is not followed: check its base URL"
	case status == http.StatusServiceUnavailable, status == 529, status == 498:
		e.Status, e.Code, e.Outcome = http.StatusServiceUnavailable, "upstream_overloaded", gateway.OutcomeRefused
	case status == http.StatusGatewayTimeout:
		e.Status, e.Outcome = http.StatusGatewayTimeout, gateway.OutcomeRefused
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		e.Outcome = gateway.OutcomeRefused
	}
	return e
}

// callersFault passes on what the upstream said about the caller's document.
func (u Upstream) callersFault(e *gateway.Error, status int, f failure, said string) {
	e.Kind, e.Status, e.Outcome = gateway.ErrInvalidRequest, status, gateway.OutcomeRejected
	e.Type, e.Code, e.Param = u.clean(f.typ), u.clean(f.code), u.clean(f.param)
	e.Message = said
}

func isQuota(status int, f failure) bool {
	if status == http.StatusPaymentRequired {
		return true
	}
	switch f.code {
	case "insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
		"project_spend_limit_exceeded", "organization_usage_limit_exceeded", "billing_hard_limit_reached",
		"billing_not_active", "insufficient_balance", "Arrearage", "1113":
		return true
	}
	if f.typ == "insufficient_quota" {
		return true
	}
	if status != http.StatusTooManyRequests && status != http.StatusForbidden && status != http.StatusBadRequest {
		return false
	}
	return contains(f.message, "insufficient balance", "insufficient credit", "exceeded your current quota",
		"out of credits", "no credits", "credits have been", "purchase more credits", "monthly included credits",
		"monthly spending limit", "credit balance is too low", "daily quota", "quota exceeded for the day")
}

func isContentFilter(status int, f failure) bool {
	switch f.code {
	case "content_filter", "content_policy_violation", "data_inspection_failed", "moderation_blocked",
		"ResponsibleAIPolicyViolation":
		return true
	}
	if status != http.StatusBadRequest && status != http.StatusForbidden {
		return false
	}
	return contains(f.message, "content management policy", "content_policy", "content policy",
		"rejected as a result of our safety system", "requires moderation", "flagged as potentially")
}

func isContextLength(status int, f failure) bool {
	switch {
	case f.code == "context_length_exceeded", f.typ == "exceed_context_size_error", f.code == "exceed_context_size_error":
		return true
	case status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge &&
		status != http.StatusUnprocessableEntity && status != http.StatusInternalServerError:
		return false
	case contains(f.message, "per min", "per day", "per hour", "rate limit", "quota", "tpm"):
		return false
	}
	return contains(f.message, "context length", "context window", "maximum context", "context size",
		"prompt is too long", "input is too long", "exceed context limit", "maximum prompt length",
		"maximum number of tokens allowed", "range of input length", "too many tokens", "please reduce the length") ||
		contains(f.message, "input token count") && contains(f.message, "exceeds the maximum")
}

// contains reports whether text has one of the phrases, which are in lower case.
func contains(text string, phrases ...string) bool {
	text = strings.ToLower(text)
	for _, phrase := range phrases {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// readFailure reads an error body in any of the shapes that servers give it.
func readFailure(body string) failure {
	body = strings.TrimSpace(body)
	switch {
	case body == "":
		return failure{}
	case body[0] == '<':
		return failure{html: true}
	case body[0] == '{', body[0] == '[', body[0] == '"':
		if f, ok := readFailureValue(body, 0); ok {
			return f
		}
	}
	return failure{message: strings.Clone(body[:min(len(body), maxText)])}
}

// maxNested is how deep an error within an error is looked for.
const maxNested = 8

// readFailureValue reads a JSON value that may be an error.
func readFailureValue(raw string, depth int) (f failure, ok bool) {
	if depth > maxNested || raw == "" {
		return f, false
	}
	s := scanner{text: raw}
	switch s.space() {
	case '"':
		inner := text(s.skip())
		if strings.HasPrefix(inner, "{") { // JSON within a string, as OpenRouter's metadata.raw is
			if f, ok := readFailureValue(inner, depth+1); ok {
				return f, true
			}
		}
		return failure{message: inner, html: strings.HasPrefix(strings.TrimSpace(inner), "<")}, inner != "" && !s.bad
	case '[':
		if !s.open('[') {
			return f, false
		}
		return readFailureValue(s.skip(), depth+1)
	case '{':
	default:
		return f, false
	}
	return readFailureObject(&s, depth)
}

// readFailureObject reads an object that may be an error.
func readFailureObject(s *scanner, depth int) (f failure, ok bool) {
	var nested []string // names and values of what may hold the error itself
	for more := s.open('{'); more; more = s.more('{') {
		switch name := s.name(); name {
		case "error", "errors", "detail", "metadata", "base_resp", "raw", "innererror":
			if value := s.skip(); isSet(value) {
				nested = append(nested, name, value)
			}
		case "message", "msg", "status_msg", "error_description":
			if value := s.skip(); strings.HasPrefix(value, `"`) {
				f.message = cmp.Or(f.message, text(value))
			} else if isSet(value) {
				nested = append(nested, name, value)
			}
		case "type":
			f.typ = text(s.skip())
		case "status": // Google's name for it
			f.typ = cmp.Or(f.typ, text(s.skip()))
		case "code", "status_code":
			f.code = cmp.Or(f.code, word(s.skip()))
		case "param":
			f.param = text(s.skip())
		case "loc": // of FastAPI: the path to the member at fault
			path := strings.NewReplacer(`"`, "", ",", ".", "[", "", "]", "", " ", "").Replace(s.skip())
			f.param = strings.TrimPrefix(path, "body.")
		default:
			s.skip()
		}
	}
	if s.bad {
		return failure{}, false
	}
	for i := 0; i < len(nested); i += 2 {
		if inner, ok := readFailureValue(nested[i+1], depth+1); ok {
			f = f.with(nested[i], inner)
		}
	}
	return f, f.message != "" || f.code != "" || f.typ != "" || f.html
}

// with returns what f and the error within it say together. What is inside is nearer to the truth, but may say less.
func (f failure) with(name string, inner failure) failure {
	if name == "metadata" && f.message != "" && inner.message != "" { // OpenRouter: who failed, and why
		inner.message = f.message + ": " + inner.message
	}
	return failure{
		message: cmp.Or(inner.message, f.message), typ: cmp.Or(inner.typ, f.typ), code: cmp.Or(inner.code, f.code),
		param: cmp.Or(inner.param, f.param), html: inner.html,
	}
}

// word reads a code: a string, or a number.
func word(raw string) string {
	if s := text(raw); s != "" {
		return s
	}
	if raw == "null" || raw == "" || raw[0] == '{' || raw[0] == '[' || raw[0] == '"' {
		return ""
	}
	return strings.Clone(raw)
}

// baseFailed reads MiniMax's base_resp, in which 0 is success.
func baseFailed(raw string) bool {
	s := scanner{text: raw}
	for more := s.open('{'); more; more = s.more('{') {
		if s.name() == "status_code" {
			return isSet(s.skip())
		}
		s.skip()
	}
	return false
}

// isBareError reports whether an object that has none of the members of an answer is an error without an "error".
func isBareError(raw string) bool {
	s := scanner{text: raw}
	for more := s.open('{'); more; more = s.more('{') {
		switch s.name() {
		case "message", "detail", "msg":
			return isSet(s.skip())
		default:
			s.skip()
		}
	}
	return false
}

// statusOf returns the HTTP status that an error within a stream or within an answer with status 200 stands for.
func statusOf(f failure) int {
	if n, err := strconv.Atoi(f.code); err == nil && n >= 400 && n < 600 {
		return n
	}
	switch {
	case contains(f.code+" "+f.typ, "rate_limit", "too_many_requests", "resource_exhausted"):
		return http.StatusTooManyRequests
	case contains(f.code+" "+f.typ, "overloaded", "unavailable"):
		return http.StatusServiceUnavailable
	case contains(f.code+" "+f.typ, "invalid_request", "badrequest", "invalid_argument", "context_length", "content_filter"):
		return http.StatusBadRequest
	case contains(f.code+" "+f.typ, "invalid_api_key", "authentication", "permission"):
		return http.StatusUnauthorized
	case contains(f.code+" "+f.typ, "not_found"):
		return http.StatusNotFound
	default:
		return http.StatusBadGateway
	}
}
