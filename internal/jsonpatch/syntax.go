package jsonpatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// SyntaxError says what is wrong with a document, and where.
type SyntaxError struct {
	Offset  int64  // of the byte at fault
	Path    string // JSON pointer to the value at fault, where known; of one very far inside, to an outer value
	Message string
	Err     error
}

// Error says what and where.
func (e *SyntaxError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("%s (byte %d, at %s)", e.Message, e.Offset, e.Path)
	}
	return fmt.Sprintf("%s (byte %d)", e.Message, e.Offset)
}

// Unwrap returns the cause, if there is one.
func (e *SyntaxError) Unwrap() error { return e.Err }

// diagnose finds out what is wrong with a document that is not valid.
func diagnose(doc []byte) *SyntaxError {
	if skipSpace(view(doc), 0) == len(doc) {
		return &SyntaxError{Message: "the document is empty"}
	}
	if bytes.HasPrefix(doc, []byte("\ufeff")) {
		return &SyntaxError{Message: "the document begins with a byte order mark, which JSON does not allow"}
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(doc))
	if _, err := d.ReadValue(); err != nil {
		return explain(err, int64(len(doc)))
	}
	rest := skipSpace(view(doc), int(d.InputOffset()))
	return &SyntaxError{Offset: int64(rest), Message: "there is more text after the JSON value"}
}

// notObject says what a valid document is instead of an object.
func notObject(doc []byte) *SyntaxError {
	var what string
	switch jsontext.Value(doc).Kind() {
	case '[':
		what = "an array"
	case '"':
		what = "a string"
	case '0':
		what = "a number"
	case 'n':
		what = "null"
	default:
		what = "a boolean"
	}
	return &SyntaxError{
		Offset: int64(skipSpace(view(doc), 0)), Message: "the document must be a JSON object, not " + what,
	}
}

// explain makes a SyntaxError of what the decoder said about a document of that size.
func explain(err error, size int64) *SyntaxError {
	e := &SyntaxError{Offset: size, Message: err.Error(), Err: err}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e.Offset = syntactic.ByteOffset
		e.Path = shorten(string(syntactic.JSONPointer))
		if syntactic.Err != nil {
			e.Message = syntactic.Err.Error()
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Message = "the document ends too early"
	}
	return e
}

// maxPath bounds what an error repeats of the names in a document, which may be as long as the document itself.
const maxPath = 256

// shorten takes as many tokens off the end of a JSON pointer as make it short enough for an error.
func shorten(pointer string) string {
	if len(pointer) <= maxPath {
		return pointer
	}
	// A pointer begins with a slash, and slashes within its tokens are escaped.
	return pointer[:strings.LastIndexByte(pointer[:maxPath+1], '/')]
}
