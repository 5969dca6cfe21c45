package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/gatewright/gateway"
)

// What is said of an attempt whose result nobody knows. Callers look for these words.
const unknownResult = "result unknown, not retried"

// classify says what is known of an attempt that brought no answer, and whether that is only due to an idle connection
// that was dead already.
func (s *sending) classify(caller, ctx context.Context, err error) (failure *gateway.Error, stale bool) {
	if cause := caller.Err(); cause != nil {
		return gateway.AsError(cause), false
	}
	s.mu.Lock()
	conn, reused := s.conn, s.reused
	s.mu.Unlock()
	err = stripURL(err)
	sent := s.whole.Load() && (conn == nil || !writeFailed(conn)) && !refusedStream(err)

	if late, ok := errors.AsType[*timeout](context.Cause(ctx)); ok {
		return late.failure(sent), false
	}
	if sent {
		return &gateway.Error{
			Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_connection_lost",
			Message: "the upstream closed the connection without an answer: " + unknownResult,
			Outcome: gateway.OutcomeUnknown, Err: err,
		}, false
	}
	if conn != nil {
		return notSent("the connection to the upstream broke before the request was sent", err), reused
	}
	return unreachable(err), false
}

// unreachable is the error of an attempt that found no connection.
func unreachable(err error) *gateway.Error {
	var (
		dns         *net.DNSError
		op          *net.OpError
		proxy       *proxyError
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		record      tls.RecordHeaderError
		authority   x509.UnknownAuthorityError
		late        net.Error
	)
	switch {
	case errors.As(err, &proxy) && proxy.status == http.StatusProxyAuthRequired:
		return notSent("the proxy demands other credentials (407)", err)
	case errors.As(err, &proxy):
		return notSent(fmt.Sprintf("the proxy refused to connect to the upstream (%d)", proxy.status), err)
	case errors.Is(err, errProxyAddress):
		return notSent(err.Error(), nil)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return notSent("the proxy could not be reached", err)
	case errors.As(err, &late) && late.Timeout():
		failure := notSent("no connection to the upstream in time", err)
		failure.Kind, failure.Status = gateway.ErrUpstreamTimeout, http.StatusGatewayTimeout
		failure.Code = "upstream_connect_timeout"
		return failure
	case errors.As(err, &dns):
		return notSent("the upstream could not be reached: its host name does not resolve", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return notSent("the upstream could not be reached: it refused the connection", err)
	case errors.As(err, &certificate), errors.As(err, &authority):
		return notSent("the upstream could not be reached: its TLS certificate is not valid", err)
	case errors.As(err, &alert), errors.As(err, &record):
		return notSent("the upstream could not be reached: TLS failed", err)
	default:
		return notSent("the upstream could not be reached", err)
	}
}

func notSent(message string, err error) *gateway.Error {
	return &gateway.Error{
		Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_unreachable", Message: message,
		Outcome: gateway.OutcomeNotSent, Err: err,
	}
}

// refusedStream reports whether an HTTP/2 server said that it did not process the request. net/http would have sent it
// again by itself if it could have read the body once more, and wraps what the server said in no other form than text.
func refusedStream(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "http2: Transport: cannot retry err [") &&
		(strings.Contains(text, "REFUSED_STREAM") || strings.Contains(text, "GOAWAY"))
}

// stripURL takes off what a RoundTripper of a user's may have put around an error: a URL may hold credentials.
func stripURL(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}

// failure is the error of an attempt that brought no answer in time.
func (t *timeout) failure(sent bool) *gateway.Error {
	e := &gateway.Error{
		Kind: gateway.ErrUpstreamTimeout, Status: http.StatusGatewayTimeout, Code: "upstream_timeout",
		Message: "the upstream did not answer in time: " + unknownResult, Outcome: gateway.OutcomeUnknown, Err: t,
	}
	if !sent {
		e.Message, e.Outcome = "the upstream did not take the request in time", gateway.OutcomeNotSent
	}
	switch {
	case t.total:
		e.Code = "upstream_total_timeout"
	case t.phase == connecting:
		e.Code, e.Message = "upstream_connect_timeout", "no connection to the upstream in time"
	}
	return e
}

// classify says what is known of an attempt whose answer broke off.
func (a *Answer) classify(err error) *gateway.Error {
	if cause := a.caller.Err(); cause != nil {
		return gateway.AsError(cause)
	}
	interrupted := a.stream && a.output.Load()
	if late, ok := errors.AsType[*timeout](context.Cause(a.ctx)); ok {
		e := late.failure(true)
		if interrupted {
			e.Kind, e.Outcome = gateway.ErrInterrupted, gateway.OutcomeInterrupted
			e.Message = "the upstream's stream took too long in all"
			if !late.total {
				e.Code, e.Message = "upstream_idle_timeout", "the upstream's stream fell silent"
			}
		}
		return e
	}
	e := &gateway.Error{
		Kind: gateway.ErrUpstream, Status: http.StatusBadGateway, Code: "upstream_connection_lost",
		Message: "the upstream's answer broke off: " + unknownResult, Outcome: gateway.OutcomeUnknown, Err: stripURL(err),
	}
	if a.stream {
		e.Kind, e.Code = gateway.ErrInterrupted, "upstream_stream_truncated"
		e.Message = "the upstream's stream broke off before the answer was complete"
		if interrupted {
			e.Outcome = gateway.OutcomeInterrupted
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Err = io.ErrUnexpectedEOF
	}
	return e
}
