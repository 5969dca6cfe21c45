package gateway

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Tool is something that the model may call. The member that Type names is set.
type Tool struct {
	Type     string              `json:"type"` // function, custom, or what a server has of its own
	Function *FunctionDefinition `json:"function"`
	Custom   *CustomDefinition   `json:"custom"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (t *Tool) members(c *codec) {
	c.object(&t.origin, &t.Extra)
	c.text("type", &t.Type, required)
	pointer(c, "function", &t.Function)
	pointer(c, "custom", &t.Custom)
}

// FunctionDefinition describes a function to the model.
type FunctionDefinition struct {
	Name        string         `json:"name"` // A to Z, a to z, 0 to 9, _ and -; at most 64 of them
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"` // a JSON Schema of the arguments; nil for none
	Strict      *bool          `json:"strict"`     // whether the arguments must follow the schema; false by default

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (d *FunctionDefinition) members(c *codec) {
	c.object(&d.origin, &d.Extra)
	c.text("name", &d.Name, required)
	c.text("description", &d.Description, optional)
	c.raw("parameters", &d.Parameters)
	c.booleanPtr("strict", &d.Strict)
}

// CustomDefinition describes a custom tool, whose input is free text, to the model.
type CustomDefinition struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Format      jsontext.Value `json:"format"` // what the input must be like: text, or a grammar; text by default

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (d *CustomDefinition) members(c *codec) {
	c.object(&d.origin, &d.Extra)
	c.text("name", &d.Name, required)
	c.text("description", &d.Description, optional)
	c.raw("format", &d.Format)
}

// FunctionTool returns a tool that is a function. Parameters is a JSON Schema of its arguments; nil for none.
func FunctionTool(name, description string, parameters jsontext.Value) Tool {
	return Tool{Type: "function", Function: &FunctionDefinition{
		Name: name, Description: description, Parameters: parameters,
	}}
}

// CustomTool returns a tool whose input is free text.
func CustomTool(name, description string) Tool {
	return Tool{Type: "custom", Custom: &CustomDefinition{Name: name, Description: description}}
}

// ToolChoice says whether and what the model must call. It is made by [ToolMode], [ToolNamed], [CustomToolNamed] and
// [ToolsAllowed]. As a mode it is a string, otherwise an object.
type ToolChoice struct {
	Mode string // none, auto, required; empty when the choice is an object

	Type         string        `json:"type"` // function, custom, allowed_tools
	Function     *ToolName     `json:"function"`
	Custom       *ToolName     `json:"custom"`
	AllowedTools *AllowedTools `json:"allowed_tools"`
	Name         string        `json:"name"` // of the function, in the deprecated function_call; it has no type

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (t *ToolChoice) members(c *codec) {
	c.object(&t.origin, &t.Extra)
	c.text("type", &t.Type, optional)
	pointer(c, "function", &t.Function)
	pointer(c, "custom", &t.Custom)
	pointer(c, "allowed_tools", &t.AllowedTools)
	c.text("name", &t.Name, optional)
}

// MarshalJSON implements json.Marshaler.
func (t ToolChoice) MarshalJSON() ([]byte, error) {
	if t.Mode != "" {
		return jsontext.AppendQuote(nil, t.Mode)
	}
	return encodeDocument(&t)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *ToolChoice) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); isMode(text) && isWhole(text) {
		*t = ToolChoice{Mode: unquoteText(text)}
		return nil
	}
	return decodeInto(text, t)
}

// isMode reports whether a choice is a mode. The empty text is none.
func isMode(value []byte) bool { return kindOf(value) == '"' && len(value) > len(`""`) }

// toolChoice is for a member that is a ToolChoice.
func (c *codec) toolChoice(name string, p **ToolChoice) {
	if !c.decoding && *p != nil && (*p).Mode != "" {
		c.member()
		c.name(name)
		c.quote((*p).Mode)
		return
	}
	pointer(c, name, p)
	if c.decoding && *p == nil {
		if mode := c.remembered(c.number - 1); isMode(mode) {
			*p = ToolMode(unquoteText(mode))
			c.origin.odd = c.origin.odd.next // the choice tells it
		}
	}
}

// ToolName names a tool.
type ToolName struct {
	Name string `json:"name"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (n *ToolName) members(c *codec) {
	c.object(&n.origin, &n.Extra)
	c.text("name", &n.Name, required)
}

// AllowedTools are those of a request's tools that the model may call.
type AllowedTools struct {
	Mode  string `json:"mode"` // auto, required
	Tools []Tool `json:"tools"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (a *AllowedTools) members(c *codec) {
	c.object(&a.origin, &a.Extra)
	c.text("mode", &a.Mode, required)
	objects(c, "tools", &a.Tools, required)
}

// ToolMode returns the choice none, auto or required.
func ToolMode(mode string) *ToolChoice { return &ToolChoice{Mode: mode} }

// ToolNamed returns the choice of one function.
func ToolNamed(name string) *ToolChoice {
	return &ToolChoice{Type: "function", Function: &ToolName{Name: name}}
}

// CustomToolNamed returns the choice of one custom tool.
func CustomToolNamed(name string) *ToolChoice {
	return &ToolChoice{Type: "custom", Custom: &ToolName{Name: name}}
}

// ToolsAllowed returns the choice among some of the request's tools, of which the mode auto lets the model call any and
// required makes it call one. The functions and custom tools need their names only.
func ToolsAllowed(mode string, tools ...Tool) *ToolChoice {
	return &ToolChoice{Type: "allowed_tools", AllowedTools: &AllowedTools{Mode: mode, Tools: tools}}
}

// ToolCall is a call that the model makes.
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // function or custom
	Function FunctionCall `json:"function"`
	Custom   *CustomCall  `json:"custom"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (t *ToolCall) members(c *codec) {
	c.object(&t.origin, &t.Extra)
	c.text("id", &t.ID, required)
	c.text("type", &t.Type, required)
	inline(c, "function", &t.Function, optional)
	pointer(c, "custom", &t.Custom)
}

// FunctionCall is a call of a function.
type FunctionCall struct {
	Name string `json:"name"`
	// Arguments is JSON text as the model wrote it: it may be empty, invalid, or cut off. Where a server sends the
	// arguments as an object and not as its text, this is the object's text.
	Arguments string `json:"arguments"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (f *FunctionCall) members(c *codec) {
	c.object(&f.origin, &f.Extra)
	c.text("name", &f.Name, required)
	c.textOrJSON("arguments", &f.Arguments, required)
}

// CustomCall is a call of a custom tool.
type CustomCall struct {
	Name  string `json:"name"`
	Input string `json:"input"` // free text

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (u *CustomCall) members(c *codec) {
	c.object(&u.origin, &u.Extra)
	c.text("name", &u.Name, required)
	c.text("input", &u.Input, required)
}

// ToolCallDelta is what a chunk adds to a tool call. The call's id and name come once, its arguments in pieces.
type ToolCallDelta struct {
	Index    *int64            `json:"index"` // which call of the answer; nil with servers that leave it out or null
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Function FunctionCallDelta `json:"function"`
	Custom   *CustomCallDelta  `json:"custom"`

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (t *ToolCallDelta) members(c *codec) {
	c.object(&t.origin, &t.Extra)
	c.integerPtr("index", &t.Index)
	c.text("id", &t.ID, optional)
	c.text("type", &t.Type, optional)
	inline(c, "function", &t.Function, optional)
	pointer(c, "custom", &t.Custom)
}

// FunctionCallDelta is what a chunk adds to a call of a function.
type FunctionCallDelta struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a piece of JSON text; see [FunctionCall]

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (f *FunctionCallDelta) members(c *codec) {
	c.object(&f.origin, &f.Extra)
	c.text("name", &f.Name, optional)
	c.textOrJSON("arguments", &f.Arguments, optional)
}

// CustomCallDelta is what a chunk adds to a call of a custom tool.
type CustomCallDelta struct {
	Name  string `json:"name"`
	Input string `json:"input"` // a piece of text

	Extra jsontext.Value `json:",embed"`

	origin origin
}

func (u *CustomCallDelta) members(c *codec) {
	c.object(&u.origin, &u.Extra)
	c.text("name", &u.Name, optional)
	c.text("input", &u.Input, optional)
}
