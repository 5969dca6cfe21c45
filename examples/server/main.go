// Server is the gateway as a process of its own: OpenAI's interface over HTTP, configured by a file or by nothing at all.
//
//	server [-config FILE] [-listen HOST:PORT] [-check] [-version] [-without-keys]
//
// Without a configuration it serves the providers whose usual key variables are set, a local Ollama, and the offline model
// demo, and prints a key and a curl line to try.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, system{getenv: os.Getenv, probe: probe}))
}

type options struct {
	config      string
	listen      string
	withoutKeys bool
}

// system is what the server asks of the machine that it runs on.
type system struct {
	getenv func(string) string
	probe  func(ctx context.Context, base, key string) ([]string, error) // the models of an upstream, by its list
}

const usage = `Usage: server [flags]

Serves OpenAI's interface in front of many providers. Without -config it serves the providers whose usual key variables
are set (OPENAI_API_KEY, …), a local Ollama, and the offline model demo.

`

// run is main, with everything that it touches as a parameter. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, sys system) int {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	var o options
	flags.StringVar(&o.config, "config", "", "configuration `file`: YAML, JSON, or a flat providers.json list")
	flags.StringVar(&o.listen, "listen", "", "`address` to listen on, instead of the configuration's (default 127.0.0.1:9000)")
	flags.BoolVar(&o.withoutKeys, "without-keys", false,
		"listen beyond this machine although no key is configured; every call is refused until there is one")
	check := flags.Bool("check", false, "check the configuration and exit")
	version := flags.Bool("version", false, "print the version and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "server: unexpected argument %q; flags come as -name value\n", flags.Arg(0))
		return 2
	case *version:
		fmt.Fprintln(stdout, versionText())
		return 0
	}
	if *check {
		return checkConfig(ctx, o, stdout, stderr, sys)
	}
	if err := serve(ctx, o, stdout, stderr, sys); err != nil {
		fmt.Fprintln(stderr, message(err))
		return 1
	}
	return 0
}

// message is an error as it is printed: those of a configuration begin with their own place.
func message(err error) string {
	if _, ok := errors.AsType[*fileError](err); ok {
		return err.Error()
	}
	return "server: " + err.Error()
}

func versionText() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("gateway server %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
