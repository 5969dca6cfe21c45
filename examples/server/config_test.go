package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check runs -check on a file and returns its output, in which the file's name is FILE.
func check(t *testing.T, sys system, file string) (code int, out string) {
	t.Helper()
	var text bytes.Buffer
	code = run(t.Context(), []string{"-check", "-config", file}, &text, &text, sys)
	return code, strings.ReplaceAll(text.String(), file, "FILE")
}

const keylessNote = "no key is configured: every call is refused with 503 until there is one; add master.keys or keys, or set GATEWAY_API_KEY\n"

func TestCheck(t *testing.T) {
	sys := with(t, map[string]string{"GW_KEY": "k"})
	t.Setenv("GW_BLANK", " ")
	tests := []struct{ name, file, text, want string }{
		{
			"good YAML", "g.yaml", "master: {keys: [env:GW_KEY]}\nproviders: [{name: a, type: echo}]\nmodels: [{alias: x, candidates: [{provider: a, model: m, price: {input: 2.50}}]}]\n",
			"FILE is valid: 1 providers, 1 aliases, 1 keys\n",
		},
		{"good JSON", "g.json", "{\n\t\"providers\":[{\"name\":\"a\\ud83d\\ude00\",\"type\":\"echo\"}],\n\t\"master\":{\"keys\":[\"env:GW_KEY\"]}}", "FILE is valid: 1 providers, 0 aliases, 1 keys\n"},
		{"JSON under any name", "gateway.conf", `{"providers":[{"name":"a\ud83d\ude00","type":"echo"}],"master":{"keys":["env:GW_KEY"]}}`, "FILE is valid: 1 providers, 0 aliases, 1 keys\n"},
		{"no keys", "g.yaml", "providers: [{name: a, type: echo}]\n", keylessNote + "FILE is valid: 1 providers, 0 aliases, 0 keys\n"},
		{
			"everything at once", "b.yaml", `listen: "9000"
providers:
  - name: cloud
    type: opnai
    base_url: https://x.test
  - name: local
    type: openai
    base_url: ftp://x.test
    colour: red
  - name: third
    type: openai
    base_url: https://x.test
    keys: [env:GW_UNSET]
models:
  - alias: x
    candidates:
      - provider: clod
        model: m
log: {level: "${GW_UNSET}"}
cache: {enabled: true}
`, `FILE:1: listen: must be host:port, such as 127.0.0.1:9000: address 9000: missing port in address
FILE:4: providers[0].type: unknown type "opnai"; known are openai and echo
FILE:9: providers[1].colour: unknown member; known are name, type, base_url, keys, headers, timeouts, max_concurrency, proxy, quirks
FILE:13: providers[2].keys[0]: the environment variable GW_UNSET is not set
FILE:17: models[0].candidates[0].provider: there is no provider "clod"
FILE:19: log.level: the environment variable GW_UNSET is not set; set it, or write ${GW_UNSET:-default}
FILE:20: cache: is not supported by this version of the gateway; remove it
`,
		},
		{
			"the same in JSON", "b.json", "{\"providers\":[\n{\"name\":\"a\",\n\"type\":\"echo\"}],\n\"models\":[{\"alias\":\"x\",\"candidates\":[\n{\"model\":\"m\",\n\"provider\":\"clod\"}],\n\"strategy\":\"fastest\"}]}",
			"FILE:6: models[0].candidates[0].provider: there is no provider \"clod\"\nFILE:7: models[0].strategy: unknown strategy \"fastest\"; known is failover\n",
		},
		{
			"wrong types", "b.yaml", "listen: 9000\nproviders: {}\nserver:\n  drain: soon\n  max_connections: 1_000\n",
			"FILE:1: listen: must be a string, not a number\nFILE:2: providers: must be a list, not an object\nFILE:4: server.drain: \"soon\" is not a duration such as 1.5s or 10m\nFILE:5: server.max_connections: must be a whole number, not \"1_000\"\n",
		},
		{
			"missing members have the line of what lacks them", "b.yaml", "providers:\n- {name: a, type: echo}\nmodels:\n- alias: x\n  candidates:\n  - model: m\n- candidates: []\n",
			"FILE:6: models[0].candidates[0].provider: a candidate needs a provider\nFILE:7: models[1].alias: an alias needs a name\nFILE:7: models[1].candidates: alias \"\" needs at least one candidate\n",
		},
		{
			"variables", "b.yaml", "master:\n  keys:\n  - env:GW_UNSET\n  - ${GW_UNSET}\n  - env:GW_BLANK\n  - ${GW_BLANK}\n",
			`FILE:3: master.keys[0]: the environment variable GW_UNSET is not set
FILE:4: master.keys[1]: the environment variable GW_UNSET is not set; set it, or write ${GW_UNSET:-default}
FILE:5: master.keys[2]: the environment variable GW_BLANK is empty
FILE:6: master.keys[3]: the environment variable GW_BLANK is empty; set it, or write ${GW_BLANK:-default}
`,
		},
		{"duplicates", "b.yaml", "log: {}\nserver:\n  drain: 1s\n  drain: 2s\nlog: {}\n", "FILE:4: server.drain: the member is there twice, first in line 3\nFILE:5: log: the member is there twice, first in line 1\n"},
		{"duplicates in JSON", "b.json", "{\"log\":{},\n\"log\":{}}", "FILE:2: log: the member is there twice, first in line 1\n"},
		{"yes is a word", "b.yaml", "log: {format: yes}\n", "FILE:1: log.format: unknown value \"yes\"; known are json, text\n"},
		{"two documents", "b.yaml", "log: {}\n---\nlog: {}\n", "FILE: there is more than one document in the file; a configuration is one\n"},
		{"two documents of JSON", "b.json", "{}\n{}\n", "FILE:2: not valid JSON: there is more after the end of the document\n"},
		{"bad YAML", "b.yaml", "log: {}\nserver: [\n", "FILE:2: not valid YAML: did not find expected node content\n"},
		{"bad JSON", "b.json", "{\n\"log\": {},\n}\n", "FILE:2: not valid JSON: invalid character ',' at start of value\n"},
		{"cut JSON", "b.json", "{\n\"log\": ", "FILE:2: not valid JSON: unexpected EOF\n"},
		{"empty", "b.yaml", "", "FILE: the file is empty\n"},
		{"only a comment", "b.yaml", "# nothing\n", "FILE: the file is empty\n"},
		{"not an object", "b.yaml", "gateway\n", "FILE:1: not a valid JSON document: the document must be a JSON object, not a string (byte 0)\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, got := check(t, sys, write(t, test.file, test.text))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if good := strings.Contains(test.want, "is valid"); good != (code == 0) {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestFileIsBounded(t *testing.T) {
	if _, got := check(t, nothing(), write(t, "g.yaml", strings.Repeat("#\n", maxFile/2+1))); !strings.Contains(got, "FILE has more than 4194304 bytes") {
		t.Errorf("%s", got)
	}
}

func TestExampleConfigurationIsValid(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "GATEWAY_API_KEY"} {
		t.Setenv(name, "")
	}
	if code, out := check(t, nothing(), "gateway.yaml"); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
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
	sys := with(t, map[string]string{"GATEWAY_API_KEY": "k", "OPENAI_API_KEY": "k", "SUPPORT_BOT_KEY": "k2"})
	if code, out := check(t, sys, write(t, "readme.yaml", text)); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// testdata/design.yaml is the configuration that the design plans for. What this version does not do yet is refused, not
// taken in silence; the rest of it is in gateway.yaml, which is valid.
func TestPlannedSettingsAreRefused(t *testing.T) {
	sys := with(t, map[string]string{"GATEWAY_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENAI_API_KEY_2": "k2"})
	const unsupported = ": is not supported by this version of the gateway; remove it\n"
	want := "FILE:16: providers[1].limits" + unsupported +
		"FILE:21: models[0].strategy: \"weighted\" is not supported by this version of the gateway; use failover\n" +
		"FILE:23: models[0].candidates[0].weight" + unsupported +
		"FILE:24: models[0].candidates[1].weight" + unsupported +
		"FILE:24: models[0].candidates[1].context" + unsupported +
		"FILE:24: models[0].candidates[1].vision" + unsupported +
		"FILE:24: models[0].candidates[1].tools" + unsupported +
		"FILE:26: models[0].fallbacks" + unsupported +
		"FILE:27: models[0].fallback_on" + unsupported +
		"FILE:28: models[0].limits" + unsupported +
		"FILE:32: keys[0].hash: must be sha256: and 64 hexadecimal digits\n" +
		"FILE:35: keys[0].limits" + unsupported +
		"FILE:36: keys[0].budgets" + unsupported +
		"FILE:37: keys[0].expires" + unsupported +
		"FILE:39: prices.file" + unsupported +
		"FILE:41: stores" + unsupported +
		"FILE:46: cache" + unsupported +
		"FILE:47: redact" + unsupported +
		"FILE:49: log.bodies" + unsupported
	code, got := check(t, sys, "testdata/design.yaml")
	if diff := cmp.Diff(want, got); diff != "" || code != 1 {
		t.Errorf("exit code %d, output (-want +got):\n%s", code, diff)
	}
}
