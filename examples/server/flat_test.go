package main

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway/gatewaytest"
)

// A flat list becomes this configuration, with every number as it was written.
func TestFlatListBecomesAConfiguration(t *testing.T) {
	for _, name := range []string{"testdata/providers.json", "testdata/providers-object.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d, faults := parse(name, text)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		list, ok := d.flatList()
		if !ok {
			t.Fatalf("%s is not taken for a flat list", name)
		}
		out, faults := list.document()
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		golden, err := os.ReadFile("testdata/providers.golden.json")
		if err != nil {
			t.Fatal(err)
		}
		got := out.json
		if err := got.Indent(jsontext.WithIndent("  ")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(golden), string(got)+"\n"); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFlatListFaults(t *testing.T) {
	sys := with(t, map[string]string{"GATEWAY_API_KEY": "k", "GW_KEY": "k"})
	t.Setenv("GW_BLANK", " ")
	const note = "FILE is a flat list of providers: each entry becomes a provider and an alias\nFILE has no keys: the gateway's key is the one in GATEWAY_API_KEY\n"
	tests := []struct{ name, text, want string }{
		{
			"good", `[{"alias":"chat","base_url":"https://x.test/v1","upstream_model":"m","api_key_env":"GW_KEY","retries":3}]`,
			note + "FILE is valid: 1 providers, 1 aliases, 0 keys\n",
		},
		{
			"an empty variable's name is no key", `{"providers":[{"alias":"chat","base_url":"https://x.test/v1","upstream_model":"m","api_key_env":"","retries":null}]}`,
			note + "FILE is valid: 1 providers, 1 aliases, 0 keys\n",
		},
		{
			"missing variables", `[
{"alias":"a","base_url":"https://x.test","upstream_model":"m","api_key_env":""},
{"alias":"b","base_url":"https://x.test/v1","upstream_model":"m",
 "api_key_env":"GW_UNSET"},
{"alias":"c","base_url":"https://x.test/v1","upstream_model":"m",
 "api_key_env":"GW_BLANK"}]`,
			"FILE:4: [1].api_key_env: the environment variable GW_UNSET is not set\nFILE:6: [2].api_key_env: the environment variable GW_BLANK is empty\n",
		},
		{
			"a key in place of a variable's name is not repeated", `[{"alias":"a","base_url":"https://x.test","upstream_model":"m","api_key_env":"sk-proj-SECRET"}]`,
			"FILE:1: [0].api_key_env: must be the name of an environment variable that holds the key, or empty for no key\n",
		},
		{
			"everything at once", `{"providers":[
{"alias":"a",
 "colour":1},
{"alias":"a","base_url":"ftp://x.test","upstream_model":"m",
 "input_price_per_million":"cheap",
 "output_price_per_million":-1,
 "max_concurrency":"4",
 "timeout_seconds":"soon",
 "retries":1.5,
 "backoff_base_seconds":-1},
"b"]}`,
			`FILE:2: providers[0].base_url: is missing; an entry needs alias, base_url and upstream_model
FILE:2: providers[0].upstream_model: is missing; an entry needs alias, base_url and upstream_model
FILE:3: providers[0].colour: unknown member; a flat list knows alias, base_url, upstream_model, api_key_env, input_price_per_million, output_price_per_million, max_concurrency, timeout_seconds, retries, backoff_base_seconds
FILE:5: providers[1].input_price_per_million: must be a decimal number such as "2.50", not "cheap"
FILE:7: providers[1].max_concurrency: must be a whole number, not "4"
FILE:8: providers[1].timeout_seconds: must be a number of seconds such as 30 or 0.5
FILE:9: providers[1].retries: must be a whole number, not 1.5
FILE:10: providers[1].backoff_base_seconds: must be a number of seconds such as 30 or 0.5
FILE:11: providers[2]: an entry must be an object
`,
		},
		{
			"meaning", `[
{"alias":"a","base_url":"ftp://x.test","upstream_model":"m"},
{"alias":"b","base_url":"https://x.test","upstream_model":"m"},
{"alias":"b","base_url":"https://x.test","upstream_model":"",
 "retries":-1,
 "max_concurrency":-1}]`,
			`FILE:2: [0]: openai: provider "a": BaseURL must begin with http:// or https://
FILE:4: [2].alias: there are two aliases "b"
FILE:4: [2].upstream_model: a candidate needs the model's name at the provider
FILE:5: [2].retries: must not be negative: -1
FILE:6: [2].max_concurrency: must not be negative: -1
`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, got := check(t, sys, write(t, "providers.json", test.text))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if good := strings.Contains(test.want, "is valid"); good != (code == 0) {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// The whole way: a flat list, a key for the callers from the environment, a call, and what it cost.
func TestFlatListServes(t *testing.T) {
	upstream := gatewaytest.NewUpstream(t, gatewaytest.AnswerJSON(`{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000000,"completion_tokens":1000000,"total_tokens":2000000}}`))
	sys := with(t, map[string]string{"GATEWAY_API_KEY": "gateway-secret", "GW_KEY": "upstream-secret"})
	file := write(t, "providers.json", `{"providers":[{"alias":"chat","base_url":"`+upstream.URL()+`","upstream_model":"real","api_key_env":"GW_KEY","input_price_per_million":0.1,"output_price_per_million":0.2}]}`)
	base, out, _ := start(t, sys, "-config", file)
	res := send(t, "POST", base+"/v1/chat/completions", "gateway-secret", `{"model":"chat","messages":[]}`)
	if status, body := read(t, res); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if cost := res.Header.Get("X-Gateway-Cost-USD"); cost != "0.300000" {
		t.Errorf("a million tokens at 0.1 and as many at 0.2 cost %s", cost)
	}
	received := upstream.Requests()
	if len(received) != 1 || received[0].Header.Get("Authorization") != "Bearer upstream-secret" || string(received[0].Body) != `{"model":"real","messages":[]}` {
		t.Errorf("the upstream received %+v", received)
	}
	for _, secret := range []string{"gateway-secret", "upstream-secret"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%s is printed:\n%s", secret, out)
		}
	}
}
