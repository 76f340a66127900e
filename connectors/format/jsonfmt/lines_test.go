package jsonfmt

import (
	"errors"
	"strings"
	"testing"
)

// TestValuesOverSeveralLines: a pretty-printed text is told from one whose
// lines are faulty.
func TestValuesOverSeveralLines(t *testing.T) {
	long := "[\n" + strings.Repeat("{\"a\":1},\n", 100)
	for _, c := range []struct {
		name, text string
		cut, want  bool
	}{
		{"one value a line", "{\"a\":1}\n{\"a\":2}\n", false, false},
		{"no line end", `{"a":1}`, false, false},
		{"empty", "", false, false},
		{"line ends only", "\r\n\r\n", false, false},
		{"pretty-printed", "{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}\n", false, true},
		{"pretty-printed, CRLF, byte order mark, line end first", "\ufeff\r\n{\r\n  \"a\": 1\r\n}", false, true},
		{"an array over lines", "[\n{\"a\":1},\n{\"a\":2}\n]\n", false, true},
		{"an array that is cut", long, true, true},
		{"an array that never ends", long, false, false},
		{"an array in one line", "[{\"a\":1},{\"a\":2}]\n[]\n", false, false},
		{"several values in one line", "{\"a\":1} {\"a\":2}\n", false, false},
		{"a faulty first line", "{\"a\":\n{\"a\":3}\n", false, false},
		{"a faulty first line, cut behind it", "{\"a\":,\n{\"a\":3}\n", true, false},
		{"a long first line that is cut", `{"a":"` + strings.Repeat("x", 100), true, false},
		{"no JSON", "a,b\n1,2\n", false, false},
		{"scalars", "1\n2\n", false, false},
	} {
		if got := SpansLines([]byte(c.text), !c.cut); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if err := (Format{}).CheckHead([]byte("{\n}"), true); !errors.Is(err, ErrSpansLines) {
		t.Error(err)
	}
}
