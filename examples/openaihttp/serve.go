package openaihttp

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gatewright/gateway"
)

const (
	contentTypeJSON   = "application/json"
	contentTypeStream = "text/event-stream"
)

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, traceID: traceID(r.Header), stall: h.stall}
	defer func() {
		cause := recover()
		switch cause {
		case nil:
			return
		case http.ErrAbortHandler:
			panic(cause)
		}
		h.logger.ErrorContext(r.Context(), "panic while serving", "trace_id", a.traceID, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		if a.wroteHeader {
			panic(http.ErrAbortHandler) // cut the connection: what has been sent is not a whole answer
		}
		a.fail(&gateway.Error{
			Kind: gateway.ErrInternal, Status: http.StatusInternalServerError, Code: "internal_error",
			Message: "the gateway failed while handling the call",
		})
	}()
	h.serve(a, r)
}

// endpoint is what a path stands for.
type endpoint struct {
	methods string // as in an Allow header
	serve   func(*answer, *http.Request, gateway.Caller)
	public  bool // asks for no key
}

func (e endpoint) allows(method string) bool {
	for allowed := range strings.SplitSeq(e.methods, ", ") {
		if method == allowed {
			return true
		}
	}
	return false
}

const modelPrefix = "/v1/models/" // an id, which may have slashes, comes after it

func (h *Handler) routes() map[string]endpoint {
	const get, post = "GET, HEAD", "POST"
	model := func(api gateway.API) func(*answer, *http.Request, gateway.Caller) {
		return func(w *answer, r *http.Request, c gateway.Caller) { h.call(w, r, c, api) }
	}
	return map[string]endpoint{
		"/v1/chat/completions": {methods: post, serve: model(gateway.APIChat)},
		"/v1/embeddings":       {methods: post, serve: model(gateway.APIEmbeddings)},
		"/v1/models":           {methods: get, serve: h.models},
		modelPrefix:            {methods: get, serve: h.model},
		"/health":              {methods: get, serve: h.health, public: true},
		"/ready":               {methods: get, serve: h.ready, public: true},
		"/admin/stats":         {methods: get, serve: h.stats},
		"/admin/explain":       {methods: post, serve: h.explain},
	}
}

// endpoint returns what a path stands for, and the path in its plain spelling.
func (h *Handler) endpoint(at string) (e endpoint, where string, ok bool) {
	if e, ok = h.endpoints[at]; ok && at != modelPrefix {
		return e, at, true
	}
	where = path.Clean("/" + at)
	if strings.HasPrefix(where, modelPrefix) {
		return h.endpoints[modelPrefix], where, true
	}
	e, ok = h.endpoints[where]
	return e, where, ok
}

func (h *Handler) serve(w *answer, r *http.Request) {
	e, where, ok := h.endpoint(r.URL.Path)
	admin := isAdmin(where)
	if !admin && h.cors(w, r) {
		return
	}
	caller := h.caller
	if !e.public && !h.open {
		key, err := h.authenticate(r, admin)
		if err != nil {
			refuse(w, r, err)
			return
		}
		caller = key.caller()
	}
	switch {
	case !ok:
		refuse(w, r, &gateway.Error{
			Kind: gateway.ErrInvalidRequest, Status: http.StatusNotFound, Code: "not_found",
			Message: "there is nothing at " + quoted(r.URL.Path),
		})
	case !e.allows(r.Method):
		w.Header().Set("Allow", e.methods)
		refuse(w, r, &gateway.Error{
			Kind: gateway.ErrInvalidRequest, Status: http.StatusMethodNotAllowed, Code: "method_not_allowed",
			Message: quoted(r.Method) + " is not allowed here; use " + strings.ReplaceAll(e.methods, ", ", " or "),
		})
	default:
		e.serve(w, r, caller)
	}
}

// isAdmin reports whether a path belongs to the admin routes, in whatever spelling: those are closed by default.
func isAdmin(where string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(where, "/"), "/")
	return strings.EqualFold(first, "admin")
}

// authenticate returns the key of a request, or why it is refused.
func (h *Handler) authenticate(r *http.Request, admin bool) (*Key, error) {
	if len(h.keys.byHash) == 0 && h.others == nil {
		return nil, &gateway.Error{
			Kind: gateway.ErrNotConfigured, Status: http.StatusServiceUnavailable, Code: "gateway_not_configured",
			Message: "the gateway has no keys: configure master.keys or keys",
		}
	}
	key := h.keys.find(r)
	if key == nil && h.others != nil {
		var err error
		if key, err = h.others.Authenticate(r); err != nil {
			return nil, err
		}
	}
	switch {
	case key == nil:
		return nil, &gateway.Error{
			Kind: gateway.ErrUnauthorized, Status: http.StatusUnauthorized, Code: "invalid_api_key",
			Message: "no valid gateway key was presented; send one as Authorization: Bearer KEY",
		}
	case admin && !key.Admin:
		return nil, &gateway.Error{
			Kind: gateway.ErrForbidden, Status: http.StatusForbidden, Code: "admin_key_required",
			Message: "this route needs an admin key",
		}
	}
	return key, nil
}

// call serves one model call.
func (h *Handler) call(w *answer, r *http.Request, caller gateway.Caller, api gateway.API) {
	held := reserved{room: h.bodies.room}
	defer held.release()
	body, err := h.bodies.read(w, r, &held)
	if err != nil {
		refuse(w, r, err)
		return
	}
	req, failure := newRequest(api, body, r, caller, w.traceID)
	if failure != nil {
		w.fail(failure)
		return
	}
	if req.Stream && h.alive > 0 && w.stream == nil {
		h.streamAlive(w, r, req)
		return
	}
	res, failure := h.client.Do(r.Context(), req)
	switch {
	case failure != nil:
		w.fail(failure)
	case res.Stream != nil && w.stream != nil:
		startStream(w, res.Record)
		w.stream(res)
	case res.Stream != nil:
		h.stream(w, res)
	default:
		h.plain(w, res)
	}
}

// newRequest makes a call's request of an HTTP request and its body.
func newRequest(api gateway.API, body []byte, r *http.Request, caller gateway.Caller, id string) (*gateway.Request, error) {
	req, err := gateway.NewRequest(api, body)
	if err != nil {
		return nil, err
	}
	req.Caller, req.TraceID = caller, id
	req.Header, req.Query = forwardHeader(r.Header), forwardQuery(r.URL.RawQuery)
	return req, nil
}

func (h *Handler) plain(w *answer, res *gateway.Response) {
	header := w.Header()
	header["Content-Type"] = jsonContentType
	header["Content-Length"] = []string{strconv.Itoa(len(res.Body))}
	describe(header, res.Record)
	w.WriteHeader(http.StatusOK)
	_ = w.send(res.Body) // a client that is gone needs no answer
}

func (h *Handler) health(w *answer, _ *http.Request, _ gateway.Caller) {
	var aliases []string
	for _, m := range h.client.Models(gateway.Caller{}) {
		aliases = append(aliases, m.ID)
	}
	w.json(struct {
		Status string   `json:"status"`
		Models []string `json:"models"`
	}{"ok", aliases})
}

func (h *Handler) ready(w *answer, _ *http.Request, _ gateway.Caller) {
	if err := h.client.Ready(); err != nil {
		w.Header().Set("Connection", "close")
		w.fail(err)
		return
	}
	w.json(struct {
		Status string `json:"status"`
	}{"ready"})
}

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func newModel(m gateway.Model) model { return model{m.ID, "model", m.Created.Unix(), "gateway"} }

func (h *Handler) models(w *answer, _ *http.Request, caller gateway.Caller) {
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, m := range h.client.Models(caller) {
		list.Data = append(list.Data, newModel(m))
	}
	w.json(list)
}

func (h *Handler) model(w *answer, r *http.Request, caller gateway.Caller) {
	id := strings.TrimPrefix(r.URL.Path, modelPrefix)
	for _, m := range h.client.Models(caller) {
		if m.ID == id {
			w.json(newModel(m))
			return
		}
	}
	w.fail(&gateway.Error{
		Kind: gateway.ErrUnknownModel, Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
		Message: "the model " + quoted(id) + " does not exist or you do not have access to it",
	})
}

func (h *Handler) stats(w *answer, _ *http.Request, _ gateway.Caller) {
	w.json(h.client.Stats())
}

func (h *Handler) explain(w *answer, r *http.Request, caller gateway.Caller) {
	held := reserved{room: h.bodies.room}
	defer held.release()
	body, err := h.bodies.read(w, r, &held)
	if err != nil {
		refuse(w, r, err)
		return
	}
	req, failure := newRequest(gateway.APIChat, body, r, caller, w.traceID)
	if failure != nil {
		w.fail(failure)
		return
	}
	explanation, failure := h.client.Explain(r.Context(), req)
	if failure != nil {
		w.fail(failure)
		return
	}
	w.json(explanation)
}

// cors answers a preflight, and reports whether it did. Other answers get the headers that let the page read them.
func (h *Handler) cors(w *answer, r *http.Request) bool {
	if len(h.origins) == 0 {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !h.origins[origin] && !h.origins["*"] {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", exposedHeaders)
	if r.Method != http.MethodOptions {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	if wanted := r.Header.Get("Access-Control-Request-Headers"); wanted != "" {
		header.Set("Access-Control-Allow-Headers", wanted)
	}
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// answer is a ResponseWriter that knows its call's trace id and whether the header has gone out.
type answer struct {
	http.ResponseWriter

	traceID     string
	wroteHeader bool
	stall       time.Duration           // how long the client may take no byte; 0 is for ever
	armed       time.Time               // when it was last put off
	stream      func(*gateway.Response) // takes over a stream; nil: it is written here
}

// Unwrap lets http.ResponseController find what it controls.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answer) WriteHeader(status int) {
	w.wroteHeader = true
	if header := w.Header(); header[headerTraceID] == nil {
		setTraceID(header, w.traceID)
	}
	w.arm()
	w.ResponseWriter.WriteHeader(status)
}

// send writes a piece of the answer. The client has a bounded time to take it, anew for each 16 KiB.
func (w *answer) send(p []byte) error {
	for len(p) > 0 {
		w.arm()
		n := min(len(p), maxWrite)
		if _, err := w.Write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// flush writes a piece of the answer and sees to it that it goes out now.
func (w *answer) flush(p []byte) error {
	if err := w.send(p); err != nil {
		return err
	}
	w.arm()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// arm puts off the end of the client's time, unless it was put off a moment ago. net/http lifts it after the answer.
func (w *answer) arm() {
	moment := w.stall / 32
	now := time.Now()
	if w.stall <= 0 || now.Sub(w.armed) < moment {
		return
	}
	w.armed = now
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(now.Add(w.stall + moment))
}

// json answers with a value.
func (w *answer) json(value any) {
	body, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	w.Header()["Content-Type"] = jsonContentType
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
}

// fail answers with an error in OpenAI's form.
func (w *answer) fail(err error) {
	e := gateway.AsError(err)
	status := e.Status
	if status < 400 || status > 599 { // an error of somebody's own that says none
		status = http.StatusInternalServerError
	}
	header := w.Header()
	header["Content-Type"] = jsonContentType
	switch {
	case e.RetryAfter > 0:
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		header.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
		header.Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfter.Milliseconds(), 10))
	case status == http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	}
	if len(e.Attempts) > 0 {
		header.Set(headerAttempts, strconv.Itoa(len(e.Attempts)))
		if e.Provider != "" {
			header.Set(headerProvider, e.Provider)
		}
		if e.Model != "" {
			header.Set(headerModel, e.Model)
		}
		// The gateway has tried what may be tried: a client that tries again as well multiplies the load.
		header.Set("X-Should-Retry", "false")
	}
	if errors.Is(e, gateway.ErrClosed) {
		header.Set("Connection", "close")
	}
	body := errorBody(e)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
