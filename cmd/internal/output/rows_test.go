package output

import (
	"strings"
	"testing"
)

func render(t *testing.T, f Format, width int) string {
	t.Helper()
	var b strings.Builder
	r := NewRows(&b, f, width, "table", "rows", "名")
	for _, row := range [][]Cell{
		{Text("push"), Number(12), Text("中文")},
		{Text("a,b\"c"), Number(3456), Null()},
	} {
		if err := r.Write(row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRows(t *testing.T) {
	for _, c := range []struct {
		format Format
		width  int
		want   string
	}{
		{Table, 0, "table  rows  名\npush     12  中文\na,b\"c  3456  NULL\n"},
		{JSONL, 0, `{"table":"push","rows":12,"名":"中文"}` + "\n" + `{"table":"a,b\"c","rows":3456,"名":null}` + "\n"},
		{JSON, 0, "[\n" + `  {"table":"push","rows":12,"名":"中文"},` + "\n" + `  {"table":"a,b\"c","rows":3456,"名":null}` + "\n]\n"},
		{CSV, 0, "table,rows,名\npush,12,中文\n\"a,b\"\"c\",3456,\n"},
	} {
		if got := render(t, c.format, c.width); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.format, got, c.want)
		}
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	var b strings.Builder
	r := NewRows(&b, Table, 30, "k", "v")
	if err := r.Write(Text("key"), Text(strings.Repeat("x", 100))); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		if n := len([]rune(line)); n > 30 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if !strings.Contains(b.String(), "…") {
		t.Error("the cut is not shown")
	}
}

func TestEmptyTables(t *testing.T) {
	for f, want := range map[Format]string{Table: "a  b\n", JSON: "[]\n", JSONL: "", CSV: "a,b\n"} {
		var b strings.Builder
		if err := NewRows(&b, f, 0, "a", "b").Close(); err != nil || b.String() != want {
			t.Errorf("%s: %q (%v), want %q", f, b.String(), err, want)
		}
	}
}

func TestTableFlushes(t *testing.T) {
	var b strings.Builder
	r := NewRows(&b, Table, 0, "k", "v")
	for _, row := range [][2]string{{"one", "x"}, {"a", "y"}} {
		if err := r.Write(Text(row[0]), Text(row[1])); err != nil {
			t.Fatal(err)
		}
		if err := r.Flush(); err != nil || !strings.HasSuffix(b.String(), row[1]+"\n") {
			t.Fatalf("%q (%v)", b.String(), err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "k    v\none  x\na    y\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
