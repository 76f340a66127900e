package lsp

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
)

const clicksDDL = `-- what users click
CREATE TABLE clicks (
  user_id BIGINT COMMENT 'who clicked',
  url STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'log', 'topic' = 'clicks', 'format' = 'json');

CREATE TABLE out_t (user_id BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
`

// workspace is a folder with ddl/tables.sql and an open, empty job.
func workspace(t *testing.T) (c *client, job, ddl string) {
	t.Helper()
	dir := t.TempDir()
	ddl = filepath.Join(dir, "ddl", "tables.sql")
	job = filepath.Join(dir, "job.sql")
	if err := os.Mkdir(filepath.Dir(ddl), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ddl, []byte(clicksDDL), 0o644); err != nil {
		t.Fatal(err)
	}
	c = start(t, dir)
	if ds := c.open(job, ""); len(ds) != 0 {
		t.Fatalf("an empty job has %+v", ds)
	}
	return c, job, ddl
}

// TestDiagnostics counts UTF-16 code units by hand: a tab and a Chinese character
// are one, an emoji two.
func TestDiagnostics(t *testing.T) {
	c, job, _ := workspace(t)
	c.change(job, 2, "INSERT INTO out_t\nSELECT\t/* 点击 \U0001F600 */ uid, 1 FROM clicks;\n")
	ds := c.diagnostics(job, 2)
	if len(ds) != 1 {
		t.Fatalf("%d diagnostics: %+v", len(ds), ds)
	}
	d := ds[0]
	// "SELECT" 6, tab 1, "/* " 3, two characters 2, blank 1, emoji 2, " */ " 4.
	if want := (Range{Position{1, 19}, Position{1, 22}}); d.Range != want {
		t.Errorf("range %+v, want %+v", d.Range, want)
	}
	if d.Code != "unknown_column" || d.Severity != 1 || d.Source != "millrace" || d.Data.Hint != `did you mean "user_id"?` || !strings.Contains(d.Message, "help: "+d.Data.Hint) {
		t.Errorf("%+v", d)
	}
	c.change(job, 3, "INSERT INTO out_t SELECT user_id, 1 FROM clicks;\n")
	if ds := c.diagnostics(job, 3); len(ds) != 0 {
		t.Errorf("the mended job has %+v", ds)
	}
}

// TestDiagnosticsAsCheck compares with what `millrace check` finds: every code with
// an example in its page.
func TestDiagnosticsAsCheck(t *testing.T) {
	registry, err := all.Registry(all.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := start(t, dir)
	version := 1
	name := filepath.Join(dir, "page.sql")
	c.open(name, "")
	for _, p := range diag.Pages() {
		if p.Wrong == "" || !utf8.ValidString(p.Wrong) { // JSON cannot carry it
			continue
		}
		version++
		c.change(name, version, p.Wrong)
		got := c.diagnostics(name, version)
		_, want := compile.Compile([]compile.Source{{Name: name, Text: p.Wrong}}, compile.Options{Registry: registry, Mode: compile.ModeCheck})
		i := 0
		for _, w := range want {
			if w.Span.IsZero() {
				continue
			}
			if i >= len(got) {
				t.Errorf("%s: %d diagnostics, missing %s", p.Code, len(got), w.Headline())
				break
			}
			g := got[i]
			i++
			if g.Code != string(w.Code) || g.Data.Hint != strings.Join(w.Help, "\n") || g.Range.Start.Line+1 != w.Span.StartPos().Line || !strings.HasPrefix(g.Message, w.Message) {
				t.Errorf("%s: %+v, want %s", p.Code, g, w.Headline())
			}
		}
		if i < len(got) {
			t.Errorf("%s: surplus %+v", p.Code, got[i:])
		}
	}
	if version < 30 {
		t.Errorf("only %d pages have an example", version-1)
	}
}

func TestDDLInTheEditorCountsBeforeTheDisk(t *testing.T) {
	c, job, ddl := workspace(t)
	c.change(job, 2, "INSERT INTO out_t SELECT visitor, 1 FROM clicks;")
	if ds := c.diagnostics(job, 2); len(ds) != 1 {
		t.Fatalf("%+v", ds)
	}
	delete(c.published, uriOf(job))
	c.open(ddl, strings.Replace(clicksDDL, "user_id BIGINT COMMENT", "visitor BIGINT COMMENT", 1))
	for c.published[uriOf(job)].Version != 2 || len(c.published[uriOf(job)].Diagnostics) != 0 {
		c.next()
	}
	// Closed again, the disk counts.
	c.tell("textDocument/didClose", map[string]any{"textDocument": map[string]string{"uri": uriOf(ddl)}})
	for len(c.published[uriOf(job)].Diagnostics) != 1 {
		c.next()
	}
}

func TestHover(t *testing.T) {
	c, job, _ := workspace(t)
	for _, x := range []struct{ marked, want string }{
		{"INSERT INTO out_t SELECT us¦er_id, 1 FROM clicks;", "user_id BIGINT\n```\n\nwho clicked"},
		{"INSERT INTO out_t SELECT c.user¦_id, 1 FROM clicks AS c;", "user_id BIGINT"},
		{"INSERT INTO out_t SELECT user_id, 1 FROM cl¦icks;", "CREATE TABLE clicks"},
		{"INSERT INTO o¦ut_t SELECT user_id, 1 FROM clicks;", "'connector' = 'blackhole'"},
		{"INSERT INTO out_t SELECT user_id, CHAR_LE¦NGTH(url) FROM clicks;", "CHAR_LENGTH("},
		{"INSERT INTO out_t SELECT user_id, user_id +¦ 1 FROM clicks;", "user_id + 1 BIGINT"},
		{"CREATE VIEW v AS SELECT user_id AS u, COUNT(*) AS n FROM clicks GROUP BY user_id; INSERT INTO out_t SELECT u, n FROM ¦v;", "VIEW v (\n  u BIGINT,\n  n BIGINT"},
		{"CREATE TABLE x (a INT) WITH ('connec¦tor' = 'datagen');", "The system that the table lies in"},
		{"CREATE TABLE x (a INT) WITH ('connector' = 'data¦gen');", "connector datagen"},
		{"CREATE TABLE x (a INT) WITH ('rows-per-¦second' = '1', 'connector' = 'datagen');", "`rows-per-second`"},
		{"SET 'table.local-¦time-zone' = 'UTC';", "session zone"},
		{"INSERT INTO out_t SELECT u¦id, 1 FROM clicks;", "**unknown_column**"},
		{"INSERT INTO out_t SELECT user_id, 1 FROM clicks;  ¦", ""},
	} {
		c.change(job, 2, strings.Replace(x.marked, "¦", "", 1))
		got := c.hover(job, x.marked)
		if !strings.Contains(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%s\n gives %q\n want %q", x.marked, got, x.want)
		}
	}
}

func TestCompletion(t *testing.T) {
	c, job, _ := workspace(t)
	for _, x := range []struct {
		marked string
		want   []string // the first ones
		no     string
	}{
		{"INSERT INTO out_t SELECT ¦ FROM clicks;", []string{"user_id", "url", "ts", "clicks", "out_t"}, ""},
		{"INSERT INTO out_t SELECT us¦ FROM clicks;", []string{"user_id"}, "url"},
		{"INSERT INTO out_t SELECT k.¦ FROM clicks AS k;", []string{"user_id", "url", "ts"}, "SELECT"},
		{"INSERT INTO out_t SELECT CASE WHEN k.u¦ FROM clicks AS k;", []string{"user_id", "url"}, "ts"},
		{"INSERT INTO out_t SELECT user_id, (1 + ¦ FROM clicks WHERE", []string{"user_id", "url"}, ""},
		{"INSERT INTO out_t SELECT user_id, 1 FROM ¦", []string{"clicks", "out_t"}, "SUM"},
		{"INSERT INTO ¦", []string{"clicks", "out_t"}, "SUM"},
		{"INSERT INTO out_t (¦) SELECT 1", []string{"user_id", "n"}, "SUM"},
		{"WITH big AS (SELECT user_id FROM clicks) SELECT * FROM ¦", []string{"big", "clicks", "out_t"}, ""},
		{"SELECT char_l¦", []string{"CHAR_LENGTH"}, ""},
		{"SEL¦", []string{"SELECT"}, "user_id"},
		{"CREATE TABLE x (a B¦", []string{"BIGINT", "BINARY", "BOOLEAN", "BYTES"}, ""},
		{"CREATE TABLE x (a INT) WITH ('connector' = 'l¦", []string{"log"}, ""},
		{"CREATE TABLE x (a INT) WITH ('¦' = '1', 'connector' = 'datagen')", []string{"connector", "fields.*"}[:1], "topic"},
		{"CREATE TABLE x (a INT) WITH ('connector' = 'datagen', 'rows-¦')", []string{"rows-per-second"}, ""},
		{"CREATE TABLE x (a INT) WITH ('connector' = 'log', 'format' = '¦')", nil, "connector"},
		{"SET 'execution.runtime¦'", []string{"execution.runtime-mode"}, ""},
		{"SET 'execution.runtime-mode' = '¦'", []string{"batch", "streaming"}, ""},
		{"SELECT 'us¦' FROM clicks", nil, "user_id"},
		{"SELECT 1 -- us¦", nil, "user_id"},
	} {
		c.change(job, 2, strings.Replace(x.marked, "¦", "", 1))
		got, _ := c.complete(job, x.marked)
		if len(got) < len(x.want) || !slices.Equal(got[:len(x.want)], x.want) || slices.Contains(got, x.no) {
			t.Errorf("%s\n gives %q\n want %q first and not %q", x.marked, got[:min(len(got), 12)], x.want, x.no)
		}
	}
}

// TestCompletionReplacesTheWord checks the edit: it covers the word begun and
// quotes what needs it.
func TestCompletionReplacesTheWord(t *testing.T) {
	c, job, _ := workspace(t)
	text := "CREATE TABLE t (`点击 数` INT) WITH ('connector' = 'datagen');\nINSERT INTO out_t SELECT \U0001F600, 点¦ FROM t;"
	text = strings.Replace(text, "\U0001F600", "'\U0001F600'", 1)
	c.change(job, 2, strings.Replace(text, "¦", "", 1))
	_, items := c.complete(job, text)
	if len(items) != 1 {
		t.Fatalf("%+v", items)
	}
	// "INSERT INTO out_t SELECT " 25, the string 4, ", " 2.
	if want := (textEdit{Range{Position{1, 31}, Position{1, 32}}, "`点击 数`"}); items[0].TextEdit != want {
		t.Errorf("edit %+v, want %+v", items[0].TextEdit, want)
	}
}

func TestDefinition(t *testing.T) {
	c, job, ddl := workspace(t)
	line := func(path, text, word string) Location {
		m := newMapper(text)
		i := strings.Index(text, word)
		return Location{uriOf(path), m.rangeOf(i, i+len(word))}
	}
	for _, x := range []struct {
		marked string
		in     string // "" is the job
		word   string
	}{
		{"INSERT INTO out_t SELECT user_id, 1 FROM cl¦icks;", ddl, "clicks ("},
		{"INSERT INTO out¦_t SELECT user_id, 1 FROM clicks;", ddl, "out_t"},
		{"INSERT INTO out_t SELECT use¦r_id, 1 FROM clicks;", ddl, "user_id"},
		{"CREATE VIEW w AS SELECT user_id FROM clicks; INSERT INTO out_t SELECT user_id, 1 FROM ¦w;", "", "w AS"},
		{"INSERT INTO out_t WITH big AS (SELECT user_id FROM clicks) SELECT user_id, 1 FROM b¦ig;", "", "big AS"},
		{"INSERT INTO out_t WITH big AS (SELECT user_id + 1 AS u FROM clicks) SELECT ¦u, 1 FROM big;", "", "user_id + 1"},
	} {
		text := strings.Replace(x.marked, "¦", "", 1)
		c.change(job, 2, text)
		var got *Location
		c.call("textDocument/definition", at(job, x.marked), &got)
		want := line(job, text, x.word)
		if x.in != "" {
			want = line(x.in, clicksDDL, x.word)
		}
		if got == nil || got.URI != want.URI || got.Range.Start != want.Range.Start {
			t.Errorf("%s: %+v, want %+v", x.marked, got, want)
		}
	}
	c.change(job, 2, "SELECT 1")
	var none *Location
	c.call("textDocument/definition", at(job, "SELECT ¦1"), &none)
	if none != nil {
		t.Errorf("a number is defined at %+v", none)
	}
}

func TestFormatting(t *testing.T) {
	c, job, _ := workspace(t)
	text := "-- kept\nselect 1;  \n\n\n\nselect 2;\n"
	c.change(job, 2, text)
	var edits []textEdit
	params := map[string]any{"textDocument": map[string]string{"uri": uriOf(job)}, "options": map[string]any{"tabSize": 2}}
	c.call("textDocument/formatting", params, &edits)
	if len(edits) != 1 {
		t.Fatalf("%+v", edits)
	}
	m := newMapper(text)
	got := text[:m.offset(edits[0].Range.Start)] + edits[0].NewText + text[m.offset(edits[0].Range.End):]
	if want := "-- kept\nSELECT 1;\n\nSELECT 2;\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if edits[0].Range.Start.Line != 1 {
		t.Errorf("the edit begins at %+v; the first line is as it was", edits[0].Range.Start)
	}
	for _, same := range []string{"SELECT 1;\n", "select (;"} {
		c.change(job, 3, same)
		c.call("textDocument/formatting", params, &edits)
		if len(edits) != 0 {
			t.Errorf("%q is edited: %+v", same, edits)
		}
	}
}

// TestHalfTypedText asks everything at every place of a job as it is typed.
func TestHalfTypedText(t *testing.T) {
	c, job, _ := workspace(t)
	text := "CREATE TABLE x (a INT, `b` STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '1'); /* 中 */ INSERT INTO out_t SELECT k.user_id, SUM(CASE WHEN url LIKE '%\U0001F600' THEN 1 END) FROM clicks AS k GROUP BY k.user_id; -- end"
	for i := range text {
		if i%3 != 0 {
			continue
		}
		c.change(job, 2+i, text[:i])
		marked := text[:i] + "¦"
		c.complete(job, marked)
		c.hover(job, marked)
		c.call("textDocument/definition", at(job, marked), nil)
	}
	c.diagnostics(job, 2)
}

func TestProtocol(t *testing.T) {
	c := connect(t)
	if m := c.request("textDocument/hover", map[string]any{}); m.Error == nil || m.Error.Code != codeNotInitialized {
		t.Errorf("before initialize: %+v", m.Error)
	}
	var init struct {
		Capabilities map[string]any
		ServerInfo   struct{ Name, Version string }
	}
	c.call("initialize", map[string]any{"rootUri": nil, "capabilities": map[string]any{}}, &init)
	if init.ServerInfo.Name != "millrace" || init.Capabilities["positionEncoding"] != "utf-16" {
		t.Errorf("%+v", init)
	}
	if m := c.request("textDocument/rename", map[string]any{}); m.Error == nil || m.Error.Code != codeUnknownMethod {
		t.Errorf("an unknown method: %+v", m.Error)
	}
	c.tell("$/unheardOf", map[string]any{})
	if m := c.request("textDocument/hover", []int{1}); m.Error == nil || m.Error.Code != codeInvalidParams {
		t.Errorf("wrong parameters: %+v", m.Error)
	}
	if m := c.request("textDocument/hover", at("/nowhere.sql", "¦")); m.Error == nil || m.Error.Code != codeInvalidParams {
		t.Errorf("a document that is not open: %+v", m.Error)
	}
	if _, err := c.in.Write([]byte("Content-Length: 4\r\n\r\n{{{{")); err != nil {
		t.Fatal(err)
	}
	if m := c.next(); m.Error == nil || m.Error.Code != codeParse {
		t.Errorf("what is no JSON: %+v", m.Error)
	}
	c.call("shutdown", nil, nil)
	if m := c.request("textDocument/hover", map[string]any{}); m.Error == nil || m.Error.Code != codeInvalidRequest {
		t.Errorf("after shutdown: %+v", m.Error)
	}
	c.tell("exit", nil)
	if err := <-c.done; err != nil {
		t.Errorf("a clean end gives %v", err)
	}
}

func TestEndsWithoutShutdown(t *testing.T) {
	c := start(t, t.TempDir())
	c.tell("exit", nil)
	if err := <-c.done; err != ErrNoShutdown {
		t.Errorf("%v, want %v", err, ErrNoShutdown)
	}
}

func TestFrames(t *testing.T) {
	for name, text := range map[string]string{
		"no length": "Content-Type: x\r\n\r\n{}", "negative": "Content-Length: -1\r\n\r\n", "huge": "Content-Length: 99999999999\r\n\r\n", "short": "Content-Length: 9\r\n\r\n{}",
	} {
		err := Serve(t.Context(), strings.NewReader(text), io.Discard, Options{Log: io.Discard})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var b bytes.Buffer
	if err := writeMessage(&b, &message{Method: "点", Params: json.RawMessage(`{"a":1}`)}); err != nil {
		t.Fatal(err)
	}
	// 17 + 9 + 5 + 1 + 9 + 7 + 1: the length is in bytes, and the name is 3.
	if want := "Content-Length: 49" + "\r\n\r\n" + `{"jsonrpc":"2.0","method":"点","params":{"a":1}}`; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestPositions walks a text of all widths and line ends.
func TestPositions(t *testing.T) {
	m := newMapper("a\t点\r\n\U0001F600b\rc\n")
	for _, x := range []struct {
		offset int
		p      Position
	}{
		{0, Position{0, 0}}, {1, Position{0, 1}}, {2, Position{0, 2}}, {5, Position{0, 3}}, {7, Position{1, 0}}, {11, Position{1, 2}},
		{12, Position{1, 3}}, {13, Position{2, 0}}, {14, Position{2, 1}}, {15, Position{3, 0}},
	} {
		if got := m.position(x.offset); got != x.p {
			t.Errorf("offset %d is %+v, want %+v", x.offset, got, x.p)
		}
		if got := m.offset(x.p); got != x.offset {
			t.Errorf("%+v is offset %d, want %d", x.p, got, x.offset)
		}
	}
	for p, want := range map[Position]int{{0, 99}: 5, {1, 1}: 7, {99, 0}: 15, {-1, 0}: 0} {
		if got := m.offset(p); got != want {
			t.Errorf("%+v is offset %d, want %d", p, got, want)
		}
	}
	if got := newMapper("\ufeffab").position(1); got != (Position{0, 2}) {
		t.Errorf("behind a byte order mark: %+v", got)
	}
}
