package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/gatewright/gateway"
)

// classify is completed below.
func classify(caller, attempt context.Context, err error, sent bool) *gateway.Error {
	if cause := caller.Err(); cause != nil {
		return gateway.AsError(cause)
	}
	outcome := gateway.OutcomeNotSent
	if sent {
		outcome = gateway.OutcomeUnknown
	}
	var late *timeout
	if errors.As(context.Cause(attempt), &late) {
		return &gateway.Error{
			Kind: gateway.ErrUpstreamTimeout, Status: http.StatusGatewayTimeout, Code: "upstream_timeout",
			Message: "the upstream did not answer in time: result unknown, not retried", Outcome: outcome, Err: late,
		}
	}
	var dns *net.DNSError
	_ = errors.As(err, &dns)
	return &gateway.Error{
		Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_unreachable",
		Message: "the upstream could not be reached", Outcome: outcome, Err: err,
	}
}
