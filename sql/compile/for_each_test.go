package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/sqltest"
	"github.com/millrace/millrace/sql/syntax"
)

// loopDDL is two topics of their own columns, another table, and a template.
const loopDDL = `CREATE TABLE app_open (uid BIGINT NOT NULL COMMENT 'who', os STRING, ts TIMESTAMP_LTZ(3), part INT METADATA FROM 'partition' VIRTUAL, low AS LOWER(os), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'log', 'topic' = 'app_open');
CREATE TABLE app_close (uid BIGINT, secs INT, ts TIMESTAMP_LTZ(3), PRIMARY KEY (uid) NOT ENFORCED) WITH ('connector' = 'log', 'topic' = 'app_close');
CREATE TABLE other (uid BIGINT) WITH ('connector' = 'log', 'topic' = 'other');
CREATE VIEW app_view AS SELECT uid FROM app_open;
CREATE TABLE ods_tmpl (dt STRING, hr STRING) COMMENT 'rows of ${t}' PARTITIONED BY (dt, hr) WITH (
  'connector' = 'filesystem', 'path' = '/lake/${t}', 'format' = 'parquet', 'sink.partition-commit.policy.kind' = 'success-file');
`

const loop = "FOR EACH TABLE t IN (SHOW TABLES LIKE 'app\\_%') BEGIN\n" +
	"  CREATE TABLE IF NOT EXISTS `ods_${t}` LIKE ods_tmpl (INCLUDING ALL) WITH COLUMNS OF `${t}`;\n" +
	"  INSERT INTO `ods_${t}` SELECT *, DATE_FORMAT(ts, 'yyyy-MM-dd'), DATE_FORMAT(ts, 'HH') FROM `${t}`;\n" +
	"END FOR;\n"

// TestForEachTable: each table of the set gets a table of its own, with its columns
// as physical ones and the template's behind them, and its path.
func TestForEachTable(t *testing.T) {
	var index plan.Index
	u, ds := Compile([]Source{{"ddl.sql", loopDDL}, {"job.sql", loop}}, Options{Registry: sqltest.Registry(), Index: &index})
	if len(ds) > 0 {
		t.Fatal(diag.Renderer{}.String(ds))
	}
	var lanes []string
	for _, l := range u.Explain.Lanes {
		lanes = append(lanes, l.Table+" > "+strings.Join(l.Direct, ", "))
	}
	if got, want := fmt.Sprint(lanes), "[app_open > ods_app_open app_close > ods_app_close]"; got != want {
		t.Errorf("lanes %s, want %s", got, want)
	}
	o, _ := index.Catalog.Lookup("ods_app_open")
	want := `CREATE TABLE ods_app_open (
  uid BIGINT NOT NULL COMMENT 'who',
  os STRING,
  ts TIMESTAMP_LTZ(3),
  part INT,
  low STRING,
  dt STRING,
  hr STRING
) COMMENT 'rows of app_open'
PARTITIONED BY (dt, hr)
WITH (
  'connector' = 'filesystem',
  'path' = '/lake/app_open',
  'format' = 'parquet',
  'sink.partition-commit.policy.kind' = 'success-file'
)`
	if got := plan.CreateTableText(o.(*catalog.Table)); got != want {
		t.Errorf("ods_app_open\n got %s\nwant %s", got, want)
	}
}

// TestForEachIsItsPlainSQL: what EXPLAIN FOR EACH prints compiles to the same job.
func TestForEachIsItsPlainSQL(t *testing.T) {
	registry := sqltest.Registry()
	u, ds := Compile([]Source{{"ddl.sql", loopDDL}, {"job.sql", loop}}, Options{Registry: registry})
	x, xs := Compile([]Source{{"ddl.sql", loopDDL}, {"job.sql", "EXPLAIN " + loop}}, Options{Registry: registry, Mode: ModeCheck})
	if len(ds)+len(xs) > 0 {
		t.Fatal(diag.Renderer{}.String(append(ds, xs...)))
	}
	last := x.Statements[len(x.Statements)-1]
	text := last.Result.Rows[0][0]
	if _, declared := x.Session.Catalog.Lookup("ods_app_open"); declared || x.Job != nil {
		t.Error("EXPLAIN declared a table or made a job")
	}
	ddl := loopDDL[:strings.Index(loopDDL, "CREATE TABLE ods_tmpl")]
	p, ps := Compile([]Source{{"ddl.sql", ddl}, {"job.sql", text}}, Options{Registry: registry})
	if len(ps) > 0 {
		t.Fatalf("%s\n%s", text, diag.Renderer{}.String(ps))
	}
	if p.Explain.Text != u.Explain.Text {
		t.Errorf("the loop\n%s\nits plain SQL\n%s", u.Explain.Text, p.Explain.Text)
	}
}

// TestForEachSet: what is no table of the set.
func TestForEachSet(t *testing.T) {
	const all = "FOR EACH TABLE t IN (SHOW TABLES) BEGIN INSERT INTO `ods_${t}` SELECT uid FROM `${t}`; END FOR;"
	const src = "CREATE TABLE %s (uid BIGINT) WITH ('connector' = 'log', 'topic' = 'x_%[1]s');\n"
	const out = "CREATE TABLE %s (uid BIGINT) WITH ('connector' = 'print');\n"
	f := func(format, name string) string { return fmt.Sprintf(format, name) }
	for name, c := range map[string]struct{ sql, lanes string }{
		"targets of the loop itself": {f(src, "a") + f(src, "ods_a") + all, "a"},
		"targets of other INSERTs":   {f(src, "a") + f(out, "ods_a") + f(src, "log2") + all + "INSERT INTO log2 SELECT uid FROM a;", "a"},
		"views and templates": {f(src, "a") + f(out, "ods_a") + "CREATE VIEW v AS SELECT 1 AS uid;\n" +
			"CREATE TABLE nothing (uid BIGINT);\nCREATE TABLE unbound (uid BIGINT) WITH ('connector' = 'log', 'topic' = '${t}');\n" + all, "a"},
		"products of a loop": {f(src, "a") + "CREATE TABLE tmpl WITH ('connector' = 'log', 'topic' = 'ods_${t}');\n" +
			"FOR EACH TABLE t IN (SHOW TABLES) BEGIN CREATE TABLE `ods_${t}` LIKE tmpl WITH COLUMNS OF `${t}`; INSERT INTO `ods_${t}` SELECT * FROM `${t}`; END FOR;\n" +
			f(out, "o") + "FOR EACH TABLE t IN (SHOW TABLES) BEGIN INSERT INTO o SELECT uid FROM `${t}`; END FOR;", "a"},
		"a pattern with NOT":   {f(src, "a") + f(src, "b") + f(out, "o") + "FOR EACH TABLE x IN (SHOW TABLES NOT LIKE 'b') BEGIN INSERT INTO o SELECT uid FROM `${x}`; END FOR;", "a"},
		"a table of late rows": {f(src, "a") + f(out, "ods_a") + f(src, "late") + "SET 'window.late-rows' = 'late';\n" + all, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			u, ds := Compile([]Source{{"job.sql", c.sql}}, Options{Registry: sqltest.Registry()})
			if ds.HasErrors() {
				t.Fatalf("%s\n%s", c.sql, diag.Renderer{}.String(ds))
			}
			var lanes []string
			for _, l := range u.Explain.Lanes {
				lanes = append(lanes, l.Table)
			}
			if got := strings.Join(lanes, ", "); got != c.lanes {
				t.Errorf("%s\nlanes of %s, want %s", c.sql, got, c.lanes)
			}
		})
	}
}

// TestForEachMessages are what is wrong with a loop, at its place.
func TestForEachMessages(t *testing.T) {
	for name, text := range map[string]string{
		"column that no table has": loopDDL + "CREATE TABLE o (uid BIGINT) WITH ('connector' = 'print');\n" +
			"FOR EACH TABLE t IN (SHOW TABLES LIKE 'app\\_%') BEGIN INSERT INTO o SELECT «unknown_column|user_id» FROM `${t}`; END FOR;",
		"table made twice": loopDDL + "FOR EACH TABLE t IN (SHOW TABLES LIKE 'app\\_%') BEGIN CREATE TABLE «duplicate_table|same» LIKE ods_tmpl WITH COLUMNS OF `${t}`; END FOR;",
		"table of other columns made twice": "CREATE TABLE c1 (a INT) WITH ('connector' = 'log', 'topic' = 'c1');\nCREATE TABLE c2 (a INT, b INT) WITH ('connector' = 'log', 'topic' = 'c2');\n" +
			"CREATE TABLE c3 (a INT, b INT, c INT) WITH ('connector' = 'log', 'topic' = 'c3');\nCREATE TABLE tmpl WITH ('connector' = 'log', 'topic' = 'o');\n" +
			"FOR EACH TABLE t IN (SHOW TABLES LIKE 'c_') BEGIN CREATE TABLE «duplicate_table|same» LIKE tmpl WITH COLUMNS OF `${t}`; INSERT INTO same SELECT * FROM `${t}`; END FOR;",
		"clash": "CREATE TABLE a (uid BIGINT, dt DATE) WITH ('connector' = 'log', 'topic' = 'a');\n" +
			"CREATE TABLE tmpl (dt STRING) WITH ('connector' = 'log', 'topic' = 'o');\nCREATE TABLE o LIKE tmpl «duplicate_column|WITH COLUMNS OF a»;",
		"EXCEPT of no column": "CREATE TABLE a (uid BIGINT, dt DATE) WITH ('connector' = 'log', 'topic' = 'a');\n" +
			"CREATE TABLE tmpl WITH ('connector' = 'log', 'topic' = 'o');\nCREATE TABLE o LIKE tmpl WITH COLUMNS OF a EXCEPT («unknown_column|dd»);",
		"columns of nothing":     "CREATE TABLE tmpl WITH ('connector' = 'log', 'topic' = 'o');\nCREATE TABLE o LIKE tmpl WITH COLUMNS OF «unknown_table|a»;",
		"columns of a template":  "CREATE TABLE tmpl WITH ('connector' = 'log', 'topic' = 'o');\nCREATE TABLE o LIKE tmpl WITH COLUMNS OF «bad_like|tmpl»;",
		"option of the template": strings.Replace(loopDDL, "'format'", "«unknown_option|'formt'» = 'x', 'format'", 1) + loop,
		"set of nothing":         loopDDL + "CREATE TABLE o (uid BIGINT) WITH ('connector' = 'print');\n«bad_loop|FOR EACH TABLE t IN (SHOW TABLES LIKE 'nil%'») BEGIN INSERT INTO o SELECT uid FROM `${t}`; END FOR;",
		"declared behind the loop": "CREATE TABLE a (uid BIGINT) WITH ('connector' = 'log', 'topic' = 'a');\nCREATE TABLE o (uid BIGINT) WITH ('connector' = 'print');\n" +
			"FOR EACH TABLE t IN (SHOW TABLES) BEGIN INSERT INTO o SELECT uid FROM `${t}`; END FOR;\nCREATE TABLE «bad_loop|b» (uid BIGINT) WITH ('connector' = 'log', 'topic' = 'b');",
		"variable outside": loopDDL + loop + "INSERT INTO ods_app_open SELECT *, '«bad_variable|${t}»', '' FROM app_open;",
		"name outside":     loopDDL + loop + "CREATE TABLE `x«bad_variable|${t}»` (a INT) WITH ('connector' = 'print');",
		"template read":    loopDDL + loop + "CREATE TABLE o (dt STRING) WITH ('connector' = 'print');\nINSERT INTO o SELECT dt FROM «not_a_source|ods_tmpl»;",
		"template written": loopDDL + loop + "INSERT INTO «not_a_sink|ods_tmpl» SELECT '', '';",
	} {
		t.Run(name, func(t *testing.T) {
			ds := checkMarks(t, text, ModeCheck)
			if name == "column that no table has" {
				golden(t, ds, `job.sql:9:76: error[unknown_column]: column "user_id" not found in "app_open" (+1 tables)
 9 | FOR EACH TABLE t IN (SHOW TABLES LIKE 'app\_%') BEGIN INSERT INTO o SELECT user_id FROM `+"`${t}`"+`; END FOR;
   |                                                                            ^^^^^^^
note: job.sql:9:1: in FOR EACH, t = "app_open"
 9 | FOR EACH TABLE t IN (SHOW TABLES LIKE 'app\_%') BEGIN INSERT INTO o SELECT user_id FROM `+"`${t}`"+`; END FOR;
   | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: did you mean "uid"?
`)
			}
		})
	}
}

// TestLoopVariableOfSet: a variable has one meaning.
func TestLoopVariableOfSet(t *testing.T) {
	vars := syntax.MapVars{Values: map[string]string{"t": "x"}}
	_, ds := Compile([]Source{{"job.sql", loopDDL + loop}}, Options{Registry: sqltest.Registry(), Vars: vars})
	if len(ds) != 1 || ds[0].Code != diag.CodeBadVariable || ds[0].Span.Text() != "t" {
		t.Errorf("%s", diag.Renderer{}.String(ds))
	}
}

// TestForEachOfThousand: a loop over a thousand tables, and a mistake in its body
// that is said once.
func TestForEachOfThousand(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "CREATE TABLE app_%d (c%[1]d INT, uid BIGINT, ts TIMESTAMP_LTZ(3)) WITH ('connector' = 'log', 'topic' = 'app_%[1]d');\n", i)
	}
	ddl := b.String() + loopDDL[strings.Index(loopDDL, "CREATE TABLE ods_tmpl"):]
	u, ds := Compile([]Source{{"ddl.sql", ddl}, {"job.sql", loop}}, Options{Registry: sqltest.Registry()})
	if len(ds) > 0 {
		t.Fatal(diag.Renderer{}.String(ds[:1]))
	}
	if len(u.Explain.Lanes) != 1000 {
		t.Errorf("%d lanes", len(u.Explain.Lanes))
	}
	_, ds = Compile([]Source{{"ddl.sql", ddl}, {"job.sql", strings.Replace(loop, "'HH')", "'HH'), 1", 1)}}, Options{Registry: sqltest.Registry()})
	if len(ds) != 1 || ds[0].More() != 999 {
		t.Errorf("%d messages, the first stands for %d more", len(ds), ds[0].More())
	}
}

// TestLoopInTheShell: the INSERTs of a loop are one job; a loop of CREATE TABLE
// alone declares.
func TestLoopInTheShell(t *testing.T) {
	s := NewSession()
	run := func(text string) *Unit {
		t.Helper()
		u, ds := Compile([]Source{{"typed", text}}, Options{Registry: sqltest.Registry(), Mode: ModeSQL, Session: s})
		if ds.HasErrors() {
			t.Fatal(diag.Renderer{}.String(ds))
		}
		return u
	}
	run("CREATE TABLE a (uid BIGINT) WITH ('connector' = 'log', 'topic' = 'a');\nCREATE TABLE b (uid BIGINT) WITH ('connector' = 'log', 'topic' = 'b');\n" +
		"CREATE TABLE o (uid BIGINT) WITH ('connector' = 'print');")
	u := run("FOR EACH TABLE t IN (SHOW TABLES NOT LIKE 'o') BEGIN INSERT INTO o SELECT uid FROM `${t}`; END FOR;")
	if len(u.Statements) != 1 || u.Statements[0].Kind != KindInsert || u.Statements[0].Job == nil {
		t.Errorf("statements %+v", u.Statements)
	}
	u = run("FOR EACH TABLE t IN (SHOW TABLES NOT LIKE 'o') BEGIN CREATE TABLE `copy_${t}` LIKE `${t}`; END FOR;")
	if len(u.Statements) != 1 || u.Statements[0].Kind != KindDDL || u.Statements[0].Result.Rows[0][0] != "2 tables created" {
		t.Errorf("statements %+v", u.Statements)
	}
	if _, ok := u.Session.Catalog.Lookup("copy_b"); !ok {
		t.Error("copy_b is not declared")
	}
}
