// Package clients runs the official clients of OpenAI's interface against the server, as users do: the JavaScript ones in
// the *.test.mjs files, the Go ones here. Behind the server is an upstream that answers by the name of the model.
package clients_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

const key = "clients-key"

// base is the address of the server under test, with /v1; control that of the upstream behind it.
var base, control string

func TestMain(m *testing.M) {
	code, err := runWithServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithServer(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "gateway-clients-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	upstream := httptest.NewServer(newUpstream())
	defer upstream.Close()
	control = upstream.URL

	binary := filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-o", binary, "..")
	build.Dir, build.Stderr = ".", os.Stderr
	if err := build.Run(); err != nil {
		return 0, fmt.Errorf("building the server: %w", err)
	}
	config := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(config, []byte(configuration(upstream.URL)), 0o600); err != nil {
		return 0, err
	}
	server := exec.Command(binary, "-config", config, "-listen", "127.0.0.1:0")
	server.Stderr = io.Discard
	if os.Getenv("GATEWAY_TEST_LOG") != "" {
		server.Stderr = os.Stderr
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := server.Start(); err != nil {
		return 0, fmt.Errorf("starting the server: %w", err)
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}()
	address := regexp.MustCompile(`http://\S+/v1`)
	for lines := bufio.NewScanner(stdout); base == "" && lines.Scan(); {
		base = address.FindString(lines.Text())
	}
	if base == "" {
		return 0, errors.New("the server printed no address")
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return m.Run(), nil
}

// models are the aliases; each has the name of the upstream's model behind it.
func configuration(upstream string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "master: {keys: [%s]}\nproviders:\n", key)
	fmt.Fprintf(&b, "- {name: up, type: openai, base_url: %q, quirks: {repair_chunks: false}}\n", upstream)
	fmt.Fprintf(&b, "- {name: odd, type: openai, base_url: %q, quirks: {repair_chunks: true}}\nmodels:\n", upstream)
	for _, m := range []string{"chat", "org/chat:7b", "tools", "json", "embed", "limited", "failing", "cut", "endless", "mirror", "length"} {
		fmt.Fprintf(&b, "- {alias: %q, candidates: [{provider: up, model: %q, price: {input: \"2\", output: \"8\"}}], retry: {max_retries: 0}}\n", m, m)
	}
	fmt.Fprintf(&b, "- {alias: odd-tools, candidates: [{provider: odd, model: odd-tools}]}\n")
	return b.String()
}

// upstream speaks OpenAI's interface and does what the name of the model says.
type upstream struct {
	aborted atomic.Int64
	last    atomic.Value // the last body
}

func newUpstream() http.Handler {
	u := &upstream{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", u.chat)
	mux.HandleFunc("POST /v1/embeddings", u.embed)
	mux.HandleFunc("GET /aborted", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, u.aborted.Load()) })
	mux.HandleFunc("GET /last", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(u.last.Load().([]byte)) })
	return mux
}

type chatBody struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role string `json:"role"`
	} `json:"messages"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

const usage = `{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}`

func (u *upstream) chat(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.last.Store(text)
	var body chatBody
	if err := json.Unmarshal(text, &body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	say := func(deltas ...string) { answer(w, body, "stop", texts(deltas)...) }
	switch body.Model {
	case "limited":
		w.Header().Set("Retry-After", "7")
		fail(w, 429, `{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}`)
	case "failing":
		fail(w, 500, `<html>internal secrets</html>`)
	case "json":
		say(`{"city":"Paris",`, `"celsius":21}`)
	case "length":
		answer(w, body, "length", texts([]string{`{"city":"Par`})...)
	case "tools", "odd-tools":
		if body.Messages[len(body.Messages)-1].Role == "tool" {
			say("It is 21 degrees ", "in Paris.")
			return
		}
		u.callTools(w, body)
	case "cut":
		start(w)
		event(w, body.Model, `{"role":"assistant","content":""}`, "null")
		event(w, body.Model, `{"content":"half an "}`, "null")
		panic(http.ErrAbortHandler)
	case "endless":
		start(w)
		event(w, body.Model, `{"role":"assistant","content":"on and on"}`, "null")
		<-r.Context().Done()
		u.aborted.Add(1)
	default:
		say("Hello ", "from 日本, ", "<world> & more")
	}
}

func texts(deltas []string) []string {
	list := make([]string, len(deltas))
	for i, d := range deltas {
		quoted, _ := json.Marshal(d)
		list[i] = fmt.Sprintf(`{"content":%s}`, quoted)
	}
	return list
}

// answer answers with deltas, or with the message that they add up to.
func answer(w http.ResponseWriter, body chatBody, finish string, deltas ...string) {
	if !body.Stream {
		content := ""
		for _, d := range deltas {
			var delta struct{ Content string }
			_ = json.Unmarshal([]byte(d), &delta)
			content += delta.Content
		}
		quoted, _ := json.Marshal(content)
		document(w, body.Model, fmt.Sprintf(`{"role":"assistant","content":%s,"refusal":null}`, quoted), finish)
		return
	}
	start(w)
	event(w, body.Model, `{"role":"assistant","content":"","refusal":null}`, "null")
	for _, d := range deltas {
		event(w, body.Model, d, "null")
	}
	event(w, body.Model, `{}`, `"`+finish+`"`)
	end(w, body)
}

// callTools calls two tools at once. The odd model leaves out what compatible servers leave out.
func (u *upstream) callTools(w http.ResponseWriter, body chatBody) {
	calls := []string{
		`{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}`,
		`{"index":1,"id":"call_2","type":"function","function":{"name":"time","arguments":"{}"}}`,
	}
	if !body.Stream {
		list := strings.ReplaceAll(strings.ReplaceAll(strings.Join(calls, ","), `"index":0,`, ""), `"index":1,`, "")
		document(w, body.Model, `{"role":"assistant","content":null,"tool_calls":[`+list+`]}`, "tool_calls")
		return
	}
	start(w)
	if body.Model == "odd-tools" {
		event(w, body.Model, `{"tool_calls":[{"id":"call_1","function":{"name":"weather","arguments":"{\"city\":"}}]}`, "null")
		event(w, body.Model, `{"tool_calls":[{"index":null,"function":{"arguments":"\"Paris\"}"}}]}`, "null")
		event(w, body.Model, `{"tool_calls":[{"id":"call_2","function":{"name":"time","arguments":"{}"}}]}`, "null")
		fmt.Fprint(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"odd-tools","choices":[{"delta":{},"finish_reason":"tool_calls"}]}`+"\n\n")
		fmt.Fprint(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"odd-tools","usage":`+usage+"}\n\ndata: [DONE]\n\n")
		return
	}
	event(w, body.Model, `{"role":"assistant","content":null}`, "null")
	for i, call := range calls {
		event(w, body.Model, `{"tool_calls":[`+regexp.MustCompile(`"arguments":".*"\}`).ReplaceAllString(call, `"arguments":""}`)+`]}`, "null")
		var full struct{ Function struct{ Arguments string } }
		_ = json.Unmarshal([]byte(call), &full)
		for _, piece := range []string{full.Function.Arguments[:1], full.Function.Arguments[1:]} {
			quoted, _ := json.Marshal(piece)
			event(w, body.Model, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoted), "null")
		}
	}
	event(w, body.Model, `{}`, `"tool_calls"`)
	end(w, body)
}

func document(w http.ResponseWriter, model, message, finish string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","created":1,"model":%q,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":%s}`,
		model, message, finish, usage)
}

func start(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }

func event(w http.ResponseWriter, model, delta, finish string) {
	fmt.Fprintf(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":%q,"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],"usage":null}`+"\n\n",
		model, delta, finish)
	_ = http.NewResponseController(w).Flush()
}

func end(w http.ResponseWriter, body chatBody) {
	if body.StreamOptions != nil && body.StreamOptions.IncludeUsage {
		fmt.Fprintf(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":%q,"choices":[],"usage":%s}`+"\n\n", body.Model, usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func fail(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// embed answers with floats, whatever was asked for, as many servers do.
func (u *upstream) embed(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.last.Store(text)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1,0.25,2]}],"model":"embed","usage":{"prompt_tokens":8,"total_tokens":8}}`)
}

// TestJavaScript runs the *.test.mjs files with node.
func TestJavaScript(t *testing.T) {
	skip := t.Skipf
	if os.Getenv("GATEWAY_REQUIRE_SERVICES") != "" {
		skip = t.Fatalf
	}
	if _, err := exec.LookPath("node"); err != nil {
		skip("SKIPPED the JavaScript clients: node is not installed")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		skip("SKIPPED the JavaScript clients: run 'npm ci' in %s first", "examples/server/clients")
	}
	files, err := filepath.Glob("*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".test.mjs"), func(t *testing.T) {
			node := exec.CommandContext(t.Context(), "node", "--test", file)
			node.Env = append(os.Environ(), "BASE_URL="+base, "KEY="+key, "CONTROL="+control)
			if out, err := node.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func ask(t *testing.T, ctx context.Context, body string) *http.Response { //nolint:revive // t first reads better
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", strings.NewReader(body))
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
