package sse

import "strings"

// Append appends an event with the given data to dst. The data is a JSON document, which is written as one line: a line
// end in it can only stand between tokens, where a space means the same.
func Append(dst []byte, data string) []byte {
	dst = append(dst, "data: "...)
	start := len(dst)
	dst = append(dst, data...)
	if strings.IndexByte(data, '\n') >= 0 || strings.IndexByte(data, '\r') >= 0 {
		for i, c := range dst[start:] {
			if c == '\n' || c == '\r' {
				dst[start+i] = ' '
			}
		}
	}
	return append(dst, "\n\n"...)
}
