package calls

import (
	_ "github.com/gatewright/gateway"
	_ "github.com/go-json-experiment/json"
	_ "github.com/openai/openai-go/v3"
	_ "github.com/sashabaranov/go-openai"
	_ "github.com/mozilla-ai/any-llm-go"
	_ "github.com/mozilla-ai/any-llm-go/providers/openai"
)
