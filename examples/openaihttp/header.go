package openaihttp

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway"
)

// The headers of an answer, in the canonical form of net/http.
const (
	headerTraceID          = "X-Gateway-Trace-Id"
	headerProvider         = "X-Gateway-Provider"
	headerModel            = "X-Gateway-Model"
	headerAttempts         = "X-Gateway-Attempts"
	headerLatency          = "X-Gateway-Latency-Ms"
	headerCost             = "X-Gateway-Cost-Usd"
	trailerPrompt          = "X-Gateway-Prompt-Tokens"
	trailerCompletion      = "X-Gateway-Completion-Tokens"
	trailerOutcome         = "X-Gateway-Outcome"
	headerRequestID        = "X-Request-Id" // OpenAI's SDKs read this one
	headerAnthropicRequest = "Request-Id"   // Anthropic's reads this one
)

const exposedHeaders = "X-Gateway-Trace-ID, X-Gateway-Provider, X-Gateway-Model, X-Gateway-Attempts, " +
	"X-Gateway-Latency-MS, X-Gateway-Cost-USD, X-Request-ID, Request-ID, Retry-After, Retry-After-Ms, X-Should-Retry"

//nolint:gochecknoglobals // never written to; shared so that an answer need not allocate it
var jsonContentType = []string{contentTypeJSON}

func setTraceID(header http.Header, id string) {
	ids := []string{id}
	header[headerTraceID], header[headerRequestID], header[headerAnthropicRequest] = ids, ids, ids
}

// describe puts what the record says into an answer's header.
func describe(header http.Header, r *gateway.Record) {
	setTraceID(header, r.TraceID)
	values := make([]string, 0, 5) // one allocation for all of them
	set := func(name, value string) {
		values = append(values, value)
		header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	set(headerProvider, r.Provider)
	set(headerModel, r.ModelUpstream)
	set(headerAttempts, strconv.Itoa(max(len(r.Attempts), 1)))
	set(headerLatency, strconv.FormatInt(r.LatencyMS, 10))
	if r.CostUSD != nil {
		set(headerCost, r.CostUSD.StringFixed(6))
	}
}

// traceID returns the caller's own id for the call if it sent a sane one, and else a fresh one.
func traceID(header http.Header) string {
	if id := header.Get("X-Request-ID"); isSane(id) {
		return id
	}
	// traceparent is version-traceid-parentid-flags (https://www.w3.org/TR/trace-context/).
	if parts := strings.Split(header.Get("Traceparent"), "-"); len(parts) >= 4 && len(parts[1]) == 32 &&
		isSane(parts[1]) && strings.Trim(parts[1], "0") != "" {
		return parts[1]
	}
	return gateway.NewTraceID()
}

func isSane(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// forwarded are the caller's headers that an upstream may see.
//
//nolint:gochecknoglobals // a table that never changes
var forwarded = [...]string{
	"Traceparent", "Tracestate", "Openai-Beta", "Anthropic-Beta", "Anthropic-Version",
}

func forwardHeader(from http.Header) http.Header {
	var to http.Header
	for _, name := range forwarded {
		if values := from[name]; len(values) > 0 {
			if to == nil {
				to = make(http.Header, len(forwarded))
			}
			to[name] = values
		}
	}
	return to
}

// forwardQuery returns the query for the upstream, without what may be a credential for the gateway.
func forwardQuery(raw string) string {
	if raw == "" {
		return ""
	}
	var kept []string
	for pair := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if unescaped, err := url.QueryUnescape(name); err == nil {
			name = unescaped
		}
		switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
		case "key", "api-key", "apikey", "access-token", "token", "":
		default:
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// errorBody is OpenAI's error object.
func errorBody(e *gateway.Error) []byte {
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	o := object{Message: e.Message, Type: e.ErrorType()}
	if o.Message == "" {
		o.Message = e.Kind.Error()
	}
	if e.Param != "" {
		o.Param = &e.Param
	}
	if e.Code != "" {
		o.Code = &e.Code
	}
	body, err := json.Marshal(map[string]object{"error": o})
	if err != nil { // a message that is not UTF-8
		return []byte(`{"error":{"message":"the call failed","type":"server_error","param":null,"code":null}}`)
	}
	return body
}

func quoted(name string) string {
	const limit = 128
	if len(name) > limit {
		name = name[:limit] + "…"
	}
	return strconv.QuoteToGraphic(strings.ToValidUTF8(name, "?"))
}
