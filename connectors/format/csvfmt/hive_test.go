package csvfmt

import (
	"errors"
	"reflect"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// TestHiveEscapes: lines of LazySimpleSerDe with ESCAPED BY; each answer is Hive's
// (LazyStruct.parse, LazyArray.parse, LazyUtils.copyAndEscapeStringDataToText of 2.3).
func TestHiveEscapes(t *testing.T) {
	fields := []types.Field{field("n", types.NewInt()), field("s", types.NewString()), field("a", types.NewArray(types.NewString()))}
	o := options("csv.hive-escapes", "true", "csv.escape-character", `\`, "csv.disable-quote-character", "true", "csv.null-literal", `\N`, "csv.array-element-delimiter", "|")
	rows, notes, _, _ := decode(t, fields, o,
		`1,x\,y,a\|b|c`,    // delimiters of fields and of elements
		`2,a\nb\rc\td\\,n`, // line ends; any other character is itself
		`3,\N,\N`,          // NULL as it stands
		`4,\\N,\\N|\N`,     // text; elements
		`5,x\,`,            // the delimiter is escaped: two fields
		`6,"q",z\`,         // no quotes; nothing behind the escape
		`1\5,x,y`)          // a number has no escapes
	want := []string{
		`{"n":1,"s":"x,y","a":["a|b","c"]}`,
		`{"n":2,"s":"a\nb\rctd\\","a":["n"]}`,
		`{"n":3,"s":null,"a":null}`,
		`{"n":4,"s":"\\N","a":["\\N",null]}`,
		`{"n":6,"s":"\"q\"","a":["z\\"]}`,
		`{"n":null,"s":"x","a":["y"]} type_mismatch: "1\5" is not INT`,
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got\n%q\nwant\n%q", rows, want)
	}
	if len(notes) != 1 {
		t.Errorf("notes %q, want that line 5 has too few fields", notes)
	}
	// A line end ends the line, whatever stands before it.
	if n, line := (Format{}).Split(o)([]byte("7,x\\\n8,y,z\n"), false); n != 5 || string(line) != `7,x\` {
		t.Errorf("the first line is %q of %d bytes", line, n)
	}
	var bad *connector.OptionError
	for _, o := range []format.Options{options("csv.hive-escapes", "true", "csv.disable-quote-character", "true"), options("csv.hive-escapes", "true", "csv.escape-character", `\`)} {
		if _, err := NewDecoder(format.DecoderConfig{Fields: fields, Options: o}); !errors.As(err, &bad) || bad.Key != "csv.hive-escapes" {
			t.Errorf("got %v", err)
		}
	}
	if _, err := NewEncoder(format.EncoderConfig{Fields: fields, Options: o}); !errors.As(err, &bad) || bad.Key != "csv.hive-escapes" {
		t.Errorf("writing: %v", err)
	}
}
