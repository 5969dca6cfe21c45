module github.com/gatewright/gateway

go 1.26

require (
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/go-json-experiment/json v1.27.2
	github.com/google/go-cmp v0.7.0
	github.com/shopspring/decimal v1.6.0
	github.com/tmaxmax/go-sse v0.12.0
)
