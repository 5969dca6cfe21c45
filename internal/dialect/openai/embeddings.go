package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/internal/jsonpatch"
)

// ConvertEmbeddings returns the answer with its vectors in the form that the request asks for: base64 of little-endian
// float32, or lists of numbers. Many servers know only one of the two, and the official SDKs ask for base64 and decode
// it without a look. Vectors that have the right form already, and all else, stay as they are.
func ConvertEmbeddings(req *gateway.Request, answer []byte) []byte {
	format, _ := req.Member("encoding_format")
	convert := toFloats
	if isText(format, "base64") {
		convert = toBase64
	}
	data, ok := jsonpatch.Find(answer, "data")
	if !ok {
		return answer
	}
	dimensions, _ := req.Member("dimensions")
	var out []byte
	copied := 0 // how much of the answer is in out
	jsonpatch.EachElement(data, func(element []byte) bool {
		vector, ok := jsonpatch.Find(element, "embedding")
		if !ok {
			return true
		}
		converted := convert(vector, string(dimensions))
		if converted == nil {
			return true
		}
		start := offset(answer, vector)
		out = append(append(out, answer[copied:start]...), converted...)
		copied = start + len(vector)
		return true
	})
	if copied == 0 {
		return answer
	}
	return append(out, answer[copied:]...)
}

// offset returns where part, which is a part of whole, begins in it.
func offset(whole, part []byte) int { return cap(whole) - cap(part) }

// toBase64 returns the base64 form of a list of numbers; nil for anything else.
func toBase64(vector []byte, _ string) []byte {
	if len(vector) == 0 || vector[0] != '[' {
		return nil
	}
	var raw []byte
	good := jsonpatch.EachElement(vector, func(number []byte) bool {
		f, err := strconv.ParseFloat(string(number), 32)
		if err != nil {
			raw = nil
			return false
		}
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(f)))
		return true
	})
	if !good || raw == nil {
		return nil
	}
	out := append(make([]byte, 0, base64.StdEncoding.EncodedLen(len(raw))+2), '"')
	return append(base64.StdEncoding.AppendEncode(out, raw), '"')
}

// toFloats returns the list form of a base64 string; nil for anything else. Numbers are float32, unless the dimensions
// that were asked for show that a server has sent float64, as one does.
func toFloats(vector []byte, dimensions string) []byte {
	if len(vector) == 0 || jsontext.Value(vector).Kind() != '"' {
		return nil
	}
	raw, err := base64.StdEncoding.AppendDecode(nil, vector[1:len(vector)-1])
	if err != nil || len(raw)%4 != 0 {
		return nil
	}
	out := []byte{'['}
	if n, err := strconv.Atoi(dimensions); err == nil && n > 0 && len(raw) == 8*n {
		for i := 0; i < len(raw); i += 8 {
			out = appendNumber(out, math.Float64frombits(binary.LittleEndian.Uint64(raw[i:])), 64)
		}
	} else {
		for i := 0; i < len(raw); i += 4 {
			out = appendNumber(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[i:]))), 32)
		}
	}
	return append(out, ']')
}

func appendNumber(out []byte, f float64, bits int) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	if math.IsNaN(f) || math.IsInf(f, 0) { // JSON has no such number
		return append(out, "null"...)
	}
	return strconv.AppendFloat(out, f, 'g', -1, bits)
}
