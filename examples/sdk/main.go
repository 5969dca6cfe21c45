// Sdk gives the official OpenAI SDK the gateway as its transport: the program keeps its SDK code, and the calls are
// routed, retried, costed and recorded inside the process, with no socket between.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/examples/openaihttp"
	"github.com/gatewright/gateway/providers/echo"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	client, err := gateway.New(
		gateway.WithProvider(echo.New("local")),
		gateway.WithAlias(gateway.Alias{
			Name:       "demo",
			Candidates: []gateway.Candidate{{Provider: "local", Model: "echo"}},
		}),
	)
	if err != nil {
		return err
	}
	defer client.Close(ctx)

	sdk := openai.NewClient(
		option.WithHTTPClient(&http.Client{Transport: openaihttp.Transport(client)}),
		option.WithBaseURL("http://gateway/v1"), // nothing is dialled
		option.WithAPIKey("not needed"),
		option.WithMaxRetries(0), // the gateway retries
	)
	params := openai.ChatCompletionNewParams{
		Model:    "demo",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello, SDK")},
	}
	answer, err := sdk.Chat.Completions.New(ctx, params)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, answer.Choices[0].Message.Content)

	stream := sdk.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	for stream.Next() {
		if choices := stream.Current().Choices; len(choices) > 0 {
			fmt.Fprint(out, choices[0].Delta.Content)
		}
	}
	fmt.Fprintln(out)
	return stream.Err()
}
