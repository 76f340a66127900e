package diag

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestPositions(t *testing.T) {
	f := NewFile("f", "\ufeffab\r\n地区 x\n\n")
	for _, c := range []struct{ offset, line, col int }{
		{0, 1, 1}, {2, 1, 3}, {3, 1, 4}, {4, 2, 1}, {7, 2, 2}, {10, 2, 3}, {11, 2, 4}, {13, 3, 1}, {14, 4, 1}, {99, 4, 1},
	} {
		if p := f.Pos(c.offset); p.Line != c.line || p.Col != c.col {
			t.Errorf("offset %d is %d:%d, want %d:%d", c.offset, p.Line, p.Col, c.line, c.col)
		}
	}
	if f.Line(1) != "ab" || f.Line(2) != "地区 x" || f.Line(4) != "" || f.Line(9) != "" || f.LineCount() != 4 {
		t.Error("lines are wrong")
	}
	a, b := f.Span(4, 7), f.Span(10, 11)
	if s := a.To(b); s.Start != 4 || s.End != 11 || a.To(Span{}) != a || (Span{}).To(b) != b {
		t.Error("To is wrong")
	}
}

func TestNearest(t *testing.T) {
	columns := []string{"user_id", "user_name", "ts", "payload", "created_at"}
	for name, want := range map[string]string{
		"uesr_id": "user_id", "userid": "user_id", "USER_ID": "user_id", "user_nam": "user_name", "st": "ts",
		"paylod": "payload", "create_at": "created_at", "x": "", "completely": "", "": "", "uid": "user_id",
	} {
		got, _ := Nearest(name, columns)
		if got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
	if _, ok := Nearest("json.ignore-parse-error", []string{"json.ignore-parse-errors"}); !ok {
		t.Error("a missing letter is not near")
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"用户", "用戶", 1}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestRender(t *testing.T) {
	f := NewFile("job.sql", "SELECT uid,\tCOUNT(*)\nFROM clicks -- 点击\n")
	d := Errorf("unknown_column", f.Span(7, 10), "column %q not found in %q", "uid", "clicks").
		WithNearest("uid", []string{"uuid"}).
		WithNote(f.Span(26, 32), "the table is named here").
		WithNote(Span{}, "a note without a place")
	want := `job.sql:1:8: error[unknown_column]: column "uid" not found in "clicks"
 1 | SELECT uid, COUNT(*)
   |        ^^^
note: job.sql:2:6: the table is named here
 2 | FROM clicks -- 点击
   |      ^^^^^^
note: a note without a place
help: did you mean "uuid"?
`
	if got := (Renderer{}).String(List{d}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := (Renderer{Color: true}).String(List{d}); !strings.Contains(got, "\x1b[1;31merror[unknown_column]:\x1b[0m") {
		t.Errorf("colors: %q", got)
	}
}

// Carets line up under wide characters, tabs, combining marks and the end of the file.
func TestCaretsLineUp(t *testing.T) {
	for _, c := range []struct{ text, mark, source, carets string }{
		{"SELECT 地区名, x", "x", "SELECT 地区名, x", "               ^"},
		{"SELECT 地区名, x", "地区名", "SELECT 地区名, x", "       ^^^^^^"},
		{"\tx\ty", "y", "    x   y", "        ^"},
		{"a\u0301b x", "x", "a\u0301b x", "   ^"},
		{"a\x1b[31mb x", "x", "a\ufffd[31mb x", "        ^"},
		{"한국어 가 x", "가", "한국어 가 x", "       ^^"},
		{"x\r\n", "x", "x", "^"},
	} {
		f := NewFile("f", c.text)
		i := strings.LastIndex(c.text, c.mark)
		source, carets := Renderer{}.line(f.Span(i, i+len(c.mark)), 1)
		if source != c.source || carets != c.carets {
			t.Errorf("%q:\n%s\n%s\nwant\n%s\n%s", c.text, source, carets, c.source, c.carets)
		}
	}
	f := NewFile("f", "SELECT")
	if _, carets := (Renderer{}).line(f.Span(6, 6), 1); carets != "      ^" {
		t.Errorf("end of file: %q", carets)
	}
}

// Long lines are cut so that the start of the span is always shown, within the width.
func TestLongLines(t *testing.T) {
	for _, wide := range []string{"a", "地"} {
		line := strings.Repeat(wide, 300) + "XYZ" + strings.Repeat(wide, 300)
		for _, at := range []int{0, 1, 150, 299, 300, 301, 450, 602} {
			f := NewFile("f", line)
			start := len(string([]rune(line)[:at]))
			for _, end := range []int{start + len(string([]rune(line)[at:at+1])), len(line)} {
				source, carets := Renderer{Width: 60}.line(f.Span(start, end), 1)
				if w := widths.StringWidth(source); w > 60 {
					t.Errorf("at %d: %d columns wide", at, w)
				}
				if len(carets) > 60 || !strings.Contains(carets, "^") {
					t.Errorf("at %d: carets %q", at, carets)
				}
			}
		}
	}
}

// Equal errors of many expansions print once; different ones and those of one expansion do not merge.
func TestDedup(t *testing.T) {
	f := NewFile("job.sql", "INSERT INTO `ods_${t}` SELECT uid FROM `${t}`")
	var l List
	for i := range 1000 {
		table := fmt.Sprintf("app_%03d", i)
		l.Errorf("unknown_column", f.Span(30, 33), "column %q not found in %q", "uid", table).
			WithInstance(table, Note{Span: f.Span(12, 22), Message: fmt.Sprintf("in FOR EACH, t = %q", table)})
	}
	l.Errorf("unknown_column", f.Span(30, 33), "column %q not found in %q", "other", "app_000").WithInstance("app_000")
	l.Errorf("syntax_error", f.Span(0, 6), "x")
	l.Errorf("syntax_error", f.Span(0, 6), "x")
	got := l.Sorted().Dedup()
	if len(got) != 3 || got[0].Code != "syntax_error" || got[1].More() != 999 || got[2].More() != 0 {
		t.Fatalf("%d left: %v", len(got), got)
	}
	text := Renderer{}.String(l)
	if !strings.Contains(text, "\"app_000\" (+999 tables)\n") || !strings.Contains(text, "note: job.sql:1:13: in FOR EACH, t = \"app_000\"") {
		t.Errorf("rendered:\n%s", text)
	}
	if l[0].More() != 0 {
		t.Error("the original changed")
	}
}

func TestSorted(t *testing.T) {
	f, g := NewFile("f", "0123456789"), NewFile("g", "0123456789")
	l := List{
		Warnf("w", g.Span(1, 2), "1"), Errorf("e", Span{}, "2"), Errorf("e", f.Span(5, 6), "3"),
		Warnf("w", f.Span(2, 3), "4"), Errorf("e", f.Span(2, 3), "5"), Errorf("e", f.Span(2, 3), "6"),
	}
	var got []string
	for _, d := range l.Sorted() {
		got = append(got, d.Message)
	}
	// g came first, so its diagnostics stay in front; those without a place are last.
	if s := strings.Join(got, ""); s != "156432" {
		t.Errorf("order %s", s)
	}
	if l.Count(Error) != 4 || !l.HasErrors() || l.Err() == nil || (List{l[0]}).Err() != nil {
		t.Error("counts are wrong")
	}
}

func TestJSON(t *testing.T) {
	f := NewFile("job.sql", "SELECT 地区,\n  uid")
	d := Errorf("unknown_column", f.Span(17, 20), "column %q not found", "uid").WithHelp("did you mean %q?", "id").WithNote(f.Span(7, 13), "near")
	got, err := json.Marshal([]any{d, Warnf("no_effect", Span{}, "w")})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"severity":"error","code":"unknown_column","message":"column \"uid\" not found","file":"job.sql",` +
		`"line":2,"col":3,"end_line":2,"end_col":6,"hint":"did you mean \"id\"?","notes":[{"message":"near","file":"job.sql","line":1,"col":8}]},` +
		`{"severity":"warning","code":"no_effect","message":"w","file":"","line":0,"col":0,"end_line":0,"end_col":0,"hint":""}]`
	if !bytes.Equal(got, []byte(want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
