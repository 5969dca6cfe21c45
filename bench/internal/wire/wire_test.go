package wire_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway/bench/internal/wire"
)

func TestRequestIsJSONOfTheGivenSize(t *testing.T) {
	for _, size := range []int{300, 1300, 10_000, 100_000} {
		body := wire.Request(wire.Alias, "plain", size, false)
		if !jsontext.Value(body).IsValid() {
			t.Errorf("%d: not valid JSON: %.200s", size, body)
		}
		if n := len(body); n < size*8/10 || n > size*12/10 {
			t.Errorf("a request of %d bytes has %d", size, n)
		}
	}
}

func TestAnswerAndEvents(t *testing.T) {
	answer := wire.Answer()
	if !jsontext.Value(answer).IsValid() {
		t.Errorf("not valid JSON: %s", answer)
	}
	if n := len(answer); n < 550 || n > 750 {
		t.Errorf("the answer has %d bytes", n)
	}
	const n = 100
	events := wire.Events(n)
	if len(events) != n+4 {
		t.Fatalf("%d events", len(events))
	}
	total := 0
	for i, event := range events[:n+3] {
		data, ok := bytes.CutPrefix(event, []byte("data: "))
		if !ok || !bytes.HasSuffix(data, []byte("\n\n")) || bytes.Count(event, []byte("\n")) != 2 {
			t.Errorf("event %d is framed wrongly: %q", i, event)
		}
		if !jsontext.Value(data).IsValid() {
			t.Errorf("event %d is not valid JSON: %s", i, data)
		}
		total += len(event)
	}
	if mean := total / (n + 3); mean < 230 || mean > 330 {
		t.Errorf("an event has %d bytes in the mean", mean)
	}
	if string(events[n+3]) != "data: [DONE]\n\n" {
		t.Errorf("the last event is %q", events[n+3])
	}
}
