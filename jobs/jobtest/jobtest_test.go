package jobtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/blackhole"
	"github.com/millrace/millrace/connectors/datagen"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/logtopic"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// jobSQL has a table of each kind that tests replace.
const jobSQL = `
CREATE TABLE clicks (
  id BIGINT NOT NULL, page STRING, price DECIMAL(10, 2), tags MAP<STRING, INT>, ts TIMESTAMP_LTZ(3),
  part INT METADATA FROM 'partition' VIRTUAL, pos BIGINT METADATA FROM 'offset' VIRTUAL,
  written TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'log', 'topic' = 'clicks_v1', 'json.timestamp-format.standard' = 'ISO-8601', 'json.on-error' = '${POLICY:-dead-letter}');
CREATE TABLE lines (id BIGINT, word STRING) WITH ('connector' = 'log', 'topic' = 'lines', 'format' = 'csv');
CREATE TABLE copied (id BIGINT, page STRING, price DECIMAL(10, 2), tags MAP<STRING, INT>, ts TIMESTAMP_LTZ(3), part INT, pos BIGINT, written TIMESTAMP_LTZ(3))
  WITH ('connector' = 'log', 'topic' = 'copied');
CREATE TABLE words (id BIGINT, word STRING) WITH ('connector' = 'log', 'topic' = 'words');
CREATE TABLE hours (page STRING, n BIGINT, h TIMESTAMP(3)) WITH ('connector' = 'log', 'topic' = 'hours');
CREATE TABLE files (id BIGINT, b BYTES, d DOUBLE, ts TIMESTAMP_LTZ(3)) WITH ('connector' = 'filesystem', 'path' = '/lake/files', 'format' = 'parquet');
CREATE TABLE made (id BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE nowhere (id BIGINT, b BYTES, d DOUBLE, ts TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole');
INSERT INTO nowhere SELECT id, b, d, ts FROM files;
INSERT INTO nowhere SELECT id, CAST(NULL AS BYTES), 0.5, CAST(NULL AS TIMESTAMP_LTZ(3)) FROM made;
INSERT INTO copied SELECT * FROM clicks;
INSERT INTO words SELECT id, UPPER(word) FROM lines;
INSERT INTO hours SELECT page, COUNT(*), window_start FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY page, window_start, window_end;
`

func registry(t *testing.T) *connector.Registry {
	t.Helper()
	r, err := connector.NewRegistry(logtopic.New(nil, jsonfmt.Format{}, csvfmt.Format{}), filesystem.New(vfs.NewMem(), nil, jsonfmt.Format{}, csvfmt.Format{}), blackhole.New(), datagen.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// suite writes a job and its test file, and loads them.
func suite(t *testing.T, tests string) (*Suite, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"job.sql": jobSQL, "job.test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Load(filepath.Join(dir, "job.test.yaml"))
}

// run runs tests that must not be faulty.
func run(t *testing.T, tests string) []Result {
	t.Helper()
	s, err := suite(t, tests)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := Run(context.Background(), s, Options{Registry: registry(t)})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// Everything here must hold.
func TestPassing(t *testing.T) {
	for _, r := range run(t, `
x-base: &base {id: 1, page: a, price: 1.50}
tests:
  - name: metadata, and one value in several forms
    given:
      clicks:
        - {<<: *base, ts: 2026-07-21T06:00:00Z, tags: {b: 2, a: 1}, $timestamp: 2026-07-21T06:00:01Z}
        - {<<: *base, id: 2, price: 7, $partition: 2, $timestamp: 1000}
        - '{"id": 3, "price": "2.5"}'
        - $raw: '{"id": 4, "id": 5}'
          $partition: 2
    want:
      copied:
        - {id: 5, part: 2, pos: 1, written: "1970-01-01 00:00:00Z"}
        - {id: 1, price: "1.5", tags: {a: 1, b: 2}, ts: "2026-07-21T08:00:00+02:00", part: 0, pos: 0, page: a, written: "2026-07-21 06:00:01Z"}
        - {id: 2, price: 7.00, part: 2, pos: 0, page: a, written: "1970-01-01T00:00:01Z"}
        - {id: 3, price: 2.50, part: 0, pos: 1, written: "1970-01-01T00:00:00.000Z"}
  - name: text records
    ordered: true
    given:
      lines: ["1,ein", "2,zwei", "x,drei"]
    want:
      words: [{id: 1, word: EIN}, {id: 2, word: ZWEI}]
    dead:
      - {reason: type_mismatch, column: id}
  - name: lateness counts in the row's own partition
    given:
      clicks:
        - {id: 1, page: a, ts: "2026-07-21T06:00:00Z"}
        - {id: 2, page: a, ts: "2026-07-21T07:30:00Z"}
        - {id: 3, page: a, ts: "2026-07-21T06:30:00Z"}
        - {id: 4, page: a, ts: "2026-07-21T06:40:00Z", $partition: 1}
    want:
      hours: [{page: a, n: 2, h: "2026-07-21 06:00:00"}, {page: a, n: 1, h: "2026-07-21 07:00:00"}]
    dead: [{table: hours, reason: late}]
  - name: what is wrong becomes NULL
    set: {POLICY: "null"}
    given: {clicks: [{id: 1, price: much}]}
    want: {copied: [{id: 1, price: null}]}
    dead: []
  - name: what is wrong is dropped
    set: {POLICY: drop}
    given: {clicks: [{id: 1, price: much}, {id: null}, {id: 2}]}
    want: {copied: [{id: 2}]}
  - name: dead rows alone
    given: {lines: ["1"]}
    dead: [{table: words, reason: malformed_record}]
  - name: tables without a format of text
    given:
      files: [{id: 1, b: aGk=, d: 1e3, ts: 2026-01-01 00:00:00Z}]
      made: [{id: 5}]
    want:
      nowhere:
        - {id: 1, b: aGk=, d: 1000, ts: "2026-01-01T00:00:00Z"}
        - {id: 5, d: 0.5}
  - name: nothing from nothing
    want: {copied: [], words: []}
`) {
		if !r.OK {
			t.Errorf("%s: %+v", r.Name, r.Problems)
		}
	}
}

// A batch job gives its final rows.
func TestBatch(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ddl.sql": "CREATE TABLE a (k STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '/lake/a', 'format' = 'csv');",
		"sum.sql": "SET 'execution.runtime-mode' = 'batch';\nCREATE TABLE b (k STRING, n BIGINT) WITH ('connector' = 'blackhole');\nINSERT INTO b SELECT k, SUM(n) FROM a GROUP BY k;",
		"x.yaml":  "job: sum.sql\nddl: [ddl.sql]\ntests:\n  - name: t\n    given: {a: ['x,1', 'y,2', 'x,3']}\n    want: {b: [{k: x, n: 4}, {k: y, n: 2}]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load(filepath.Join(dir, "x.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rs, err := Run(context.Background(), s, Options{Registry: registry(t)})
	if err != nil || !rs[0].OK {
		t.Errorf("%v %+v", err, rs)
	}
}

// Every difference is found, and said.
func TestFailing(t *testing.T) {
	rs := run(t, `tests:
  - name: values
    given: {clicks: [{id: 1, page: a, price: 1.5}, {id: 1, page: a, price: 1.5}, {id: 2, page: b}]}
    want:
      copied:
        - {id: 1, page: a, price: 1.51}
        - {id: 9, page: c, price: 3}
        - {id: 1, page: a, price: 1.5}
  - name: a row too many
    given: {clicks: [{id: 1}, {id: 1}]}
    want: {copied: [{id: 1}]}
  - name: order
    ordered: true
    given: {lines: ["1,a", "2,b"]}
    want: {words: [{id: 2}, {id: 1}]}
  - name: a dead row that nobody expects
    given: {lines: ["x,a"]}
    want: {words: []}
  - name: no dead row
    given: {lines: ["1,a"]}
    dead: [{reason: late, table: words, column: id}]
  - name: another column
    given: {lines: ["x,a"]}
    dead: [{reason: type_mismatch, column: word}]
  - name: a job that fails
    set: {POLICY: fail}
    given: {clicks: [{id: x}]}
    want: {copied: []}
  - name: dead elsewhere
    given: {lines: ["x,a"]}
    want: {copied: []}
`)
	want := [][]string{
		{`6 copied price: want 1.51, got 1.50`, `7 copied missing:    {"id": 9, "page": "c", "price": 3.00}`, `5 copied not wanted: {"id": 2, "page": "b", "price": null}`},
		{`11 copied not wanted: {"id": 1}`},
		{`15 words id: want 2, got 1`, `15 words id: want 1, got 2`},
		{`0  dead, and not wanted to be: type_mismatch in id for table words (lines 0:0:`},
		{`21  missing dead row: late in id for table words`},
		{`24  missing dead row: type_mismatch in word`, `0  dead, and not wanted to be: type_mismatch in id for table words`},
		{`0  the job failed: `},
		nil,
	}
	for i, r := range rs {
		if r.OK != (want[i] == nil) || len(r.Problems) != len(want[i]) {
			t.Errorf("%s: OK %v, %+v", r.Name, r.OK, r.Problems)
			continue
		}
		for k, p := range r.Problems {
			if got := strings.Join([]string{itoa(p.Line), p.Table, p.Message}, " "); !strings.HasPrefix(got, want[i][k]) {
				t.Errorf("%s: problem %q, want %q", r.Name, got, want[i][k])
			}
		}
	}
	if last := rs[len(rs)-1]; !slices.Equal(last.Notes, []string{"not compared: 1 dead of table words"}) {
		t.Errorf("notes %q", last.Notes)
	}
}

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + string(rune('0'+n%10))
	}
	return string(rune('0' + n))
}

// Faulty files are errors of the input that name their place.
func TestFaulty(t *testing.T) {
	one := func(body string) string { return "tests:\n  - name: t\n    " + body + "\n" }
	for _, c := range []struct{ text, says string }{
		{"", "empty"},
		{"tests: [", "yaml"},
		{"test: []", `1:1: a test file: unknown key "test"; did you mean "tests"?`},
		{"tests: []", "at least one test"},
		{"tests: [{want: {}}]", "needs a name"},
		{one("want: {copied: []}") + "---\ntests: []\n", "one document"},
		{"job: none.sql\n" + one("want: {copied: []}"), "none.sql"},
		{"ddl: none\n" + one("want: {copied: []}"), "none"},
		{one("wants: {}"), `3:5: a test: unknown key "wants"; did you mean "want"?`},
		{one("given: {clicks: []}"), "wants nothing"},
		{one("want: {copied: {id: 1}}"), "want a list"},
		{one("want: {copied: [1]}"), "an object of columns"},
		{one("want: {copied: [{idd: 1}]}"), `no column "idd"; did you mean "id"?`},
		{one("want: {copied: [{price: much}]}"), "column price"},
		{one("want: {copied: [{price: 1.005}]}"), "column price"},
		{one("want: {copied: [{id: 0x1F}]}"), "0x1F is no number"},
		{one("want: {copies: []}"), `the job writes no table "copies"; did you mean "copied"?`},
		{one("dead: [{reason: late, table: copies}]"), `writes no table "copies"`},
		{one("dead: [{table: copied}]"), "needs a reason"},
		{one("dead: []\n    given: {click: [{id: 1}]}"), `job.test.yaml:4:1: `},
		{one("dead: []\n    given: {click: [{id: 1}]}"), `the job reads no table "click"; did you mean "clicks"?`},
		{one("dead: []\n    given: {lines: [{id: 1}]}"), "has format csv"},
		{one("dead: []\n    given: {clicks: [{$offset: 1}]}"), `unknown key "$offset"`},
		{one("dead: []\n    given: {clicks: [{$partition: -1}]}"), "$partition"},
		{one("dead: []\n    given: {clicks: [{$timestamp: noon}]}"), "$timestamp"},
		{one("dead: []\n    given: {clicks: [{$raw: x, id: 1}]}"), "whole record"},
		{one("dead: []\n    given: {clicks: [7]}"), "a given row is an object"},
		{one("dead: []\n    dead: []"), "there twice"},
		{one("dead: []") + "  - name: t\n    dead: []\n", `two tests named "t"`},
	} {
		s, err := suite(t, c.text)
		if err == nil {
			_, err = Run(context.Background(), s, Options{Registry: registry(t)})
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.says)
		}
	}
	s, err := suite(t, one("set: {POLICY: nonsense}\n    dead: []"))
	if err != nil {
		t.Fatal(err)
	}
	var wrong *control.Error
	if _, err = Run(context.Background(), s, Options{Registry: registry(t)}); !errors.As(err, &wrong) || wrong.Kind != "input" {
		t.Errorf("SQL that does not compile: %v", err)
	}
}

// Update writes what is there; what it writes passes, and is left alone.
func TestUpdate(t *testing.T) {
	const before = `# about all
tests:

  # about the first
  - name: wrong
    given:
      clicks:
        - {id: 1, page: "06", ts: 2026-07-21T06:00:00Z, tags: {"yes": 1}} # a click
        - {id: 2, page: null, ts: 2026-07-21T06:00:00Z}

    want:
      copied:
        - {id: 7, page: x}
    dead: [{reason: late}]

  - name: fresh
    given: {lines: ['1,"a, b"', "x,y"]}

  - name: right
    dead: []
`
	const after = `# about all
tests:

  # about the first
  - name: wrong
    given:
      clicks:
        - {id: 1, page: "06", ts: '2026-07-21T06:00:00Z', tags: {"yes": 1}} # a click
        - {id: 2, page: null, ts: '2026-07-21T06:00:00Z'}

    want:
      copied:
        - {id: 1, page: "06"}
        - {id: 2}
    dead: []

  - name: fresh
    given: {lines: ['1,"a, b"', "x,y"]}
    want:
      words:
        - {id: 1, word: 'A, B'}
    dead:
      - {table: words, reason: type_mismatch, column: id}

  - name: right
    dead: []
`
	s, err := suite(t, before)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := Run(context.Background(), s, Options{Registry: registry(t), Accept: true})
	if err != nil {
		t.Fatal(err)
	}
	text, changed, err := s.Update(rs)
	if err != nil || !changed || string(text) != after {
		t.Fatalf("%v %v\n%s\nwant\n%s", changed, err, text, after)
	}
	if s, err = suite(t, after); err != nil {
		t.Fatal(err)
	}
	if rs, err = Run(context.Background(), s, Options{Registry: registry(t), Accept: true}); err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if !r.OK {
			t.Errorf("after the update: %+v", r)
		}
	}
	if _, changed, err := s.Update(rs); changed || err != nil {
		t.Errorf("a second update: %v %v", changed, err)
	}
}

// Update does not take anything from a job that failed.
func TestUpdateOfFailure(t *testing.T) {
	s, err := suite(t, "tests:\n  - name: t\n    set: {POLICY: fail}\n    given: {clicks: [{id: x}]}\n    want: {copied: []}\n")
	if err != nil {
		t.Fatal(err)
	}
	rs, err := Run(context.Background(), s, Options{Registry: registry(t), Accept: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, changed, err := s.Update(rs); changed || err == nil || !strings.Contains(err.Error(), "the job failed") {
		t.Errorf("%v %v", changed, err)
	}
}

// Text blocks keep their empty lines.
func TestUpdateKeepsText(t *testing.T) {
	s, err := suite(t, "tests:\n  - name: t\n    given:\n      clicks:\n        - |\n          {\"page\": \"a\\nb\", \"id\":\n\n\n          1}\n    want: {copied: [{id: 2, page: x}]}\n")
	if err != nil {
		t.Fatal(err)
	}
	rs, err := Run(context.Background(), s, Options{Registry: registry(t)})
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := s.Update(rs)
	if err != nil || !strings.Contains(string(text), "\"id\":\n\n\n") || !strings.Contains(string(text), `{id: 1, page: "a\nb"}`) {
		t.Errorf("%v\n%s", err, text)
	}
}
