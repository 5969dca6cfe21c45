package gatewaytest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/gatewaytest"
)

// strikes says for each of n calls whether the fault struck it.
func strikes(t *testing.T, n int, faults ...gatewaytest.Fault) string {
	t.Helper()
	i := gatewaytest.Inject(gatewaytest.NewProvider("cloud", gatewaytest.AnswerJSON(".")), faults...)
	var b strings.Builder
	struck := 0
	for range n {
		got := play(t.Context(), i, request(t, plainBody))
		if got != "." {
			got = "X"
			struck++
		}
		b.WriteString(got)
	}
	if i.Calls() != n || i.Injected() != struck {
		t.Errorf("%d calls, %d injected; want %d, %d", i.Calls(), i.Injected(), n, struck)
	}
	return b.String()
}

func TestEveryStrikesTheNth(t *testing.T) {
	fail := gatewaytest.Instead(gatewaytest.FailWith(gateway.OutcomeRefused))
	if got, want := strikes(t, 10, gatewaytest.Every(3, fail)), "..X..X..X."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := strikes(t, 6, gatewaytest.Every(2, fail), gatewaytest.Every(3, fail), gatewaytest.Every(0, fail)), ".XXX.X"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRateIsDeterministic(t *testing.T) {
	fail := gatewaytest.Instead(gatewaytest.FailWith(gateway.OutcomeRefused))
	first := strikes(t, 1000, gatewaytest.Rate(0.2, 1, fail))
	if diff := cmp.Diff(first, strikes(t, 1000, gatewaytest.Rate(0.2, 1, fail))); diff != "" {
		t.Errorf("the same seed strikes other calls:\n%s", diff)
	}
	if first == strikes(t, 1000, gatewaytest.Rate(0.2, 2, fail)) {
		t.Error("another seed strikes the same calls")
	}
	if n := strings.Count(first, "X"); n < 150 || n > 250 {
		t.Errorf("%d of 1000 calls struck at a rate of 0.2", n)
	}
	if n := strings.Count(strikes(t, 100, gatewaytest.Rate(1, 3, fail)), "X"); n != 100 {
		t.Errorf("%d of 100 calls struck at a rate of 1", n)
	}
	if n := strings.Count(strikes(t, 100, gatewaytest.Rate(0, 3, fail)), "X"); n != 0 {
		t.Errorf("%d of 100 calls struck at a rate of 0", n)
	}
}

func TestEffectsOnStreams(t *testing.T) {
	for _, test := range []struct {
		name   string
		effect gateway.Middleware
		want   []string
	}{
		{"cut", gatewaytest.Cut(2, gateway.OutcomeInterrupted), []string{"opening", "a", "error: interrupted"}},
		{"cut before anything", gatewaytest.Cut(0, gateway.OutcomeUnknown), []string{"error: unknown"}},
		{"cut later than its end", gatewaytest.Cut(9, gateway.OutcomeUnknown), []string{"opening", "a", "b", "finish"}},
	} {
		p := gatewaytest.NewProvider("cloud", gatewaytest.Stream("a", "b"))
		got := play(t.Context(), gatewaytest.Inject(p, gatewaytest.Every(1, test.effect)), request(t, streamBody))
		var lines []string
		for line := range strings.SplitSeq(got, "\n") {
			switch {
			case strings.Contains(line, `"role"`):
				line = "opening"
			case strings.Contains(line, `"content":"a"`):
				line = "a"
			case strings.Contains(line, `"content":"b"`):
				line = "b"
			case strings.HasPrefix(line, "finished"):
				line = "finish"
			}
			lines = append(lines, line)
		}
		if diff := cmp.Diff(test.want, lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if p.Running() != 0 {
			t.Errorf("%s: %d streams are open", test.name, p.Running())
		}
		plain := play(t.Context(), gatewaytest.Inject(p, gatewaytest.Every(1, test.effect)), request(t, plainBody))
		if !strings.Contains(plain, `"content":"ab"`) {
			t.Errorf("%s: a plain answer is touched: %s", test.name, plain)
		}
	}
}

func TestStallAndPanicWithinAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gatewaytest.NewProvider("cloud", gatewaytest.Stream("a", "b"))
		i := gatewaytest.Inject(p, gatewaytest.Every(1, gatewaytest.Stall(1)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got := play(ctx, i, request(t, streamBody)); !strings.HasSuffix(got, "\nerror: canceled") || p.Running() != 0 {
			t.Errorf("stall: %s; %d running", got, p.Running())
		}

		i = gatewaytest.Inject(p, gatewaytest.Every(1, gatewaytest.PanicAfter(1, "boom")))
		defer func() {
			if cause := recover(); cause != "boom" || p.Running() != 0 {
				t.Errorf("recovered %v; %d running", cause, p.Running())
			}
		}()
		play(t.Context(), i, request(t, streamBody))
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := gatewaytest.Inject(gatewaytest.NewProvider("cloud"), gatewaytest.Every(1, gatewaytest.Delay(time.Second)))
		began := time.Now()
		if play(t.Context(), i, request(t, plainBody)); time.Since(began) != time.Second {
			t.Errorf("answered after %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := i.Do(ctx, request(t, plainBody)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who leaves: %v", err)
		}
	})
}

func TestInjectorIsTheProvider(t *testing.T) {
	p := gatewaytest.NewProvider("cloud").Bound(3)
	i := gatewaytest.Inject(p)
	if i.Name() != "cloud" || i.MaxConcurrency() != 3 {
		t.Errorf("name %s, bound %d", i.Name(), i.MaxConcurrency())
	}
	if err := i.Close(); err != nil || !p.Closed() {
		t.Errorf("Close: %v; the provider is closed: %v", err, p.Closed())
	}
	bare := gatewaytest.Inject(gateway.NewProvider("bare", gatewaytest.Answer("hi")))
	if bare.MaxConcurrency() != 0 || bare.Close() != nil {
		t.Error("a provider without bound and Close")
	}
}
