package gateway_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/gatewright/gateway"
)

// What the gateway adds to a call beside the provider and the HTTP surface.
func BenchmarkDo(b *testing.B) {
	usage := gateway.Usage{Input: 100, Output: 50}
	body := []byte(`{}`)
	p := provider{"cloud", func(context.Context, *gateway.Request) (*gateway.Response, error) {
		return &gateway.Response{Body: body, Usage: &usage}, nil
	}}
	c := candidate("cloud")
	c.MaxConcurrency = 64
	client, err := gateway.New(gateway.WithProvider(p), gateway.WithAlias(alias(c)),
		gateway.WithLogger(slog.New(slog.DiscardHandler)),
		gateway.WithRecorder(gateway.RecorderFunc(func(context.Context, *gateway.Record) {})))
	if err != nil {
		b.Fatal(err)
	}
	request := []byte(chatBody)
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			req, err := gateway.NewRequest(gateway.APIChat, request)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := client.Do(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				req, err := gateway.NewRequest(gateway.APIChat, request)
				if err != nil {
					b.Error(err)
					return
				}
				if _, err := client.Do(b.Context(), req); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
