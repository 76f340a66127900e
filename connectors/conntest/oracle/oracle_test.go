package oracle

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// The protocol is tested without the readers; with them in readers_test.go.
func TestAnswers(t *testing.T) {
	r, err := parse(strings.NewReader(`{"columns":["a","b"],"types":["BIGINT","VARCHAR"]}` + "\n" + `[9223372036854775807,"x"]` + "\n" + `[null,["y",{"k":1.5}]]` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]any{{json.Number("9223372036854775807"), "x"}, {nil, []any{"y", map[string]any{"k": json.Number("1.5")}}}}
	if !reflect.DeepEqual(r.Rows, want) || !reflect.DeepEqual(r.Columns, []string{"a", "b"}) || r.Types[1] != "VARCHAR" {
		t.Errorf("read %+v", r)
	}
	for _, bad := range []string{``, `{"columns":["a"]}` + "\n[1,2]", `{"columns":["a"]}` + "\n[1", `{"columns":["a"]}` + "\n{}"} {
		if _, err := parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if q := Quote("it's"); q != "'it''s'" {
		t.Errorf("quoted %s", q)
	}
}
