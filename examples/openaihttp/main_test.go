package openaihttp_test

import (
	"testing"

	"github.com/gatewright/gateway/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }
