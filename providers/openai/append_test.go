package openai_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/providers/openai"
)

// What AppendBuffered passes on as text is what Next gives one by one, and the call's record comes out the same.
func TestAppendBufferedAgreesWithNext(t *testing.T) {
	escaped := strings.Replace(textChunk, "hello", `a \"b\" \n`, 1)
	long := strings.Replace(textChunk, "hello", strings.Repeat("x", 40_000), 1)
	for name, text := range map[string]string{
		"burst":              frames(roleChunk, textChunk, escaped, textChunk, finishChunk, usageChunk, "[DONE]"),
		"several data lines": "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"x\"}}]}\n\n" + frames(finishChunk, "[DONE]"),
		"CRLF":               strings.ReplaceAll(frames(roleChunk, textChunk, finishChunk, "[DONE]"), "\n", "\r\n"),
		"large events":       frames(roleChunk, long, textChunk, long, textChunk, finishChunk, usageChunk, "[DONE]"),
		"cut":                frames(roleChunk, textChunk, textChunk),
		"error":              frames(roleChunk, textChunk, textChunk, `{"error":{"message":"no more"}}`),
		"no end":             frames(roleChunk, textChunk, finishChunk),
	} {
		for _, body := range []string{
			`{"model":"alias","stream":true,"messages":[]}`,
			`{"model":"alias","stream":true,"stream_options":{"include_usage":true},"messages":[]}`,
		} {
			t.Run(name, func(t *testing.T) {
				p := streamServer(t, text)
				want, wantRecord := readStream(t, p, body, false)
				got, gotRecord := readStream(t, p, body, true)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("text (-Next +AppendBuffered):\n%s", diff)
				}
				if gotRecord.Usage != wantRecord.Usage || gotRecord.Outcome != wantRecord.Outcome ||
					gotRecord.UsageSource != wantRecord.UsageSource || gotRecord.ErrorCode != wantRecord.ErrorCode {
					t.Errorf("record %+v, want %+v", gotRecord, wantRecord)
				}
			})
		}
	}
}

func readStream(t *testing.T, p *openai.Provider, body string, buffered bool) (text string, record *gateway.Record) {
	t.Helper()
	client, err := gateway.New(gateway.WithProvider(p), gateway.WithAlias(gateway.Alias{
		Name: "alias", Candidates: []gateway.Candidate{{Provider: p.Name(), Model: "m"}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	req := chat(t, body)
	res, err := client.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Stream.Close()
	var out []byte
	for {
		event, err := res.Stream.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				out = append(out, "error: "+gateway.AsError(err).Code...)
			}
			return string(out), res.Record
		}
		out = append(out, "data: "+strings.NewReplacer("\n", " ").Replace(event.Data)+"\n\n"...)
		if buffered {
			out = res.Stream.AppendBuffered(out, len(out)+10_000)
		}
	}
}
