package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sixMistakes marks each mistake as «code|text»: what must be reported, and
// under which characters.
const sixMistakes = `-- Six different mistakes, each with its place.
CREATE TABLE clicks (id BIGINT, k STRING, 名 STRING, ts TIMESTAMP_LTZ(3)) WITH (
  'connector' = 'log', 'topic' = 'clicks', «unknown_option|'scan.startup.mod'» = 'earliest-offset', 'format' = 'json');
CREATE TABLE out_t (id BIGINT, k STRING) WITH (
  'connector' = 'filesystem', 'path' = '/tmp/out', 'format' = 'parquet', 'sink.rolling-policy.file-size' = «bad_option|'12 parsecs'»);
INSERT INTO out_t SELECT «unknown_column|idd», k FROM clicks;
INSERT INTO out_t SELECT id, «unknown_function|UPPR»(k) FROM clicks;
INSERT INTO out_t SELECT id, 名 /* 界 */ FROM «unknown_table|click»;
INSERT INTO out_t SELECT id, k k2 «syntax_error|k3» FROM clicks;
`

type finding struct {
	Severity string
	Code     string
	Message  string
	File     string
	Line     int
	Col      int
	EndLine  int `json:"end_line"`
	EndCol   int `json:"end_col"`
	Hint     string
}

// TestCheckReportsEveryMistake: all six in one go, each at its exact place,
// exit 2; nothing is read or written.
func TestCheckReportsEveryMistake(t *testing.T) {
	w := newWorld(t)
	var sql strings.Builder
	var want []finding
	line, col := 1, 1
	rest := sixMistakes
	var open *finding
	for rest != "" {
		if mark, after, ok := strings.Cut(rest, "|"); ok && strings.HasPrefix(mark, "«") {
			open = &finding{Code: strings.TrimPrefix(mark, "«"), Line: line, Col: col}
			rest = after
			continue
		}
		r := []rune(rest)[0]
		rest = rest[len(string(r)):]
		if r == '»' {
			open.EndLine, open.EndCol = line, col
			want = append(want, *open)
			continue
		}
		sql.WriteRune(r)
		if col++; r == '\n' {
			line, col = line+1, 1
		}
	}
	if len(want) != 6 {
		t.Fatalf("%d mistakes are marked", len(want))
	}
	job := w.file("six.sql", sql.String())

	var e envelope
	r := w.run("check", job, "-o", "json").must(t, 2)
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	var got struct{ Findings []finding }
	if err := json.Unmarshal(e.Result, &got); err != nil {
		t.Fatal(err)
	}
	if e.OK || len(got.Findings) != len(want) {
		t.Errorf("ok %v, %d findings, want %d", e.OK, len(got.Findings), len(want))
	}
	for i, f := range got.Findings {
		t.Logf("%s:%d:%d-%d:%d %s[%s] %s (%s)", f.File, f.Line, f.Col, f.EndLine, f.EndCol, f.Severity, f.Code, f.Message, f.Hint)
		if i >= len(want) {
			continue
		}
		x := want[i]
		if f.Severity != "error" || f.Code != x.Code || f.Line != x.Line || f.Col != x.Col || f.EndLine != x.EndLine || f.EndCol != x.EndCol || f.File != job {
			t.Errorf("finding %d is %s[%s] at %d:%d-%d:%d, want %s at %d:%d-%d:%d", i, f.Severity, f.Code, f.Line, f.Col, f.EndLine, f.EndCol, x.Code, x.Line, x.Col, x.EndLine, x.EndCol)
		}
	}

	// The same for people, with carets, and from run as well.
	text := w.run("check", job).must(t, 2)
	for _, x := range want {
		text.says(t, fmt.Sprintf("%s:%d:%d: error[%s]", job, x.Line, x.Col, x.Code))
	}
	text.says(t, "^^", `did you mean "id"?`, "UPPER", "scan.startup.mode", "6 errors")
	w.run("run", job).must(t, 2).says(t, fmt.Sprintf("%s:%d:%d: error[%s]", job, want[2].Line, want[2].Col, want[2].Code))
}
