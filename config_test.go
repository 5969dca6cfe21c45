package gateway_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
)

const fullConfig = `{
  "listen": "127.0.0.1:9000",
  "master": {"keys": ["env:GW_TEST_MASTER"]},
  "providers": [{
    "name": "cloud", "type": "openai", "base_url": "${GW_TEST_BASE:-https://upstream.test/v1}",
    "keys": ["env:GW_TEST_KEY", "literal"], "headers": {"X-Team": "$$platform"},
    "timeouts": {"connect": "10s", "first_byte": "2m", "idle": "1m", "total": "10m"},
    "max_concurrency": 64, "quirks": {"drop": ["seed"], "rename": {"max_tokens": "max_completion_tokens"}}
  }],
  "models": [{
    "alias": "chat-smart", "strategy": "failover",
    "candidates": [{"provider": "cloud", "model": "gpt-4o-2024-08-06",
      "price": {"input": "2.50", "cache_read": "1.25", "output": 10}}],
    "retry": {"max_retries": 3, "on": ["connect", "rate_limit"], "backoff": {"base": "1s", "max": "60s", "jitter": 0.25}, "budget": "30s"}
  }],
  "keys": [{"name": "bot", "hash": "sha256:` + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" + `", "app": "helpdesk", "models": ["chat-*"]}],
  "prices": {"unpriced": "refuse"},
  "queue": {"max_wait": "5s", "max_waiting": 1000},
  "server": {"max_body": "32MiB", "write_stall": "30s", "keepalive": "0s", "drain": "30s", "max_connections": 10000},
  "log": {"format": "json"}
}`

func TestParseConfig(t *testing.T) {
	t.Setenv("GW_TEST_MASTER", "m")
	t.Setenv("GW_TEST_KEY", "k")
	c, err := gateway.ParseConfig([]byte(fullConfig))
	if err != nil {
		t.Fatalf("ParseConfig: %v", err)
	}
	got := []any{
		c.Providers[0].BaseURL, c.Providers[0].Headers["X-Team"], time.Duration(*c.Providers[0].Timeouts.FirstByte),
		c.Providers[0].Keys[1].String(), c.Models[0].Candidates[0].Price.Input.Decimal.String(),
		c.Models[0].Candidates[0].Price.Output.Decimal.String(), int64(*c.Server.MaxBody), *c.Models[0].Retry.MaxRetries,
	}
	want := []any{"https://upstream.test/v1", "$platform", 2 * time.Minute, "***", "2.5", "10", int64(32 << 20), 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	key, err := c.Providers[0].Keys[0].Resolve()
	if err != nil || key.Reveal() != "k" {
		t.Errorf("env: secret: %v", err)
	}
}

func TestParseConfigReportsEverything(t *testing.T) {
	t.Setenv("GW_TEST_EMPTY", " ")
	tests := []struct{ name, config, want string }{
		{"not JSON", `{"models": [}`, "not a valid JSON document: invalid character '}' at start of value (byte 12, at /models/0)"},
		{"not an object", `[]`, "not a valid JSON document: the document must be a JSON object, not an array (byte 0)"},
		{"duplicate", `{"listen":"a:1","listen":"a:2"}`, `not a valid JSON document: duplicate object member name (byte 16, at /listen)`},
		{
			"unknown members", `{"modles":[],"providers":[{"name":"a","type":"echo","colour":1}],"cache":{}}`,
			`modles: unknown member (did you mean "models"?); known are listen, master, providers, models, keys, prices, queue, server, log
providers[0].colour: unknown member; known are name, type, base_url, keys, headers, timeouts, max_concurrency, proxy, quirks
cache: is not supported by this version of the gateway; remove it`,
		},
		{
			"shape and meaning at once", `{"models":[{"alias":"${GW_TEST_UNSET}","colour":1,"candidates":[{"provider":"clod","model":"m"}]}]}`,
			`models[0].alias: the environment variable GW_TEST_UNSET is not set; set it, or write ${GW_TEST_UNSET:-default}
models[0].colour: unknown member; known are alias, strategy, candidates, retry, max_concurrency, strict
models[0].candidates[0].provider: there is no provider "clod"`,
		},
		{
			"wrong types", `{"listen":9000,"models":{},"providers":[{"name":"a","type":"echo","max_concurrency":"many","timeouts":{"idle":"soon","total":5}}],"models2":1}`,
			`listen: must be a string, not a number
models: must be a list, not an object
providers[0].max_concurrency: must be a whole number, not "many"
providers[0].timeouts.idle: "soon" is not a duration such as 1.5s or 10m
providers[0].timeouts.total: must be a string, not a number
models2: unknown member (did you mean "models"?); known are listen, master, providers, models, keys, prices, queue, server, log`,
		},
		{
			"variables", `{"master":{"keys":["${GW_TEST_UNSET}","env:GW_TEST_UNSET"]},"listen":"${GW_TEST_EMPTY}","log":{"format":"${GW_TEST_UNSET:-json}","level":"${oops"}}`,
			`master.keys[0]: the environment variable GW_TEST_UNSET is not set; set it, or write ${GW_TEST_UNSET:-default}
listen: the environment variable GW_TEST_EMPTY is empty; set it, or write ${GW_TEST_EMPTY:-default}
log.level: ${oops has no closing brace
master.keys[1]: the environment variable GW_TEST_UNSET is not set`,
		},
		{
			"meaning", `{"listen":"9000","master":{"keys":["env:GW_TEST_UNSET","env:GW_TEST_EMPTY","file:/nonexistent/key","enc:abc",""]},
			"providers":[{"name":"a","type":"echo","max_concurrency":-1},{"name":"a","type":""}],
			"models":[{"alias":"x","strategy":"weighted","candidates":[{"provider":"clod","model":"m","price":{"input":"-1"}}],"retry":{"max_retries":-1,"on":["always"],"backoff":{"jitter":2}}},{"alias":"x","strategy":"best","candidates":[]}],
			"keys":[{"name":"k"},{"name":"k","hash":"md5:1"}],"prices":{"unpriced":"guess"},"queue":{"max_waiting":-1},"server":{"max_body":"0"}}`,
			`listen: must be host:port, such as 127.0.0.1:9000: address 9000: missing port in address
master.keys[0]: the environment variable GW_TEST_UNSET is not set
master.keys[1]: the environment variable GW_TEST_EMPTY is empty
master.keys[2]: cannot read the secret: open /nonexistent/key: no such file or directory
master.keys[3]: enc: secrets are not supported by this version; use env:NAME or file:/path
master.keys[4]: the secret is empty
providers[0].max_concurrency: must not be negative: -1
providers[1].name: there are two providers "a"
providers[1].type: a provider needs a type, such as openai
models[0].candidates[0].provider: there is no provider "clod"
models[0].candidates[0].price: input is negative: -1
models[0].strategy: "weighted" is not supported by this version of the gateway; use failover
models[0].retry.max_retries: must not be negative: -1
models[0].retry.on[0]: unknown value "always"; known are connect, rate_limit, http_5xx, timeout
models[0].retry.backoff.jitter: must be from 0 to 1: 2
models[1].alias: there are two aliases "x"
models[1].candidates: alias "x" needs at least one candidate
models[1].strategy: unknown strategy "best"; known is failover
keys[0]: a key needs secret or hash
keys[1].name: there are two keys "k"
keys[1].hash: must be sha256: and 64 hexadecimal digits
prices.unpriced: unknown value "guess"; known are allow, refuse
queue.max_waiting: must not be negative: -1
server.max_body: must be larger than 0`,
		},
		{
			"prices are decimal text", `{"providers":[{"name":"a","type":"echo"}],"models":[{"alias":"x","candidates":[{"provider":"a","model":"m","price":{"input":"cheap"}}]}]}`,
			`models[0].candidates[0].price.input: must be a decimal number such as "2.50", not "cheap"`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := gateway.ParseConfig([]byte(test.config))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]gateway.ByteSize{
		"0": 0, "4096": 4096, "512KiB": 512 << 10, "32MiB": 32 << 20, "2 GiB": 2 << 30, "10MB": 10_000_000, "7B": 7,
	} {
		var got gateway.ByteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
		var again gateway.ByteSize
		out, _ := got.MarshalText()
		if err := again.UnmarshalText(out); err != nil || again != got {
			t.Errorf("%q written as %q reads as %d (%v)", text, out, again, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "9999999999GiB", "10XB"} {
		var got gateway.ByteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(fullConfig))
	f.Add([]byte(`{"models":[{"alias":"${A:-b}","candidates":null}],"keys":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := gateway.ParseConfig(text)
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("a parsed configuration is not valid: %v", err)
			}
		}
	})
}
