package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers"
)

// maxFile bounds what is read as a configuration.
const maxFile = 4 << 20

// loaded is a configuration that has been read, and the Client that it describes.
type loaded struct {
	config   gateway.Config
	client   *gateway.Client
	document *document
	logger   *slog.Logger
	notes    []string // what is to be said about the way it was read
}

// load reads a configuration file and makes its Client. The error lists everything that is wrong, with file and line.
func load(file string, log io.Writer) (*loaded, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	d, faults := parse(file, text)
	if len(faults) > 0 {
		return nil, &fileError{file, faults}
	}
	result := &loaded{document: d}
	wrong := &fileError{file: file}
	if list, ok := d.flatList(); ok {
		result.document, wrong.faults = list.document()
		result.notes = append(result.notes, file+" is a flat list of providers: each entry becomes a provider and an alias")
	}
	// What could be read of a configuration with faults is checked further, so that they are all found at once.
	result.config, err = gateway.ParseConfig(result.document.json)
	wrong.add(result.document, err)
	result.logger = newLogger(result.config.Log, log)
	result.client, err = newClient(result.config, result.logger)
	wrong.add(result.document, err)
	if len(wrong.faults) == 0 {
		return result, nil
	}
	if result.client != nil {
		closeNow(result.client)
	}
	return nil, wrong
}

func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("cannot read the configuration: %s has more than %d bytes", file, maxFile)
	default:
		return text, nil
	}
}

func newClient(c gateway.Config, logger *slog.Logger) (*gateway.Client, error) {
	return gateway.New(
		gateway.WithConfig(c, providers.Open), gateway.WithLogger(logger), gateway.WithRecorder(gateway.LogRecorder(logger)),
	)
}

// closeNow closes a Client that has no calls to wait for.
func closeNow(client *gateway.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = client.Close(ctx)
}

// checkConfig checks a configuration as far as it can be without serving it, and returns the exit code.
func checkConfig(ctx context.Context, o options, stdout, stderr io.Writer, sys system) int {
	if o.config == "" {
		fmt.Fprintln(stderr, "server: -check needs -config FILE")
		return 2
	}
	s, err := prepare(ctx, o, stderr, sys)
	if err != nil {
		fmt.Fprintln(stderr, message(err))
		return 1
	}
	closeNow(s.client)
	for _, note := range s.notes {
		fmt.Fprintln(stdout, note)
	}
	fmt.Fprintf(stdout, "%s is valid: %d providers, %d aliases, %d keys\n",
		o.config, len(s.config.Providers), len(s.config.Models), len(s.config.Keys)+len(s.config.Master.Keys))
	return 0
}
