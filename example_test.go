package gateway_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
	"github.com/gatewright/gateway/providers/echo"
)

func demo(options ...gateway.Option) *gateway.Client {
	client, err := gateway.New(append(options,
		gateway.WithProvider(echo.New("local")),
		gateway.WithAlias(gateway.Alias{
			Name: "demo",
			Candidates: []gateway.Candidate{{
				Provider: "local", Model: "echo",
				Price: &gateway.Price{Input: gateway.USD("2"), Output: gateway.USD("8")},
			}},
		}))...)
	if err != nil {
		panic(err)
	}
	return client
}

func ExampleClient_Chat() {
	client := demo()
	answer, err := client.Chat(context.Background(), gateway.ChatRequest{
		Model:    "demo",
		Messages: []gateway.Message{gateway.SystemMessage("Be brief."), gateway.UserMessage("Hello")},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Text())
	// Output: Hello
}

func ExampleClient_ChatStream() {
	client := demo()
	stream, err := client.ChatStream(context.Background(), gateway.ChatRequest{
		Model: "demo", Messages: []gateway.Message{gateway.UserMessage("one two three")},
	})
	if err != nil {
		panic(err)
	}
	var sum gateway.ChatAccumulator
	for chunk, err := range stream.All() {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%q,", chunk.Text())
		sum.Add(chunk)
	}
	fmt.Println()
	fmt.Println(sum.Response().Text(), stream.Record().CostUSD)
	// Output:
	// "","one ","two ","three","",
	// one two three 0.00003
}

// The document goes to the upstream as it is, but for the model.
func ExampleClient_Do() {
	client := demo()
	req, err := gateway.NewRequest(gateway.APIChat, []byte(`{"model":"demo", "x_vendor":9007199254740993,
		"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		panic(err)
	}
	res, err := client.Do(context.Background(), req)
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Record.Provider, res.Record.Usage.PromptTokens(), res.Record.CostUSD.StringFixed(6))
	// Output: local 1 0.000010
}

func ExampleClient_Embed() {
	client := demo()
	answer, err := client.Embed(context.Background(), gateway.EmbeddingRequest{
		Model: "demo", Input: gateway.EmbedTexts("one", "two"),
	})
	if err != nil {
		panic(err)
	}
	for i := range answer.Data {
		vector, err := answer.Data[i].Vector()
		fmt.Println(answer.Data[i].Index, len(vector) > 0, err)
	}
	// Output:
	// 0 true <nil>
	// 1 true <nil>
}

func ExampleClient_Explain() {
	client := demo()
	req, err := gateway.NewRequest(gateway.APIChat, []byte(`{"model":"demo","max_tokens":1000,"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		panic(err)
	}
	explanation, err := client.Explain(context.Background(), req)
	if err != nil {
		panic(err)
	}
	for _, c := range explanation.Candidates {
		fmt.Println(c.Provider, c.Usable, c.Reason, "at most", c.WorstCostUSD)
	}
	// Output: local true ready at most 0.008012
}

// What is known of a failed call is in its error.
func ExampleError() {
	busy := gatewaytest.NewProvider("cloud", gatewaytest.Status(429).WithRetryAfter("30"))
	client, err := gateway.New(gateway.WithProvider(busy), gateway.WithAlias(gateway.Alias{
		Name:       "chat",
		Candidates: []gateway.Candidate{{Provider: "cloud", Model: "m"}},
		Retry:      gateway.DefaultRetryPolicy{},
	}))
	if err != nil {
		panic(err)
	}
	_, err = client.Chat(context.Background(), gateway.ChatRequest{Model: "chat"})
	if failure, ok := errors.AsType[*gateway.Error](err); ok {
		fmt.Println(failure.Status, failure.Outcome, failure.RetryAfter, errors.Is(err, gateway.ErrUpstreamLimit))
	}
	// Output: 429 refused 30s true
}

// A middleware is a function around a Handler.
func ExampleWithMiddleware() {
	tag := func(next gateway.Handler) gateway.Handler {
		return gateway.HandlerFunc(func(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
			tagged := req.Clone()
			body, err := req.Rewrite(gateway.Edit{Name: "user", Value: []byte(`"team-7"`)})
			if err != nil {
				return nil, err
			}
			return next.Do(ctx, tagged.WithBody(body))
		})
	}
	client := demo(gateway.WithMiddleware(tag), gateway.WithRecorder(gateway.RecorderFunc(
		func(_ context.Context, r *gateway.Record) { fmt.Println(r.ModelRequested, r.Outcome) })))
	if _, err := client.Chat(context.Background(), gateway.ChatRequest{
		Model: "demo", Messages: []gateway.Message{gateway.UserMessage("Hello")},
	}); err != nil {
		panic(err)
	}
	// Output: demo success
}
