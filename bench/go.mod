module github.com/gatewright/gateway/bench

go 1.26.0

replace github.com/gatewright/gateway => ../

require (
	github.com/gatewright/gateway v0.0.0
	github.com/go-json-experiment/json v1.27.2
	github.com/mozilla-ai/any-llm-go v0.8.0
	github.com/openai/openai-go/v3 v3.100.0
	github.com/sashabaranov/go-openai v1.43.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/openai/openai-go v1.12.0 // indirect
	github.com/shopspring/decimal v1.6.0 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/tmaxmax/go-sse v0.12.0 // indirect
)
