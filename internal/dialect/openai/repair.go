package openai

import "github.com/gatewright/gateway"

// repair fills in what strict SDKs want.
type repair struct{}

func (r *repair) chunk(data string) string { return data }

// eventsOf makes a stream of a plain answer.
func eventsOf(response *gateway.Response, wantsUsage bool) []gateway.Event {
	return nil
}
