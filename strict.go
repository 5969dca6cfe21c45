package gateway

// strictMembers are the outermost members that OpenAI's interface defines, by API: those that an Alias with Strict
// accepts. Source: OpenAI's API reference for chat completions and embeddings.
func strictMember(api API, name string) bool {
	switch name {
	case "model", "user":
		return true
	}
	if api == APIEmbeddings {
		switch name {
		case "input", "encoding_format", "dimensions":
			return true
		}
		return false
	}
	switch name {
	case "messages", "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
		"max_completion_tokens", "max_tokens", "metadata", "modalities", "moderation", "n", "parallel_tool_calls",
		"prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
		"reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream",
		"stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "verbosity",
		"web_search_options":
		return true
	}
	return false
}

// checkStrict refuses a body with an outermost member that OpenAI's interface does not define.
func checkStrict(req *Request) error {
	if err := req.parse(); err != nil {
		return err
	}
	for _, m := range req.object.Members() {
		if !strictMember(req.API, m.Name) {
			e := invalidParam(m.Name, "unknown parameter: "+quoteForMessage(m.Name))
			e.Code = "unknown_parameter"
			return e
		}
	}
	return nil
}
