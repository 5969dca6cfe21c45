// Inprocess calls a model through the gateway inside one program, plain and streamed. The echo provider answers offline;
// openai.New takes its place for a real one.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers/echo"
)

func main() {
	if err := run(context.Background(), os.Stdout, echo.New("local")); err != nil {
		fmt.Fprintln(os.Stderr, "inprocess:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, provider gateway.Provider) error {
	client, err := gateway.New(
		gateway.WithProvider(provider),
		gateway.WithAlias(gateway.Alias{
			Name:       "chat-smart",
			Candidates: []gateway.Candidate{{Provider: "local", Model: "echo"}},
		}),
	)
	if err != nil {
		return err
	}
	defer client.Close(ctx)

	answer, err := client.Chat(ctx, gateway.ChatRequest{
		Model:    "chat-smart",
		Messages: []gateway.Message{gateway.UserMessage("Hello, gateway")},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, answer.Text())

	stream, err := client.ChatStream(ctx, gateway.ChatRequest{
		Model:    "chat-smart",
		Messages: []gateway.Message{gateway.UserMessage("Hello, stream")},
	})
	if err != nil {
		return err
	}
	for chunk, err := range stream.All() {
		if err != nil {
			return err
		}
		fmt.Fprint(out, chunk.Text())
	}
	fmt.Fprintln(out)
	return nil
}
