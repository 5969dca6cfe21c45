package jsonpatch_test
import ("testing";"github.com/go-json-experiment/json/jsontext";"github.com/gatewright/gateway/internal/jsonpatch")
var cb = []byte(chunk)
func BenchmarkControl(b *testing.B) { for b.Loop() { jsontext.Value(cb).IsValid() } }
func BenchmarkOnlyParse(b *testing.B) { b.ReportAllocs(); for b.Loop() { jsonpatch.Parse(cb) } }
func BenchmarkOnlyApply(b *testing.B) { b.ReportAllocs(); o,_ := jsonpatch.Parse(cb); for b.Loop() { o.Apply(jsonpatch.Edit{Name:"model",Value:jsontext.Value(`"x"`)}) } }
