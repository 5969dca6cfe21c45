package main

import (
	"context"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The test's own program is started in the other roles.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := runRole(context.Background(), role, os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Everybody answers rightly, and the gateway counts every call. What it took is not looked at.
func TestMeasure(t *testing.T) {
	t.Setenv(pauseVariable, "20ms")
	s := settings{
		rounds: 2, window: 5 * time.Millisecond, only: regexp.MustCompile(`300 B, 16|100 KB, 1 |a write, 16`), streams: 5,
		roles: []string{roleReverse, rolePooled, roleLean, roleGateway, nameDirect}, profile: t.TempDir(),
	}
	r, err := measure(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.scenarios) != 4 {
		t.Errorf("%d scenarios", len(r.scenarios))
	}
	for _, scenario := range r.scenarios {
		for _, role := range s.roles {
			if n := len(r.readings[scenario.name][role]); n != s.rounds {
				t.Errorf("%s, %s: %d readings, want %d", scenario.name, role, n, s.rounds)
			}
		}
	}
	var out strings.Builder
	r.write(&out)
	r.writeMarks(&out)
	for _, want := range []string{"**plain, 300 B, 16 conns**", "| gateway | ", "**Memory, 5 open streams**", "| KiB per open stream | "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing from\n%s", want, out.String())
		}
	}
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"-quick", "-rounds", "5", "-roles", "ReverseProxy+pool,gateway"})
	if err != nil {
		t.Fatal(err)
	}
	if s.rounds != 5 || s.streams != 200 || strings.Join(s.roles, "|") != "ReverseProxy+pool|gateway" {
		t.Errorf("got %+v", s)
	}
	if _, err := parse([]string{"-run", "("}); err == nil {
		t.Error("an expression that is none was taken")
	}
}

func TestMarks(t *testing.T) {
	for _, test := range []struct {
		name    string
		given   mark
		reached bool
	}{
		{"above a minimum", mark{got: 1.2, limit: 1.1, least: true}, true},
		{"below a minimum", mark{got: 1.0, limit: 1.1, least: true}, false},
		{"at a minimum", mark{got: 1.1, limit: 1.1, least: true}, true},
		{"below a maximum", mark{got: 0.9, limit: 0.95}, true},
		{"above a maximum", mark{got: 1.0, limit: 0.95}, false},
		{"at a maximum", mark{got: 0.95, limit: 0.95}, true},
	} {
		if got := test.given.reached(); got != test.reached {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// The marks are taken from the ratios of rounds, not from the medians of each.
func TestMarksArePaired(t *testing.T) {
	s := scenario{"plain, 300 B, 1 conns", modePlain, 300, 1}
	r := &results{scenarios: []scenario{s}, readings: make(map[string]map[string][]reading)}
	for _, slow := range []float64{1, 1, 10} {
		r.add(s, roleReverse, reading{rate: 100 / slow, cpu: 100 * slow, latency: 100 * slow})
		r.add(s, roleGateway, reading{rate: 120 / slow, cpu: 90 * slow, latency: 110 * slow})
	}
	want := []float64{1.2, 0.9, 1.1}
	for i, m := range r.marks() {
		if math.Abs(m.got-want[i]) > 1e-9 {
			t.Errorf("%s: got %v, want %v", m.what, m.got, want[i])
		}
	}
}

func TestParseHex(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "a": 10, "fF": 255, "1000": 4096} {
		if got, err := parseHex([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "g", "123456789", "-1", "1;x"} {
		if got, err := parseHex([]byte(text)); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}
