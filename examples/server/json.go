package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// parseJSON reads JSON, and finds the line of each value.
func parseJSON(text []byte) (*document, []fault) {
	r := jsonReader{
		in:   jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true)),
		text: text, line: 1, lines: make(map[string]int),
	}
	err := r.value("")
	if err == nil {
		if _, err = r.token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("there is more after the end of the document")
		}
	}
	if err != nil {
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			r.count(int(syntax.ByteOffset))
			err = syntax.Err
		}
		r.faults = append(r.faults, fault{line: r.line, message: "not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")})
	}
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	return &document{json: text, lines: r.lines}, nil
}

type jsonReader struct {
	in      *jsontext.Decoder
	text    []byte
	line    int // of the token read last; a token never spans lines
	counted int // how much of text line has counted
	lines   map[string]int
	faults  []fault
}

func (r *jsonReader) token() (jsontext.Token, error) {
	token, err := r.in.ReadToken()
	if err == nil {
		r.count(int(r.in.InputOffset()))
	}
	return token, err
}

// count moves line on to an offset.
func (r *jsonReader) count(offset int) {
	if offset = min(offset, len(r.text)); offset > r.counted {
		r.line += bytes.Count(r.text[r.counted:offset], []byte("\n"))
		r.counted = offset
	}
}

func (r *jsonReader) value(path string) error {
	token, err := r.token()
	if err != nil {
		return err
	}
	if _, seen := r.lines[path]; !seen {
		r.lines[path] = r.line
	}
	switch token.Kind() {
	case '{':
		err = r.members(path)
	case '[':
		for i := 0; err == nil && r.in.PeekKind() != ']'; i++ {
			err = r.value(element(path, i))
		}
	default:
		return nil
	}
	if err == nil {
		_, err = r.token() // the end of it
	}
	return err
}

func (r *jsonReader) members(path string) error {
	seen := map[string]int{}
	for r.in.PeekKind() != '}' {
		token, err := r.token()
		if err != nil {
			return err
		}
		name := token.String()
		at := member(path, name)
		if first, twice := seen[name]; twice {
			r.faults = append(r.faults, twiceFault(r.line, at, first))
		} else {
			seen[name], r.lines[at] = r.line, r.line
		}
		if err := r.value(at); err != nil {
			return err
		}
	}
	return nil
}

func twiceFault(line int, path string, first int) fault {
	return fault{line, path, fmt.Sprintf("the member is there twice, first in line %d", first)}
}
