package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers"
)

type options struct {
	config string
	listen string
	public bool
}

// loaded is a configuration and what is to be said about the way it was read.
type loaded struct {
	config gateway.Config
	notes  []string
}

// load reads a configuration file. The error says file and line of everything that is wrong.
func load(file string) (*loaded, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	document, err := parseYAML(text)
	if err != nil {
		return nil, &configError{file: file, problems: []located{{problem: gateway.Problem{Message: err.Error()}}}}
	}
	result := &loaded{}
	if flat, ok := document.flatList(); ok {
		result.notes = append(result.notes, fmt.Sprintf("%s is a flat list of providers; each entry becomes a provider and an alias", file))
		if document, err = fromFlat(flat); err != nil {
			return nil, locate(file, err, document)
		}
	}
	if result.config, err = gateway.ParseConfig(document.json); err != nil {
		return nil, locate(file, err, document)
	}
	return result, nil
}

// build makes the Client of a configuration. The error says file and line.
func build(file string, c gateway.Config, options ...gateway.Option) (*gateway.Client, error) {
	client, err := gateway.New(append([]gateway.Option{gateway.WithConfig(c, providers.Open)}, options...)...)
	if err == nil || file == "" {
		return client, err
	}
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		return nil, err
	}
	document, parseErr := parseYAML(text)
	if parseErr != nil {
		return nil, err
	}
	return nil, locate(file, err, document)
}

// configError is everything that is wrong with a configuration file.
type configError struct {
	file     string
	problems []located
}

type located struct {
	problem gateway.Problem
	line    int // 0 if unknown
}

func (e *configError) Error() string {
	lines := make([]string, len(e.problems))
	for i, p := range e.problems {
		at := e.file
		if p.line > 0 {
			at = fmt.Sprintf("%s:%d", e.file, p.line)
		}
		lines[i] = at + ": " + (gateway.Problems{p.problem}).Error()
	}
	return strings.Join(lines, "\n")
}

// locate adds file and line to the problems in err.
func locate(file string, err error, d *document) error {
	var problems gateway.Problems
	if !errors.As(err, &problems) {
		return fmt.Errorf("%s: %w", file, err)
	}
	e := &configError{file: file}
	for _, p := range problems {
		e.problems = append(e.problems, located{p, d.line(p.Path)})
	}
	return e
}

func checkConfig(o options, stdout, stderr io.Writer) int {
	if o.config == "" {
		fmt.Fprintln(stderr, "server: -check needs -config FILE")
		return 2
	}
	l, err := load(o.config)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	client, err := build(o.config, l.config)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	closeNow(client)
	for _, note := range l.notes {
		fmt.Fprintln(stdout, note)
	}
	fmt.Fprintf(stdout, "%s is valid: %d providers, %d aliases, %d keys\n", o.config, len(l.config.Providers), len(l.config.Models),
		len(l.config.Keys)+len(l.config.Master.Keys))
	return 0
}
