package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
	"github.com/millrace/millrace/sql/syntax"
)

// shell compiles lines one after the other in one session.
type shell struct {
	t    *testing.T
	opts Options
}

func newShell(t *testing.T) *shell {
	return &shell{t, Options{Registry: sqltest.Registry(), Mode: ModeSQL, Session: NewSession(), ResultSink: sqltest.NewCollect()}}
}

func (s *shell) run(sql string) *Unit {
	s.t.Helper()
	u, ds := Compile([]Source{{"line", sql}}, s.opts)
	if ds.HasErrors() {
		s.t.Fatalf("%s\n%s", sql, diag.Renderer{}.String(ds))
	}
	return u
}

func (s *shell) fails(sql string, code diag.Code) {
	s.t.Helper()
	_, ds := Compile([]Source{{"line", sql}}, s.opts)
	if !ds.HasErrors() || ds[0].Code != code {
		s.t.Errorf("%s: got %v, want %s", sql, ds, code)
	}
}

func text(r *Result) string {
	var lines []string
	for _, row := range r.Rows {
		lines = append(lines, strings.Join(row, "|"))
	}
	return strings.Join(lines, "\n")
}

// TestSessionKeepsTablesAndSettings: what a line declares is there for the
// next one; a line with an error leaves nothing behind.
func TestSessionKeepsTablesAndSettings(t *testing.T) {
	s := newShell(t)
	s.run("CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '5')")
	s.run("SET 'table.local-time-zone' = 'Asia/Shanghai'")
	s.fails("CREATE TABLE u (a INT) WITH ('connector' = 'print'); SELECT nope FROM t", "unknown_column")
	s.fails("SELECT a FROM u", "unknown_table")
	u := s.run("SELECT a + 1 AS b FROM t")
	st := u.Statements[0]
	if st.Kind != KindQuery || st.Job == nil || !st.Job.Bounded || !st.Job.Batch || st.Job.Zone.String() != "Asia/Shanghai" {
		t.Errorf("statement %+v", st)
	}
	if f := st.Schema.Fields; len(f) != 1 || f[0].Name != "b" || f[0].Type.String() != "INT" {
		t.Errorf("schema %v", f)
	}
}

// TestShellReadsToThePresentEnd: a query over a log ends.
func TestShellReadsToThePresentEnd(t *testing.T) {
	s := newShell(t)
	s.run("CREATE TABLE t (a INT) WITH ('connector' = 'log', 'topic' = 't')")
	job := s.run("SELECT COUNT(*) FROM t").Statements[0].Job
	if !job.Bounded {
		t.Error("the job never ends")
	}
	src := job.Nodes[0].Op.(*graph.Source)
	if got := src.Table.Options.String("scan.bounded.mode"); got != "latest-offset" {
		t.Errorf("scan.bounded.mode is %q", got)
	}
}

// TestSettingsAreSharedByTheJob: run mode has one job with all INSERTs and
// the job-wide settings.
func TestJobSettings(t *testing.T) {
	u, ds := Compile([]Source{{"dir/my job.sql", `
SET 'parallelism.default' = '3';
SET 'lane.on-error' = 'drop';
SET 'table.exec.sink.not-null-enforcer' = 'error';
SET 'execution.checkpointing.interval' = '5 s';
CREATE TABLE s (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 's', 'scan.watermark.idle-timeout' = '7 s');
CREATE TABLE p (n BIGINT) WITH ('connector' = 'print');
CREATE TABLE q (n BIGINT) WITH ('connector' = 'print', 'lane.on-error' = 'fail');
INSERT INTO p SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY a, window_start, window_end;
INSERT INTO q SELECT a FROM s;
`}}, Options{Registry: sqltest.Registry()})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	if u.Name != "my job" || u.NameSet || u.Job.Name != "my job" || u.Job.Bounded || u.Job.Batch {
		t.Errorf("unit %q set %v, job %+v", u.Name, u.NameSet, u.Job)
	}
	if u.Job.Options["execution.checkpointing.interval"] != "5 s" {
		t.Errorf("options %v", u.Job.Options)
	}
	for _, n := range u.Job.Nodes {
		switch op := n.Op.(type) {
		case *graph.Source:
			if op.IdleTimeout.Seconds() != 7 || n.TimeColumn < 0 {
				t.Errorf("source: idle %v, time column %d", op.IdleTimeout, n.TimeColumn)
			}
		case *graph.Exchange:
			if op.Parallelism != 3 {
				t.Errorf("parallelism %d", op.Parallelism)
			}
		case *graph.Sink:
			want := graph.Drop
			if op.Table.Name == "q" {
				want = graph.Fail
			}
			if op.OnError != want || op.NotNull != graph.Fail {
				t.Errorf("sink %s: on error %d, not null %d", op.Table.Name, op.OnError, op.NotNull)
			}
		}
	}
}

func TestPreviewReplacesSinks(t *testing.T) {
	sink := sqltest.NewCollect()
	u, ds := Compile([]Source{{"job.sql", `
CREATE TABLE s (a INT) WITH ('connector' = 'log', 'topic' = 's');
CREATE TABLE p (a INT) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'parquet');
INSERT INTO p SELECT a FROM s;
`}}, Options{Registry: sqltest.Registry(), Mode: ModePreview, ResultSink: sink})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	op := u.Job.Nodes[len(u.Job.Nodes)-1].Op.(*graph.Sink)
	if op.Connector != sink || op.Table.Name != "p" || !u.Job.Bounded {
		t.Errorf("sink %v of table %s, bounded %v", op.Connector, op.Table.Name, u.Job.Bounded)
	}
}

func TestShowAndDescribe(t *testing.T) {
	s := newShell(t)
	s.opts.Vars = syntax.MapVars{Secrets: map[string]string{"TOKEN": "hunter2"}}
	s.run("CREATE TABLE clicks (id BIGINT NOT NULL COMMENT 'the id', twice AS id * 2, `offset` BIGINT METADATA VIRTUAL, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) " +
		"COMMENT 'c' WITH ('connector' = 'log', 'topic' = 'c', 'token' = '${secret:TOKEN}')")
	s.run("CREATE VIEW v AS SELECT id FROM clicks")
	for sql, want := range map[string]string{
		"SHOW TABLES":              "clicks\nv",
		"SHOW VIEWS":               "v",
		"SHOW TABLES LIKE 'cl%'":   "clicks",
		"SHOW TABLES NOT LIKE '_'": "clicks",
		"DESCRIBE v":               "id|BIGINT|FALSE||||",
		"DESCRIBE clicks": "id|BIGINT|FALSE||||the id\ntwice|BIGINT|FALSE||AS id * 2||\n" +
			"offset|BIGINT|TRUE||METADATA FROM 'offset' VIRTUAL||\nts|TIMESTAMP(3)|TRUE|||ts - INTERVAL '5' SECOND|",
	} {
		if got := text(s.run(sql).Statements[0].Result); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", sql, got, want)
		}
	}
	create := text(s.run("SHOW CREATE TABLE clicks").Statements[0].Result)
	if strings.Contains(create, "hunter2") || !strings.Contains(create, "'token' = '***'") {
		t.Errorf("the secret is not masked:\n%s", create)
	}
	again, ds := Compile([]Source{{"again", create}}, Options{Registry: sqltest.Registry(), Mode: ModeCheck})
	if ds.HasErrors() || again == nil {
		t.Errorf("the text of SHOW CREATE TABLE does not compile: %v", ds)
	}
	if got := text(s.run("EXPLAIN SELECT id FROM clicks WHERE id > 1").Statements[0].Result); !strings.Contains(got, "Filter(id > 1)") {
		t.Errorf("EXPLAIN: %s", got)
	}
	if got := text(s.run("EXPLAIN JSON_EXECUTION_PLAN SELECT id FROM clicks").Statements[0].Result); !strings.Contains(got, `"type": "Scan"`) {
		t.Errorf("EXPLAIN JSON: %s", got)
	}
}

// TestVariables: values are put in, never lexed; spans point at the
// placeholder.
func TestVariables(t *testing.T) {
	vars := syntax.MapVars{Values: map[string]string{"TOPIC": "it's; a -- topic", "MODE": "earliest"}}
	u, ds := Compile([]Source{{"job.sql", `CREATE TABLE s (a INT) WITH ('connector' = 'log', 'topic' = '${TOPIC}', 'scan.startup.mode' = '${START:-earliest-offset}');
CREATE TABLE p (a INT) WITH ('connector' = 'print');
INSERT INTO p SELECT a FROM s;`}}, Options{Registry: sqltest.Registry(), Vars: vars})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	src := u.Job.Nodes[0].Op.(*graph.Source)
	if src.Table.Options.String("topic") != "it's; a -- topic" || src.Table.Options.String("scan.startup.mode") != "earliest-offset" {
		t.Errorf("options %v", src.Table.Options)
	}
	_, ds = Compile([]Source{{"job.sql", `CREATE TABLE s (a INT) WITH ('connector' = 'log', 'topic' = 't', 'scan.startup.mode' = '${MODE}');`}},
		Options{Registry: sqltest.Registry(), Vars: vars, Mode: ModeCheck})
	if len(ds) != 1 || ds[0].Span.Text() != "'${MODE}'" || ds[0].Code != diag.CodeBadOption {
		t.Errorf("got %v", ds)
	}
}

// TestStateNames: the name of a state does not depend on aliases, formatting
// or the order of columns; adding an aggregate keeps it.
func TestStateNames(t *testing.T) {
	const ddl = `CREATE TABLE s (a INT, b INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 's');
CREATE TABLE p (x INT, y BIGINT) WITH ('connector' = 'print');
CREATE TABLE p3 (x INT, y BIGINT, z INT) WITH ('connector' = 'print');
`
	path := func(sql string) string {
		t.Helper()
		u, ds := Compile([]Source{{"job.sql", ddl + sql}}, Options{Registry: sqltest.Registry()})
		if ds.HasErrors() || len(u.Explain.State) != 1 {
			t.Fatalf("%s: %v", sql, ds)
		}
		return u.Explain.State[0].Path
	}
	const from = " FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
	first := path("INSERT INTO p SELECT a, COUNT(*)" + from + " GROUP BY a, window_start, window_end")
	for _, same := range []string{
		"INSERT INTO p SELECT a AS k,\n  COUNT(*) AS n" + from + " GROUP BY window_start, window_end, a",
		"INSERT INTO p SELECT t.a, COUNT(*)" + from + " AS t GROUP BY t.a, window_start, window_end HAVING COUNT(*) > 0",
		"INSERT INTO p SELECT a, COUNT(*) + SUM(b)" + from + " GROUP BY a, window_start, window_end",
	} {
		if got := path(same); got != first {
			t.Errorf("%s\nhas the state %q, want %q", same, got, first)
		}
	}
	for _, other := range []string{
		"INSERT INTO p SELECT b, COUNT(*)" + from + " GROUP BY b, window_start, window_end",
		"INSERT INTO p3 SELECT a, COUNT(*), 1" + from + " GROUP BY a, window_start, window_end",
		"INSERT INTO p SELECT a, COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '2' HOUR)) GROUP BY a, window_start, window_end",
	} {
		if got := path(other); got == first {
			t.Errorf("%s\nhas the same state", other)
		}
	}
	// Aggregates of one name are numbered if they are the same, and refused if not.
	const pair = "INSERT INTO p3 SELECT l.a, l.n, 0 FROM (SELECT a, COUNT(*) AS n, window_start, window_end" + from +
		" GROUP BY a, window_start, window_end) AS l JOIN (SELECT a, COUNT(*) AS n, window_start, window_end" + from +
		" GROUP BY a, window_start, window_end) AS r ON l.a = r.a AND l.window_start = r.window_start AND l.window_end = r.window_end"
	u, ds := Compile([]Source{{"job.sql", ddl + pair}}, Options{Registry: sqltest.Registry()})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	names := map[string]bool{}
	for _, s := range u.Explain.State {
		names[s.Path] = true
	}
	if len(names) != 3 {
		t.Errorf("states %v", u.Explain.State)
	}
	_, ds = Compile([]Source{{"job.sql", ddl + strings.Replace(pair, "COUNT(*)", "SUM(b)", 1)}}, Options{Registry: sqltest.Registry()})
	if len(ds) == 0 || ds[0].Code != diag.CodeStateName {
		t.Errorf("two aggregates of one name: %v", ds)
	}
}

// TestStateNamesOfSetOperations: what has no SELECT of its own to name its state is
// named by its place, and the first rows of a query by its hint.
func TestStateNamesOfSetOperations(t *testing.T) {
	const ddl = `CREATE TABLE s (a INT, b INT) WITH ('connector' = 'log', 'topic' = 's');
CREATE TABLE p (x INT) WITH ('connector' = 'print');
INSERT INTO p `
	for sql, want := range map[string]string{
		"SELECT a FROM s INTERSECT SELECT b FROM s INTERSECT SELECT a + b FROM s":                                         "p/intersect[a] p/left/intersect[a]",
		"SELECT a FROM s EXCEPT (SELECT b FROM s EXCEPT SELECT a + b FROM s)":                                             "p/except[a] p/right/except[b]",
		"SELECT a FROM s EXCEPT SELECT b FROM s UNION ALL (SELECT b FROM s EXCEPT SELECT a FROM s)":                       "p/branch1/except[a] p/branch2/except[b]",
		"(SELECT a FROM s UNION SELECT b FROM s) EXCEPT (SELECT a + b FROM s UNION SELECT a - b AS a FROM s)":             "p/except[a] p/left/distinct[a] p/right/distinct[EXPR$0]",
		"(SELECT a FROM s ORDER BY a LIMIT 3) UNION ALL (SELECT /*+ STATE_ID('two') */ b AS a FROM s ORDER BY a LIMIT 3)": "p/limit[; a] two[; b]",
	} {
		u, ds := Compile([]Source{{"job.sql", ddl + sql + ";"}}, Options{Registry: sqltest.Registry()})
		if ds.HasErrors() {
			t.Errorf("%s: %v", sql, ds)
			continue
		}
		var got []string
		for _, s := range u.Explain.State {
			got = append(got, s.Path)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s\nhas the states %q, want %q", sql, got, want)
		}
	}
}

// TestSecretsStayOutOfMessages: a message that repeats the value of an option
// masks the secret in it.
func TestSecretsStayOutOfMessages(t *testing.T) {
	_, ds := Compile([]Source{{"job.sql", "CREATE TABLE s (a INT) WITH ('connector' = 'log', 'topic' = 't', 'scan.startup.mode' = 'x-${secret:PW}');"}},
		Options{Registry: sqltest.Registry(), Mode: ModeCheck, Vars: syntax.MapVars{Secrets: map[string]string{"PW": "hunter2"}}})
	if len(ds) != 1 || ds[0].Code != diag.CodeBadOption {
		t.Fatalf("got %v", ds)
	}
	if text := (diag.Renderer{}).String(ds); strings.Contains(text, "hunter2") || !strings.Contains(text, "x-***") {
		t.Errorf("not masked: %s", text)
	}
}

// TestScriptDetails: semicolons in strings and comments, empty statements, no
// last semicolon.
func TestScriptDetails(t *testing.T) {
	s := newShell(t)
	u := s.run("SELECT 'a;b' AS x; -- one; two\n/* c; d */ SELECT CONCAT(';',CHR(10)) ;;\nSELECT 1")
	if len(u.Statements) != 3 {
		t.Fatalf("%d statements, want 3", len(u.Statements))
	}
	for i, want := range []string{"x", "EXPR$0", "EXPR$0"} {
		if st := u.Statements[i]; st.Kind != KindQuery || st.Job == nil || st.Schema.Fields[0].Name != want {
			t.Errorf("statement %d: %+v", i, st)
		}
	}
}

// TestWholeFileBindsFirst: with a mistake in the middle of a file with a byte
// order mark and CRLF line ends nothing runs, and the place is right.
func TestWholeFileBindsFirst(t *testing.T) {
	u, ds := Compile([]Source{{"job.sql", "\ufeff" + strings.ReplaceAll(`CREATE TABLE s (a INT) WITH ('connector' = 'log', 'topic' = 's');
SET 'pipeline.name' = 'x';
CREATE TABLE p (a INT) WITH ('connector' = 'print');
INSERT INTO p SELECT a FROM s;
INSERT INTO p SELECT b FROM s;
INSERT INTO p SELECT a + 1 FROM s;
`, "\n", "\r\n")}}, Options{Registry: sqltest.Registry()})
	if u.Job != nil {
		t.Error("there is a job")
	}
	if len(ds) != 1 || ds[0].Code != diag.CodeUnknownColumn || ds[0].Span.StartPos().Line != 5 || ds[0].Span.StartPos().Col != 22 {
		t.Errorf("got %v", ds)
	}
}

// TestFilesInOrder: DDL may lie in several files; a table must be declared
// before it is used.
func TestFilesInOrder(t *testing.T) {
	ddl := Source{"ddl/s.sql", "CREATE TABLE s (a INT) WITH ('connector' = 'log', 'topic' = 's');"}
	job := Source{"job.sql", "CREATE TABLE p (a INT) WITH ('connector' = 'print'); INSERT INTO p SELECT a FROM s;"}
	if _, ds := Compile([]Source{ddl, job}, Options{Registry: sqltest.Registry()}); len(ds) > 0 {
		t.Errorf("DDL first: %v", ds)
	}
	_, ds := Compile([]Source{job, ddl}, Options{Registry: sqltest.Registry()})
	if len(ds) != 1 || ds[0].Code != diag.CodeUnknownTable || !strings.Contains(ds[0].Message, "declared after") {
		t.Errorf("DDL last: %v", ds)
	}
}
