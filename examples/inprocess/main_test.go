package main

import (
	"context"
	"os"

	"github.com/gatewright/gateway/providers/echo"
)

func Example() {
	if err := run(context.Background(), os.Stdout, echo.New("local")); err != nil {
		panic(err)
	}
	// Output:
	// Hello, gateway
	// Hello, stream
}
