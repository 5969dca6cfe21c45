package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/gatewaytest"
)

// output collects what the server prints and tells when it listens.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan string // the address, once
}

var listening = regexp.MustCompile(`interface on (http://[^/]+)/v1`)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if m := listening.FindSubmatch(p); m != nil {
		o.ready <- string(m[1])
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func nothing() system {
	return system{
		getenv: func(string) string { return "" },
		probe:  func(context.Context, string, string) ([]string, error) { return nil, errors.New("not there") },
	}
}

// start runs the server until the test ends, or until stop is called, which returns the exit code.
func start(t *testing.T, sys system, args ...string) (base string, out *output, stop func() int) {
	t.Helper()
	out = &output{ready: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), out, out, sys)
	}()
	stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { stop() })
	select {
	case base = <-out.ready:
	case c := <-code:
		code <- c
		t.Fatalf("the server ended with %d:\n%s", c, out)
	}
	return base, out, stop
}

func TestNothingConfigured(t *testing.T) {
	_, out, stop := start(t, nothing())
	curls := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(out.String(), -1)
	if len(curls) != 2 {
		t.Fatalf("%d curl lines in:\n%s", len(curls), out)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED the lines that the server prints: curl is not installed")
	}
	for i, want := range []string{`"content":"Hello, gateway"`, "data: [DONE]"} {
		got, err := exec.CommandContext(t.Context(), "sh", "-c", curls[i]).Output()
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s\n%s (%v), want %s", curls[i], got, err, want)
		}
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestDetectedProvidersBecomeAliases(t *testing.T) {
	sys := nothing()
	sys.getenv = func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k2", "ANTHROPIC_API_KEY": "k3", "GATEWAY_API_KEY": "mine"}[name]
	}
	t.Setenv("OPENAI_API_KEY", "k")
	sys.probe = func(_ context.Context, base, key string) ([]string, error) {
		switch {
		case base == "https://api.openai.com/v1" && key == "k":
			return []string{"gpt-4o", "o3"}, nil
		case base == ollama && key == "":
			return []string{"qwen3:8b"}, nil
		default:
			return nil, errors.New("unreachable")
		}
	}
	base, out, _ := start(t, sys)
	got := get(t, base+"/v1/models", "mine")
	for _, alias := range []string{"demo", "openai/gpt-4o", "openai/o3", "ollama/qwen3:8b"} {
		if !strings.Contains(got, `"id":"`+alias+`"`) {
			t.Errorf("no alias %s in %s", alias, got)
		}
	}
	for _, note := range []string{"groq: GROQ_API_KEY is set, but the list of models could not be had; skipped", "anthropic: ANTHROPIC_API_KEY is set"} {
		if !strings.Contains(out.String(), note) {
			t.Errorf("not said: %s\n%s", note, out)
		}
	}
}

func get(t *testing.T, url, key string) string {
	t.Helper()
	res := send(t, http.MethodGet, url, key, "")
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func send(t *testing.T, method, url, key, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCheck(t *testing.T) {
	t.Setenv("GW_KEY", "k")
	tests := []struct{ name, file, text, want string }{
		{
			"good YAML", "g.yaml", "providers: [{name: a, type: echo}]\nmodels: [{alias: x, candidates: [{provider: a, model: m, price: {input: 2.50}}]}]\n",
			"FILE is valid: 1 providers, 1 aliases, 0 keys\n",
		},
		{"good JSON", "g.json", `{"providers":[{"name":"a","type":"echo"}],"master":{"keys":["env:GW_KEY"]}}`, "FILE is valid: 1 providers, 0 aliases, 1 keys\n"},
		{
			"everything at once", "b.yaml", `listen: 9000
providers:
  - name: cloud
    type: opnai
    base_url: https://x.test
  - name: local
    type: openai
    colour: red
models:
  - alias: x
    candidates:
      - provider: clod
        model: m
`, `FILE:1: listen: must be a string, not a number
FILE:8: providers[1].colour: unknown member; known are name, type, base_url, keys, headers, timeouts, max_concurrency, proxy, quirks
`,
		},
		{
			"meaning", "b.yaml", "providers:\n- {name: a, type: echo}\nmodels:\n- alias: x\n  candidates:\n  - provider: clod\n    model: m\n- alias: y\n  strategy: fastest\n  candidates: [{provider: a, model: m}]\n",
			"FILE:6: models[0].candidates[0].provider: there is no provider \"clod\"\nFILE:9: models[1].strategy: unknown strategy \"fastest\"; known is failover\n",
		},
		{"duplicate", "b.yaml", "log: {}\nlog: {}\n", "FILE: line 2: the member \"log\" stands in line 1 already\n"},
		{"variable", "b.yaml", "log: {}\nmaster:\n  keys:\n  - env:GW_UNSET\n  - ${GW_UNSET}\n", "FILE:5: master.keys[1]: the environment variable GW_UNSET is not set; set it, or write ${GW_UNSET:-default}\n"},
		{"yes is a word", "b.yaml", "log: {format: yes}\n", "FILE:1: log.format: unknown value \"yes\"; known are json, text\n"},
		{"two documents", "b.yaml", "log: {}\n---\nlog: {}\n", "FILE: there is more than one document in the file\n"},
		{"empty", "b.yaml", "", "FILE: the file is empty\n"},
		{"not supported yet", "b.yaml", "log: {}\ncache: {enabled: true}\n", "FILE:2: cache: is not supported by this version of the gateway; remove it\n"},
		{
			"flat", "providers.json", `[
 {"alias":"chat","base_url":"https://x.test/v1","upstream_model":"m","api_key_env":"GW_KEY","input_price_per_million":2,"output_price_per_million":8.123456789012345678,
  "max_concurrency":4,"timeout_seconds":30,"retries":3,"backoff_base_seconds":0.5}]`,
			"FILE is a flat list of providers; each entry becomes a provider and an alias\nFILE is valid: 1 providers, 1 aliases, 0 keys\n",
		},
		{
			"flat without its key", "providers.json", "[\n {\"alias\":\"a\",\"base_url\":\"https://x.test\",\"upstream_model\":\"m\",\"api_key_env\":\"\"},\n {\"alias\":\"chat\",\"base_url\":\"https://x.test/v1\",\"upstream_model\":\"m\",\n  \"api_key_env\":\"GW_UNSET\"}]",
			"FILE:4: providers[1].keys[0]: the environment variable GW_UNSET is not set\n",
		},
		{"flat with something else", "providers.json", `{"providers":[{"alias":"a","colour":1}]}`, "FILE:1: providers[0]: not an entry of a flat provider list: colour: unknown object member name\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := write(t, test.file, test.text)
			var out bytes.Buffer
			code := run(t.Context(), []string{"-check", "-config", file}, &out, &out, nothing())
			got := strings.ReplaceAll(out.String(), file, "FILE")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if good := strings.Contains(test.want, "is valid"); good != (code == 0) {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestExampleConfigurationIsValid(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), []string{"-check", "-config", "gateway.yaml"}, &out, &out, nothing()); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}

// The configuration in the README is valid too.
func TestReadmeConfigurationIsValid(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the README has no configuration")
	}
	for _, name := range []string{"GATEWAY_API_KEY", "OPENAI_API_KEY", "SUPPORT_BOT_KEY"} {
		t.Setenv(name, "k")
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"-check", "-config", write(t, "readme.yaml", text)}, &out, &out, nothing()); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}

func TestFlatPricesAreExact(t *testing.T) {
	upstream := gatewaytest.NewUpstream(t, gatewaytest.AnswerJSON(`{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000000,"completion_tokens":1000000,"total_tokens":2000000}}`))
	t.Setenv("GW_KEY", "upstream-secret")
	file := write(t, "providers.json", `{"providers":[{"alias":"chat","base_url":"`+upstream.URL()+`","upstream_model":"m","api_key_env":"GW_KEY","input_price_per_million":0.1,"output_price_per_million":0.2}]}`)
	l, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	price := l.config.Models[0].Candidates[0].Price
	if got := price.Input.Decimal.Add(price.Output.Decimal).String(); got != "0.3" {
		t.Errorf("0.1 and 0.2 are %s", got)
	}
}

func TestServesAConfiguration(t *testing.T) {
	upstream := gatewaytest.NewUpstream(t, gatewaytest.Answer("hi"))
	t.Setenv("GW_KEY", "upstream-secret")
	file := write(t, "g.yaml", `
master: {keys: [admin-secret]}
providers: [{name: cloud, type: openai, base_url: "`+upstream.URL()+`", keys: [env:GW_KEY]}]
models: [{alias: chat-smart, candidates: [{provider: cloud, model: real, price: {input: "2", output: "8"}}]}]
keys: [{name: bot, secret: bot-secret, models: [other]}]
log: {format: json}
`)
	base, out, stop := start(t, nothing(), "-config", file)
	body := `{"model":"chat-smart","messages":[]}`
	for key, want := range map[string]int{"admin-secret": 200, "bot-secret": 404, "wrong": 401} {
		res := send(t, http.MethodPost, base+"/v1/chat/completions", key, body)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("as %s: %d, want %d", key, res.StatusCode, want)
		}
	}
	received := upstream.Requests()
	if len(received) != 1 || received[0].Header.Get("Authorization") != "Bearer upstream-secret" || string(received[0].Body) != `{"model":"real","messages":[]}` {
		t.Errorf("the upstream received %+v", received)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, secret := range []string{"admin-secret", "bot-secret", "upstream-secret"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%s is printed:\n%s", secret, out)
		}
	}
}

func TestDrain(t *testing.T) {
	release := make(chan struct{})
	upstream := gatewaytest.NewUpstream(t,
		gatewaytest.Sequence(gatewaytest.Headers(200, "Content-Type", "text/event-stream"), gatewaytest.Opening(), gatewaytest.Events(1),
			gatewaytest.WaitFor(release), gatewaytest.Events(1), gatewaytest.Finish("stop"), gatewaytest.Done()))
	file := write(t, "g.yaml", `
master: {keys: [k]}
providers: [{name: cloud, type: openai, base_url: "`+upstream.URL()+`"}]
models: [{alias: m, candidates: [{provider: cloud, model: m}]}]
server: {drain: 1m}
`)
	base, _, stop := start(t, nothing(), "-config", file)
	res := send(t, http.MethodPost, base+"/v1/chat/completions", "k", `{"model":"m","stream":true,"messages":[]}`)
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan int, 1)
	go func() { stopped <- stop() }()
	// New calls are told to go elsewhere while the stream goes on.
	for {
		ready := send(t, http.MethodGet, base+"/ready", "", "")
		ready.Body.Close()
		if ready.StatusCode == http.StatusServiceUnavailable {
			break
		}
	}
	refused := send(t, http.MethodPost, base+"/v1/chat/completions", "k", `{"model":"m","messages":[]}`)
	refused.Body.Close()
	if refused.StatusCode != http.StatusServiceUnavailable || !refused.Close {
		t.Errorf("a call while draining: %d, close %v; want 503 and a closed connection", refused.StatusCode, refused.Close)
	}
	close(release)
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stream in flight: %s (%v)", rest, err)
	}
	if code := <-stopped; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestDrainEndsStreamsWithAnErrorEvent(t *testing.T) {
	upstream := gatewaytest.NewUpstream(t, gatewaytest.Stream("one").ThenHang())
	file := write(t, "g.yaml", `
master: {keys: [k]}
providers: [{name: cloud, type: openai, base_url: "`+upstream.URL()+`"}]
models: [{alias: m, candidates: [{provider: cloud, model: m}]}]
server: {drain: 10ms}
`)
	base, _, stop := start(t, nothing(), "-config", file)
	res := send(t, http.MethodPost, base+"/v1/chat/completions", "k", `{"model":"m","stream":true,"messages":[]}`)
	defer res.Body.Close()
	stopped := make(chan int, 1)
	go func() { stopped <- stop() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(body), `"code":"gateway_closed"`) || strings.Contains(string(body), "[DONE]") {
		t.Errorf("the stream in flight: %s (%v), want an error event", body, err)
	}
	if code := <-stopped; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	open := write(t, "g.yaml", "providers: [{name: a, type: echo}]\n")
	base, _, _ := start(t, nothing())
	taken := strings.TrimPrefix(base, "http://")
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-listen", taken}, 1, taken + " is in use by another program; choose another address with -listen HOST:PORT"},
		{[]string{"-listen", "nonsense"}, 1, "cannot listen on nonsense"},
		{[]string{"-config", "/nonexistent.yaml"}, 1, "cannot read the configuration: open /nonexistent.yaml"},
		{[]string{"-config", open, "-listen", "0.0.0.0:0"}, 1, "0.0.0.0:0 can be reached from other machines, but no key is configured"},
		{[]string{"-check"}, 2, "-check needs -config FILE"},
		{[]string{"-what"}, 2, "flag provided but not defined: -what"},
		{[]string{"serve"}, 2, `unexpected argument "serve"`},
		{[]string{"-version"}, 0, "gateway server "},
		{[]string{"-help"}, 0, "Usage: server [flags]"},
	}
	for _, test := range tests {
		var out bytes.Buffer
		if code := run(t.Context(), test.args, &out, &out, nothing()); code != test.code || !strings.Contains(out.String(), test.want) {
			t.Errorf("%v: exit code %d and %s, want %d and %s", test.args, code, out.String(), test.code, test.want)
		}
	}
}

func TestWithoutKeysCallsAreRefused(t *testing.T) {
	file := write(t, "g.yaml", "providers: [{name: a, type: echo}]\nmodels: [{alias: m, candidates: [{provider: a, model: m}]}]\n")
	base, out, _ := start(t, nothing(), "-config", file)
	if got := get(t, base+"/v1/models", ""); !strings.Contains(got, `"code":"gateway_not_configured"`) {
		t.Errorf("%s", got)
	}
	if !strings.Contains(out.String(), "no key is configured") {
		t.Errorf("not said:\n%s", out)
	}
}

func FuzzParseYAML(f *testing.F) {
	for _, seed := range []string{
		"a: &x {b: 1}\nc: {<<: *x, d: ~}\n", "- 1.50\n- yes\n- 'true'\n- 0x1f\n- 1e400\n", "a: *a", "a: &a [*a, *a]", `{"a":[1,{"b":null}]}`, "? [a]\n: b",
		"<<: [{a: 1}, {a: 2}]\na: 3",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := parseYAML(text)
		if err != nil {
			return
		}
		if !d.json.IsValid() {
			t.Errorf("%q becomes %s, which is not JSON", text, d.json)
		}
		if flat, ok := d.flatList(); ok {
			if out, err := fromFlat(flat); err == nil && !out.json.IsValid() {
				t.Errorf("%q becomes %s, which is not JSON", text, out.json)
			}
		}
	})
}
