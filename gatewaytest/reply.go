package gatewaytest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatewright/gateway"
)

// Reply is a whole answer, as a document or as a stream, or a refusal: a step for a [Provider] and for an [Upstream].
// It is a value: its With… and Then… methods return a changed copy.
type Reply struct {
	deltas      []string
	body        string // instead of deltas, when it is not empty
	contentType string // of body
	status      int
	header      http.Header
	id          string
	usage       *gateway.Usage
	finish      string
	dones       int
	after       <-chan struct{}
	then        *Step // instead of the stream's end
}

// Answer answers with text: with a document when the request asks for one, and with a stream of a single delta when
// it asks for a stream. It reports no usage unless [Reply.WithUsage] says so.
func Answer(text string) Reply { return Stream(text) }

// Stream answers with these pieces of text, one delta each, between an opening event that names the role and an event
// that finishes the answer. A request for a document gets the whole text.
func Stream(deltas ...string) Reply {
	return Reply{deltas: deltas, status: http.StatusOK, finish: "stop", dones: 1}
}

// AnswerJSON answers with a document as it is, whatever the request asks for.
func AnswerJSON(document string) Reply {
	return Reply{body: document, contentType: "application/json", status: http.StatusOK}
}

// Status refuses with an HTTP status and an error document as OpenAI writes it. Played by a Provider it is the error
// that a provider makes of such an answer.
func Status(code int) Reply {
	kind := "server_error"
	if code < http.StatusInternalServerError {
		kind = "invalid_request_error"
	}
	text := http.StatusText(code)
	if text == "" {
		text = "Status " + strconv.Itoa(code)
	}
	return Reply{body: errorDocument(text, kind, ""), contentType: "application/json", status: code}
}

// WithUsage reports usage: in the document, and on a stream in a last event if the request asks for it.
func (r Reply) WithUsage(u gateway.Usage) Reply {
	r.usage = &u
	return r
}

// WithHeader adds a header to the answer.
func (r Reply) WithHeader(name, value string) Reply {
	r.header = r.header.Clone()
	if r.header == nil {
		r.header = make(http.Header)
	}
	r.header.Add(name, value)
	return r
}

// WithRetryAfter adds a Retry-After header in any of its forms.
func (r Reply) WithRetryAfter(value string) Reply { return r.WithHeader("Retry-After", value) }

// WithBody answers with other content than the step's own, such as a proxy's HTML page.
func (r Reply) WithBody(contentType, body string) Reply {
	r.contentType, r.body = contentType, body
	return r
}

// WithID sets the id of the answer. By default it differs for every call, Provider and Upstream.
func (r Reply) WithID(id string) Reply {
	r.id = id
	return r
}

// WithFinish sets the finish reason, "stop" by default. An empty one leaves the event that finishes a stream out, as an
// upstream does that breaks off with a clean end.
func (r Reply) WithFinish(reason string) Reply {
	r.finish = reason
	return r
}

// WithDone sets how many [DONE] end a stream of an Upstream: 1 by default.
func (r Reply) WithDone(n int) Reply {
	r.dones = n
	return r
}

// After holds the answer back until ch is closed or has a value for it. The caller may go away meanwhile.
func (r Reply) After(ch <-chan struct{}) Reply {
	r.after = ch
	return r
}

// ThenHang lets a stream fall silent after its deltas. A request for a document gets no answer at all.
func (r Reply) ThenHang() Reply {
	step := Hang()
	r.then = &step
	return r
}

// ThenPanic panics after a stream's deltas, or instead of the document.
func (r Reply) ThenPanic(v any) Reply {
	step := Panic(v)
	r.then = &step
	return r
}

// ThenFail lets a stream fail after its deltas: a Provider's with a copy of err, an Upstream's with an event that holds
// the error. A request for a document fails likewise; an Upstream refuses it with err's status.
func (r Reply) ThenFail(err *gateway.Error) Reply {
	document := errorDocument(err.Message, err.ErrorType(), err.Code)
	r.then = &Step{
		do: Fail(err).Do,
		serve: func(w http.ResponseWriter, req *http.Request) {
			if exchangeFrom(req.Context()).stream {
				writeEvents(w, "data: "+document+"\n\n")
				return
			}
			writeDocument(w, max(err.Status, http.StatusBadRequest), "application/json", document)
		},
	}
	return r
}

// Do implements [gateway.Handler].
func (r Reply) Do(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	if !wait(ctx, r.after) {
		return nil, ctx.Err()
	}
	x := *exchangeFrom(ctx)
	x.learn(req)
	if r.id != "" {
		x.id = r.id
	}
	switch {
	case r.status >= http.StatusBadRequest:
		return nil, r.refusal()
	case x.stream && r.body == "":
		return &gateway.Response{Header: r.header.Clone(), Stream: gateway.NewStream(r.events(ctx, req, &x))}, nil
	case r.then != nil:
		return r.then.do(ctx, req)
	}
	res := &gateway.Response{Header: r.header.Clone(), Body: []byte(r.body)}
	if r.body == "" {
		res.Body = []byte(x.document(r.text(), r.finish, r.usage))
		res.OutputBytes = len(r.text())
	}
	if r.usage != nil {
		u := *r.usage
		res.Usage = &u
	}
	return res, nil
}

// events is the stream as a provider's dialect makes it: without framing, and with what it has learnt.
func (r Reply) events(ctx context.Context, req *gateway.Request, x *exchange) *eventScript {
	events := []gateway.Event{{Data: x.opening()}}
	for _, text := range r.deltas {
		events = append(events, gateway.Event{Data: x.delta(text), Output: text != "", OutputBytes: len(text)})
	}
	if r.then == nil {
		if r.finish != "" {
			events = append(events, gateway.Event{Data: x.chunk(`{}`, r.finish), Finished: true})
		}
		if r.usage != nil {
			u := *r.usage
			events = append(events, gateway.Event{Data: x.usageChunk(&u), Usage: &u, Hidden: !x.usage})
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	return &eventScript{ctx: ctx, cancel: cancel, req: req, events: events, then: r.then, finished: r.finish != ""}
}

func (r Reply) text() string { return strings.Join(r.deltas, "") }

// refusal is the error that a provider makes of a refusing answer.
func (r Reply) refusal() *gateway.Error {
	e := failure(gateway.OutcomeRejected)
	e.Message, e.Status, e.UpstreamStatus = "gatewaytest: refused", r.status, r.status
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Kind, e.Code, e.Status = gateway.ErrUpstreamAuth, "upstream_auth", http.StatusBadGateway
	case http.StatusTooManyRequests:
		e.Kind, e.Code, e.Outcome = gateway.ErrUpstreamLimit, "upstream_rate_limited", gateway.OutcomeRefused
	case http.StatusServiceUnavailable, 529:
		e.Kind, e.Code, e.Outcome = gateway.ErrUpstream, "upstream_overloaded", gateway.OutcomeRefused
		e.Status = http.StatusServiceUnavailable
	case http.StatusGatewayTimeout:
		e.Kind, e.Code, e.Outcome = gateway.ErrUpstream, "upstream_error", gateway.OutcomeRefused
	default:
		if r.status >= http.StatusInternalServerError {
			e.Kind, e.Code, e.Outcome = gateway.ErrUpstream, "upstream_error", gateway.OutcomeRefused
			e.Status = http.StatusBadGateway
		}
	}
	if seconds, err := strconv.ParseFloat(r.header.Get("Retry-After"), 64); err == nil {
		if e.RetryAfter = time.Duration(seconds * float64(time.Second)); e.RetryAfter == 0 {
			e.RetryAfter = -1
		}
	}
	return e
}

// ServeHTTP implements [http.Handler].
func (r Reply) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ctx := req.Context()
	if !wait(ctx, r.after) {
		return
	}
	x := *exchangeFrom(ctx)
	if r.id != "" {
		x.id = r.id
	}
	maps.Copy(w.Header(), r.header)
	switch {
	case r.body != "" || r.status >= http.StatusBadRequest:
		writeDocument(w, r.status, r.contentType, r.body)
	case x.stream:
		r.writeStream(w, req, &x)
	case r.then != nil:
		r.then.serve(w, req)
	default:
		writeDocument(w, r.status, "application/json", x.document(r.text(), r.finish, r.usage))
	}
}

func (r Reply) writeStream(w http.ResponseWriter, req *http.Request, x *exchange) {
	writeEvents(w, data(x.opening()))
	for _, text := range r.deltas {
		writeEvents(w, data(x.delta(text)))
	}
	if r.then != nil {
		r.then.serve(w, req)
		return
	}
	if r.finish != "" {
		writeEvents(w, data(x.chunk(`{}`, r.finish)))
	}
	if r.usage != nil && x.usage {
		writeEvents(w, data(x.usageChunk(r.usage)))
	}
	for range r.dones {
		writeEvents(w, data("[DONE]"))
	}
}

// wait returns when ch, if there is one, is closed or has a value, and false when ctx has ended.
func wait(ctx context.Context, ch <-chan struct{}) bool {
	if ch != nil {
		select {
		case <-ch:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// eventScript is a Provider's stream.
type eventScript struct {
	ctx      context.Context //nolint:containedctx // the stream's own, which ends with Close
	cancel   context.CancelFunc
	req      *gateway.Request
	events   []gateway.Event
	then     *Step
	finished bool
}

// Next implements [gateway.EventReader].
func (s *eventScript) Next() (gateway.Event, error) {
	if err := s.ctx.Err(); err != nil {
		return gateway.Event{}, err
	}
	if len(s.events) > 0 {
		event := s.events[0]
		s.events = s.events[1:]
		return event, nil
	}
	if s.then != nil {
		_, err := s.then.do(s.ctx, s.req)
		return gateway.Event{}, err
	}
	if !s.finished {
		return gateway.Event{}, failure(gateway.OutcomeInterrupted)
	}
	return gateway.Event{}, io.EOF
}

// Buffered tells a writer that Next will not block.
func (s *eventScript) Buffered() bool { return len(s.events) > 0 }

// Close implements [gateway.EventReader].
func (s *eventScript) Close() error {
	s.cancel()
	return nil
}
