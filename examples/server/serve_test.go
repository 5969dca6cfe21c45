package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gatewright/gateway/gatewaytest"
)

const streamBody = `{"model":"m","stream":true,"messages":[]}`

// serving is a configuration with one upstream, the alias m and the key k.
func serving(t *testing.T, upstream *gatewaytest.Upstream, more string) string {
	t.Helper()
	return write(t, "g.yaml", "master: {keys: [k]}\nproviders: [{name: cloud, type: openai, base_url: \""+upstream.URL()+"\"}]\n"+
		"models: [{alias: m, candidates: [{provider: cloud, model: m}]}]\n"+more)
}

// heldStream is an upstream whose streams go on after their first event when release is closed.
func heldStream(t *testing.T, release <-chan struct{}) *gatewaytest.Upstream {
	t.Helper()
	return gatewaytest.NewUpstream(t, gatewaytest.Sequence(
		gatewaytest.Headers(200, "Content-Type", "text/event-stream"), gatewaytest.Opening(), gatewaytest.Events(1),
		gatewaytest.WaitFor(release), gatewaytest.Events(1), gatewaytest.Finish("stop"), gatewaytest.Done()))
}

// begin begins a streamed call and waits for its first line.
func begin(t *testing.T, base string) *bufio.Reader {
	t.Helper()
	res := send(t, http.MethodPost, base+"/v1/chat/completions", "k", streamBody)
	t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewReader(res.Body)
	if line, err := lines.ReadString('\n'); err != nil || res.StatusCode != 200 {
		t.Fatalf("%d %s (%v)", res.StatusCode, line, err)
	}
	return lines
}

// awaitDraining waits until the server says that it is not ready.
func awaitDraining(t *testing.T, base string) {
	t.Helper()
	for {
		if status, _ := get(t, base+"/ready", ""); status == http.StatusServiceUnavailable {
			return
		}
	}
}

func TestServesAConfiguration(t *testing.T) {
	upstream := gatewaytest.NewUpstream(t, gatewaytest.Answer("hi"))
	sys := with(t, map[string]string{"GW_KEY": "upstream-secret", "GATEWAY_API_KEY": "not-for-this-file"})
	file := write(t, "g.yaml", `
master: {keys: [admin-secret]}
providers: [{name: cloud, type: openai, base_url: "`+upstream.URL()+`", keys: [env:GW_KEY]}]
models: [{alias: chat-smart, candidates: [{provider: cloud, model: real, price: {input: "2", output: "8"}}]}]
keys: [{name: bot, secret: bot-secret, models: [other]}]
log: {format: json}
`)
	base, out, stop := start(t, sys, "-config", file)
	body := `{"model":"chat-smart","messages":[]}`
	for key, want := range map[string]int{"admin-secret": 200, "bot-secret": 404, "wrong": 401, "not-for-this-file": 401} {
		if status, answer := post(t, base+"/v1/chat/completions", key, body); status != want {
			t.Errorf("as %s: %d %s, want %d", key, status, answer, want)
		}
	}
	received := upstream.Requests()
	if len(received) != 1 || received[0].Header.Get("Authorization") != "Bearer upstream-secret" || string(received[0].Body) != `{"model":"real","messages":[]}` {
		t.Errorf("the upstream received %+v", received)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, line := range []string{`"msg":"listening"`, `"msg":"call"`, `"cost_usd":`, `"msg":"draining"`, `"msg":"stopped"`} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the log lacks %s:\n%s", line, out)
		}
	}
	for _, secret := range []string{"admin-secret", "bot-secret", "upstream-secret", "not-for-this-file"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%s is printed:\n%s", secret, out)
		}
	}
}

func TestExampleConfigurationServes(t *testing.T) {
	base, _, _ := start(t, nothing(), "-config", "gateway.yaml")
	if status, body := get(t, base+"/health", ""); status != 200 || !strings.Contains(body, `"demo"`) {
		t.Errorf("%d %s", status, body)
	}
}

// Without keys every call is refused, and what needs no key says nothing of the upstreams.
func TestWithoutKeysCallsAreRefused(t *testing.T) {
	file := write(t, "g.yaml", "listen: 0.0.0.0:0\nproviders: [{name: hidden, type: openai, base_url: \"http://internal.test\"}]\nmodels: [{alias: m, candidates: [{provider: hidden, model: hidden-model}]}]\n")
	base, out, _ := start(t, nothing(), "-config", file, "-without-keys", "-listen", "0.0.0.0:0")
	for _, path := range []string{"/v1/models", "/v1/chat/completions", "/admin/stats", "/admin/", "/elsewhere"} {
		if status, body := get(t, base+path, "any"); status != 503 || !strings.Contains(body, `"code":"gateway_not_configured"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/health", "/ready"} {
		status, body := get(t, base+path, "")
		if status != 200 || strings.Contains(body, "hidden") || strings.Contains(body, "internal") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if !strings.Contains(out.String(), keylessNote) {
		t.Errorf("not said:\n%s", out)
	}
}

// Beyond the bound a connection waits until another one closes.
func TestConnectionsAreBounded(t *testing.T) {
	upstream := gatewaytest.NewUpstream(t, gatewaytest.Answer("hi"))
	base, _, _ := start(t, nothing(), "-config", serving(t, upstream, "server: {max_connections: 1}\n"))
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ask := func(conn net.Conn) error {
		if _, err := io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	first := dial()
	if err := ask(first); err != nil {
		t.Fatal(err)
	}
	second := dial()
	waiting := make(chan error, 1)
	go func() { waiting <- ask(second) }()
	for range 500 { // far longer than an answer takes
		if err := ask(first); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-waiting:
		t.Fatalf("a second connection is served beside the first (%v)", err)
	default:
	}
	first.Close()
	if err := <-waiting; err != nil {
		t.Errorf("after the first connection has closed: %v", err)
	}
}

func TestDrainEndsStreamsWithAnErrorEvent(t *testing.T) {
	upstream := gatewaytest.NewUpstream(t, gatewaytest.Stream("one").ThenHang())
	base, out, stop := start(t, nothing(), "-config", serving(t, upstream, "server: {drain: 10ms}\n"))
	stream := begin(t, base)
	stopped := make(chan int, 1)
	go func() { stopped <- stop() }()
	body, err := io.ReadAll(stream)
	if err != nil || !strings.Contains(string(body), `"code":"gateway_closed"`) || strings.Contains(string(body), "[DONE]") {
		t.Errorf("the stream in flight: %s (%v), want an error event", body, err)
	}
	if code := <-stopped; code != 0 {
		t.Errorf("exit code %d", code)
	}
	<-upstream.Canceled()
	// The recorder outlives the last call.
	if text := out.String(); !strings.Contains(text, `"code":"gateway_closed"`) || strings.Index(text, `"msg":"call"`) > strings.Index(text, `"msg":"stopped"`) {
		t.Errorf("the cut call is not recorded before the end:\n%s", text)
	}
}

// Plain calls in flight are answered in the drain too, and those that end in it are recorded.
func TestDrainAnswersPlainCalls(t *testing.T) {
	release := make(chan struct{})
	upstream := gatewaytest.NewUpstream(t, gatewaytest.Answer("hi").After(release))
	base, out, stop := start(t, nothing(), "-config", serving(t, upstream, ""))
	const calls = 20
	answers := make(chan int, calls)
	for range calls {
		go func() {
			status, _ := post(t, base+"/v1/chat/completions", "k", `{"model":"m","messages":[]}`)
			answers <- status
		}()
	}
	if err := upstream.Await(t.Context(), func(traffic gatewaytest.Traffic) bool { return traffic.Whole == calls }); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan int, 1)
	go func() { stopped <- stop() }()
	awaitDraining(t, base)
	close(release)
	for range calls {
		if status := <-answers; status != 200 {
			t.Errorf("a call in flight: %d", status)
		}
	}
	if code := <-stopped; code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(out.String(), `"msg":"call"`); n != calls {
		t.Errorf("%d calls are recorded, want %d", n, calls)
	}
}

// An answer that is complete when the drain time is over still reaches a client that is slow to read it.
func TestLastWritesReachTheClient(t *testing.T) {
	large := `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("x", 16<<20) + `"},"finish_reason":"stop"}]}`
	upstream := gatewaytest.NewUpstream(t, gatewaytest.AnswerJSON(large))
	base, _, stop := start(t, nothing(), "-config", serving(t, upstream, "server: {drain: 0s}\n"))
	res := send(t, http.MethodPost, base+"/v1/chat/completions", "k", `{"model":"m","messages":[]}`)
	stopped := make(chan int, 1)
	go func() { stopped <- stop() }()
	for { // until it takes no connections, and so is about to end
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			break
		}
		conn.Close()
	}
	if status, body := read(t, res); status != 200 || len(body) < len(large) {
		t.Errorf("%d and %d bytes, want %d", status, len(body), len(large))
	}
	if code := <-stopped; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
