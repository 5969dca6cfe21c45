package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/gatewaytest"
)

// curls returns the lines to paste that the server printed.
func curls(t *testing.T, out string) []string {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(out, -1)
	if len(lines) != 2 {
		t.Fatalf("%d curl lines in:\n%s", len(lines), out)
	}
	return lines
}

// paste runs the printed lines in a shell, exactly as they are.
func paste(t *testing.T, lines []string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("GATEWAY_REQUIRE_SERVICES") != "" {
			t.Fatal("curl is not installed")
		}
		t.Skip("SKIPPED the lines that the server prints: curl is not installed")
	}
	for i, want := range []string{`"content":"Hello, gateway"`, "data: [DONE]"} {
		got, err := exec.CommandContext(t.Context(), "sh", "-c", lines[i]).Output()
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s\n%s (%v), want %s", lines[i], got, err, want)
		}
	}
}

func TestNothingConfigured(t *testing.T) {
	base, out, stop := start(t, nothing())
	key := regexp.MustCompile(`(?m)^Key for this run: (gw-[A-Za-z0-9_-]{32})$`).FindStringSubmatch(out.String())
	if key == nil {
		t.Fatalf("no key in:\n%s", out)
	}
	body := `{"model":"demo","messages":[{"role":"user","content":"Hello"}]}`
	if status, answer := post(t, base+"/v1/chat/completions", key[1], body); status != 200 || !strings.Contains(answer, `"content":"Hello"`) {
		t.Errorf("with the printed key: %d %s", status, answer)
	}
	if status, _ := get(t, base+"/admin/stats", key[1]); status != 200 {
		t.Errorf("the printed key is not the admin's: %d", status)
	}
	if status, _ := post(t, base+"/v1/chat/completions", "gw-wrong", body); status != 401 {
		t.Errorf("with another key: %d, want 401", status)
	}
	if strings.Count(out.String(), "\"listening\"") != 1 {
		t.Errorf("the log does not say once that it listens:\n%s", out)
	}
	_, again, _ := start(t, nothing())
	if strings.Contains(again.String(), key[1]) {
		t.Error("two runs have the same key")
	}
	paste(t, curls(t, out.String()))
	if code := stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// A key that the operator has set is used, and never printed: the lines to paste name the variable.
func TestKeyFromTheEnvironment(t *testing.T) {
	base, out, _ := start(t, with(t, map[string]string{"GATEWAY_API_KEY": " operators-own \n"}))
	if status, _ := get(t, base+"/v1/models", "operators-own"); status != 200 {
		t.Errorf("with the key: %d", status)
	}
	if strings.Contains(out.String(), "operators-own") {
		t.Errorf("the key is printed:\n%s", out)
	}
	lines := curls(t, out.String())
	t.Setenv("GATEWAY_API_KEY", "operators-own")
	paste(t, lines)
}

// Two providers and an Ollama, with the real probe over sockets: their models are aliases, and answer.
func TestDetectedProvidersBecomeAliases(t *testing.T) {
	provider := func(models string, answer http.Handler) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == "/v1/models" {
				_, _ = w.Write([]byte(models))
				return
			}
			answer.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	upstream := gatewaytest.NewUpstream(t, gatewaytest.Answer("hi"))
	redirect := httptest.NewServer(http.RedirectHandler(upstream.URL(), http.StatusFound))
	t.Cleanup(redirect.Close)
	forward := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { gatewaytest.Answer("hi").ServeHTTP(w, r) })
	sys := with(t, map[string]string{
		"OPENAI_API_KEY": "openai-secret", "OPENAI_BASE_URL": provider(`{"object":"list","data":[{"id":"gpt-4o"},{"id":"o3"}]}`, forward) + "/v1/",
		"GOOGLE_API_KEY": "google-secret", "GEMINI_BASE_URL": provider(`{"data":[{"id":"models/gemini-3"},{"id":"gemini-3"}]}`, forward) + "/v1",
		"TOGETHER_API_KEY": "together-secret", "TOGETHER_BASE_URL": provider(`[{"id":"org/m"}]`, forward) + "/v1",
		"GROQ_API_KEY": "groq-secret", "GROQ_BASE_URL": provider(`{"data":[]}`, forward) + "/v1",
		"XAI_API_KEY": "xai-secret", "XAI_BASE_URL": provider(`<html>`, forward) + "/v1",
		"CEREBRAS_API_KEY": "cerebras-secret", "CEREBRAS_BASE_URL": redirect.URL,
		"DEEPSEEK_API_KEY": "deepseek-secret", "DEEPSEEK_BASE_URL": gatewaytest.Refused(t) + "/v1",
		"MISTRAL_API_KEY": " ", "ANTHROPIC_API_KEY": "anthropic-secret", "GATEWAY_API_KEY": "mine",
		"OLLAMA_HOST": strings.TrimPrefix(provider(`{"data":[{"id":"qwen3:8b"}]}`, forward), "http://"),
	})
	sys.probe = probe
	base, out, _ := start(t, sys)
	_, list := get(t, base+"/v1/models", "mine")
	var got []string
	for _, id := range regexp.MustCompile(`"id":"([^"]*)"`).FindAllStringSubmatch(list, -1) {
		got = append(got, id[1])
	}
	if diff := cmp.Diff([]string{"demo", "openai/gpt-4o", "openai/o3", "gemini/gemini-3", "together/org/m", "ollama/qwen3:8b"}, got); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
	for _, model := range []string{"openai/o3", "ollama/qwen3:8b"} {
		if status, answer := post(t, base+"/v1/chat/completions", "mine", `{"model":"`+model+`","messages":[]}`); status != 200 || !strings.Contains(answer, `"hi"`) {
			t.Errorf("%s: %d %s", model, status, answer)
		}
	}
	for _, note := range []string{
		"demo: answers offline",
		"openai: 2 models, such as openai/gpt-4o",
		"groq: GROQ_API_KEY is set, but its list of models could not be had from http://127.0.0.1:",
		": it is empty; skipped",
		": the answer is no list of models; skipped",
		": status 302; skipped",
		"connection refused; skipped",
		"anthropic: ANTHROPIC_API_KEY is set, but this version does not speak Anthropic's interface; skipped",
	} {
		if !strings.Contains(out.String(), note) {
			t.Errorf("not said: %s\n%s", note, out)
		}
	}
	if strings.Contains(out.String(), "-secret") || strings.Contains(out.String(), "mistral") {
		t.Errorf("printed what should not be:\n%s", out)
	}
	if n := upstream.Count(); n != 0 {
		t.Errorf("a probe followed a redirect %d times", n)
	}
}

// What detection knows of providers is what they document.
func TestKnownProvidersBuild(t *testing.T) {
	for _, k := range known {
		t.Run(k.name, func(t *testing.T) {
			sys := with(t, map[string]string{k.keys[0]: "k"})
			sys.probe = func(_ context.Context, base, key string) ([]string, error) {
				if base != k.base || key != "k" {
					return nil, context.Canceled
				}
				return []string{"m"}, nil
			}
			config, _ := detect(t.Context(), sys)
			client, err := newClient(config, newLogger(config.Log, t.Output()))
			if err != nil {
				t.Fatal(err)
			}
			closeNow(client)
			if last := config.Models[len(config.Models)-1]; last.Alias != k.name+"/m" {
				t.Errorf("alias %s", last.Alias)
			}
		})
	}
}

func TestOllamaBase(t *testing.T) {
	for host, want := range map[string]string{
		"": "http://127.0.0.1:11434/v1", "0.0.0.0": "http://127.0.0.1:11434/v1", "0.0.0.0:8080": "http://127.0.0.1:8080/v1",
		":8080": "http://127.0.0.1:8080/v1", "[::]:8080": "http://127.0.0.1:8080/v1", "[::1]": "http://[::1]:11434/v1", "box": "http://box:11434/v1",
		"http://box:1/": "http://box:1/v1", "https://ollama.test": "https://ollama.test:443/v1",
	} {
		if got := ollamaBase(host); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}
