package gateway

import (
	"math/rand/v2"
	"testing"

	"github.com/shopspring/decimal"
)

func TestUSDSumIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	var sum usdSum
	want := decimal.Zero
	for range 5000 {
		usd := decimal.New(random.Int64N(1<<random.IntN(63)), int32(random.IntN(30)-20))
		if random.IntN(50) == 0 {
			usd = usd.Mul(usd).Mul(usd).Neg()
		}
		sum.add(usd)
		want = want.Add(usd)
	}
	for range 3 {
		usd := decimal.New(9_000_000, 0) // three of them are more than an int64 holds
		sum.add(usd)
		want = want.Add(usd)
	}
	if got := sum.total(); !got.Equal(want) {
		t.Errorf("the sum is %s, want %s", got, want)
	}
}
