package jsonpatch_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/internal/jsonpatch"
)

// request returns a chat request with that much text.
func request(size int) []byte {
	return []byte(`{"model":"chat-smart","stream":true,"messages":[{"role":"system","content":"You are a helpful assistant."},` +
		`{"role":"user","content":"` + strings.Repeat("hello, \\n", size/9) + `"}],"temperature":0.5,"max_tokens":500}`)
}

// sizes returns the documents of the benchmarks by size.
func sizes() map[string][]byte {
	return map[string][]byte{"300B": request(120), "100KB": request(100_000)}
}

// BenchmarkFloor is what validation alone takes.
func BenchmarkFloor(b *testing.B) {
	for name, doc := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if !jsontext.Value(doc).IsValid() {
					b.Fatal("invalid")
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, doc := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonpatch.Parse(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkApplyModel(b *testing.B) {
	for name, doc := range sizes() {
		b.Run(name, func(b *testing.B) {
			object, err := jsonpatch.Parse(doc)
			if err != nil {
				b.Fatal(err)
			}
			edit := set("model", `"gpt-4o-2024-08-06"`)
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				object.Apply(edit)
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	b.Run("string", func(b *testing.B) { benchmarkFind(b, chunk) })
	b.Run("value", func(b *testing.B) { benchmarkFind(b, jsontext.Value(chunk)) })
}

func benchmarkFind[T ~string | ~[]byte](b *testing.B, object T) {
	b.Helper()
	b.SetBytes(int64(len(object)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := jsonpatch.Find(object, "usage"); !ok {
			b.Fatal("not found")
		}
	}
}
