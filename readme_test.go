package gateway_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every Go snippet of the README stands in an example, where it is compiled and run.
func TestReadmeSnippetsAreInTheExamples(t *testing.T) {
	var sources strings.Builder
	err := filepath.WalkDir("examples", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sources.WriteString(withoutIndent(string(text)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(readme), "```go\n")
	if len(parts) == 1 {
		t.Fatal("the README has no Go snippet")
	}
	for _, part := range parts[1:] {
		snippet, _, _ := strings.Cut(part, "```")
		if !strings.Contains(sources.String(), withoutIndent(snippet)) {
			t.Errorf("no example contains this snippet of the README:\n%s", snippet)
		}
	}
}

func withoutIndent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
