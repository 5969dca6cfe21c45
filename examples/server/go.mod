module github.com/gatewright/gateway/examples/server

go 1.26

require (
	github.com/gatewright/gateway v0.0.0
	github.com/go-json-experiment/json v1.27.2
	github.com/google/go-cmp v0.7.0
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/net v0.55.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/shopspring/decimal v1.6.0 // indirect
	github.com/tmaxmax/go-sse v0.12.0 // indirect
)

replace github.com/gatewright/gateway => ../..
