package openai

import (
	"fmt"
	"net/http"

	"github.com/gatewright/gateway"
)

// DecodeResponse learns from a plain answer with status 200 what the gateway has to know. The body itself is passed on
// as it is. An answer that is an error in disguise is returned as one; one that cannot be read has an unknown result.
func (u Upstream) DecodeResponse(body []byte) (*gateway.Response, *gateway.Error) {
	c, ok := readChunk(asString(body))
	switch {
	case !ok:
		return nil, u.unreadable(body)
	case c.err != "" && !c.hasChoices, c.failed:
		err := u.errorInside(asString(body))
		err.UpstreamStatus = http.StatusOK
		return nil, err
	}
	response := &gateway.Response{Body: body, OutputBytes: c.outputBytes, KeyFingerprint: u.Fingerprint}
	if c.usage != "" {
		response.Usage = parseUsage(c.usage)
	}
	return response, nil
}

// errorInside makes an error document that came with status 200 an error.
func (u Upstream) errorInside(document string) *gateway.Error {
	f := readFailure(document)
	err := u.classify(statusOf(f), f)
	if err.Status >= http.StatusInternalServerError && err.Kind == gateway.ErrUpstream {
		err.Message = fmt.Sprintf("the upstream %q failed: %s", u.Provider, orNoReason(u.clean(f.message)))
	}
	return err
}

func (u Upstream) unreadable(body []byte) *gateway.Error {
	what := "an answer that is not a JSON document"
	switch f := readFailure(asString(body[:min(len(body), maxText)])); {
	case len(body) == 0:
		what = "an empty answer"
	case f.html:
		what = "an HTML page"
	}
	return &gateway.Error{
		Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_invalid_response",
		Message:  fmt.Sprintf("the upstream %q returned %s with status 200: result unknown, not retried", u.Provider, what),
		Outcome:  gateway.OutcomeUnknown,
		Provider: u.Provider, Model: u.Model, KeyFingerprint: u.Fingerprint, UpstreamStatus: http.StatusOK,
	}
}

func orNoReason(said string) string {
	if said == "" {
		return "no reason given"
	}
	return said
}
