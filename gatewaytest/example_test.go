package gatewaytest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
)

func ExampleNewProvider() {
	provider := gatewaytest.NewProvider("cloud",
		gatewaytest.Status(503).WithRetryAfter("0"),
		gatewaytest.AnswerJSON(`{"choices":[{"message":{"content":"hi"}}]}`).WithUsage(gateway.Usage{Input: 100, Output: 50}))
	price := gateway.Price{Input: gateway.USD("2"), Output: gateway.USD("8")}
	client, err := gateway.New(gateway.WithProvider(provider), gateway.WithAlias(gateway.Alias{
		Name:       "chat-smart",
		Candidates: []gateway.Candidate{{Provider: "cloud", Model: "gpt-4o-2024-08-06", Price: &price}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer client.Close(ctx)

	req, err := gateway.NewRequest(gateway.APIChat, []byte(`{"model":"chat-smart","messages":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := client.Do(ctx, req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(res.Body))
	fmt.Println(provider.Calls(), "calls, for", provider.Requests()[0].Model)
	fmt.Println(res.Record.CostUSD.StringFixed(6), "USD")
	// Output:
	// {"choices":[{"message":{"content":"hi"}}]}
	// 2 calls, for gpt-4o-2024-08-06
	// 0.000600 USD
}

func ExampleStream() {
	provider := gatewaytest.NewProvider("cloud", gatewaytest.Stream("Hello", " world").ThenFail(&gateway.Error{
		Kind: gateway.ErrInterrupted, Status: http.StatusBadGateway, Outcome: gateway.OutcomeInterrupted,
	}))
	req, err := gateway.NewRequest(gateway.APIChat, []byte(`{"model":"m","stream":true,"messages":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := provider.Do(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range res.Stream.All() {
		fmt.Println(event.OutputBytes, errors.Is(err, gateway.ErrInterrupted))
	}
	// Output:
	// 0 false
	// 5 false
	// 6 false
	// 0 true
}

func ExampleStartUpstream() {
	upstream, err := gatewaytest.StartUpstream(
		gatewaytest.Status(http.StatusTooManyRequests).WithRetryAfter("2"),
		gatewaytest.Sequence(gatewaytest.Events(2), gatewaytest.Reset()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer upstream.Close()

	for range 2 {
		body := strings.NewReader(`{"model":"m","stream":true,"messages":[]}`)
		res, err := http.Post(upstream.URL()+"/v1/chat/completions", "application/json", body)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Println(res.StatusCode, res.Header.Get("Retry-After"), strings.Count(string(text), "data:"), err != nil)
	}
	fmt.Println(upstream.Count(), "requests")
	// Output:
	// 429 2 0 false
	// 200  2 true
	// 2 requests
}

func ExampleInject() {
	provider := gatewaytest.Inject(gatewaytest.NewProvider("cloud"),
		gatewaytest.Every(3, gatewaytest.Instead(gatewaytest.FailWith(gateway.OutcomeUnknown))))
	req, err := gateway.NewRequest(gateway.APIChat, []byte(`{"model":"m","messages":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 6 {
		_, err := provider.Do(context.Background(), req)
		fmt.Print(err != nil, " ")
	}
	fmt.Println()
	// Output: false false true false false true
}
