package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-rounds", "1", "-window", "1ms", "-events", "5"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"**A plain call**", "**An event of a stream**", "| floor | ", "| gateway | ", "| any-llm-go | "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing from\n%s", want, out.String())
		}
	}
}
