package compile

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

const asDDL = `CREATE TABLE clicks (uid BIGINT NOT NULL, page STRING, price DECIMAL(10, 2), tags ARRAY<ROW<k STRING, n INT NOT NULL>>, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'log', 'topic' = 'clicks');
`

// TestCreateTableAs: the columns are those of Flink's FLIP-463: new ones first, then
// the query's, in the types that are declared for them.
func TestCreateTableAs(t *testing.T) {
	for _, x := range []struct{ sql, want string }{
		{"CREATE TABLE fresh WITH ('connector' = 'print') AS SELECT uid, price * 2 AS twice, tags, ts FROM clicks",
			"uid BIGINT NOT NULL|twice DECIMAL(21, 2)|tags ARRAY<ROW<`k` STRING, `n` INT NOT NULL>>|ts TIMESTAMP_LTZ(3)"},
		{"CREATE TABLE fresh (note STRING, price DECIMAL(12, 2), double_price AS price * 2) WITH ('connector' = 'print') AS SELECT uid, page, price FROM clicks",
			"note STRING|double_price DECIMAL(23, 2)|uid BIGINT NOT NULL|page STRING|price DECIMAL(12, 2)"},
		{"CREATE TABLE fresh (PRIMARY KEY (page) NOT ENFORCED) WITH ('connector' = 'print') AS SELECT page, COUNT(*) AS n FROM clicks GROUP BY page",
			"page STRING NOT NULL|n BIGINT NOT NULL"},
		{"CREATE TABLE fresh PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file') AS SELECT uid, 'x' AS dt FROM clicks",
			"uid BIGINT NOT NULL|dt CHAR(1) NOT NULL"},
		{"CREATE TABLE fresh (ts, uid, twice) WITH ('connector' = 'print') AS SELECT uid, price * 2 AS twice, ts FROM clicks",
			"ts TIMESTAMP_LTZ(3)|uid BIGINT NOT NULL|twice DECIMAL(21, 2)"},
		{"CREATE TABLE IF NOT EXISTS fresh WITH ('connector' = 'print') AS SELECT page FROM clicks", "page STRING"},
	} {
		u, ds := Compile([]Source{{"ddl.sql", asDDL}, {"job.sql", x.sql}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
		if ds.HasErrors() {
			t.Errorf("%s\n%s", x.sql, diag.Renderer{}.String(ds))
			continue
		}
		if u.Job == nil || !strings.Contains(u.Explain.Text, "Insert(table=fresh") {
			t.Errorf("%s\nno INSERT:\n%s", x.sql, u.Explain.Text)
		}
		s := newShell(t)
		s.run(asDDL + "SET 'execution.runtime-mode' = 'streaming'")
		if u := s.run(x.sql); len(u.Statements) != 1 || u.Statements[0].Job == nil {
			t.Errorf("%s\n%d statements in the shell", x.sql, len(u.Statements))
		}
		var got []string
		for _, row := range s.run("DESCRIBE fresh").Statements[0].Result.Rows {
			typ := row[0] + " " + row[1]
			if row[2] == "FALSE" && !strings.HasSuffix(typ, "NOT NULL") {
				typ += " NOT NULL"
			}
			got = append(got, typ)
		}
		if strings.Join(got, "|") != x.want {
			t.Errorf("%s\ngot  %s\nwant %s", x.sql, strings.Join(got, "|"), x.want)
		}
	}
}

// TestCreateTableAsMistakes: each at its place; what INSERT would refuse is refused.
func TestCreateTableAsMistakes(t *testing.T) {
	with := " WITH ('connector' = 'print') AS "
	for sql, want := range map[string]string{
		"CREATE TABLE fresh" + with + "SELECT uid + 1 FROM clicks":                                               "job.sql:1:59: error[bad_table]: column 1 of the table has no name",
		"CREATE TABLE fresh" + with + "SELECT uid, page AS uid FROM clicks":                                      "error[duplicate_column]",
		"CREATE TABLE fresh" + with + "SELECT NULL AS x FROM clicks":                                             "error[untyped_null]",
		"CREATE TABLE fresh" + with + "SELECT nope FROM clicks":                                                  "error[unknown_column]",
		"CREATE TABLE fresh (uid STRING)" + with + "SELECT uid FROM clicks":                                      "error[type_mismatch]",
		"CREATE TABLE fresh (note STRING NOT NULL)" + with + "SELECT uid FROM clicks":                            "NOT NULL",
		"CREATE TABLE clicks" + with + "SELECT 1 AS x":                                                           "error[duplicate_table]",
		"CREATE TEMPORARY TABLE fresh" + with + "SELECT uid FROM clicks":                                         "error[bad_table]",
		"CREATE TABLE IF NOT EXISTS clicks" + with + "SELECT nope FROM clicks":                                   "error[nothing_to_run]",
		"CREATE TABLE fresh AS SELECT uid FROM clicks":                                                           "job.sql:1:14: error[missing_option]: table \"fresh\" has no 'connector'",
		"CREATE TABLE fresh (uid, pag)" + with + "SELECT uid, page FROM clicks":                                  "job.sql:1:26: error[unknown_column]: the query gives no column \"pag\"",
		"CREATE TABLE fresh (uid, uid)" + with + "SELECT uid, page FROM clicks":                                  "error[duplicate_column]",
		"CREATE TABLE fresh (uid)" + with + "SELECT uid, page FROM clicks":                                       "error[column_count]: the list leaves out column \"page\"",
		"CREATE TABLE fresh (uid, page) WITH ('connector' = 'print')":                                            "error[syntax_error]: the columns have no types",
		"CREATE TABLE fresh WITH ('connector' = 'log', 'topic' = 'a') AS SELECT COUNT(*) AS n FROM clicks":       "error[updating_into_append]",
		"EXPLAIN CREATE TABLE fresh" + with + "SELECT uid FROM clicks; INSERT INTO fresh SELECT uid FROM clicks": "error[unknown_table]",
	} {
		_, ds := Compile([]Source{{"ddl.sql", asDDL}, {"job.sql", sql}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
		if got := (diag.Renderer{}).String(ds); !strings.Contains(got, want) {
			t.Errorf("%s\ngot\n%s\nwant %s", sql, got, want)
		}
	}
	s := newShell(t)
	s.run(asDDL)
	got := text(s.run("EXPLAIN CREATE TABLE fresh" + with + "SELECT uid FROM clicks").Statements[0].Result)
	if !strings.Contains(got, "Insert(table=fresh") {
		t.Error(got)
	}
}

// TestCreateTableAsInLoop: a loop makes and fills a table for each of its set, and
// EXPLAIN shows it as plain SQL; what a CREATE TABLE ... AS fills is no source of a
// loop, as what an INSERT fills.
func TestCreateTableAsInLoop(t *testing.T) {
	registry := sqltest.Registry()
	const loop = "FOR EACH TABLE t IN (SHOW TABLES LIKE 'app\\_%') BEGIN CREATE TABLE `${t}_uids` WITH ('connector' = 'print') AS SELECT uid FROM `${t}`; END FOR;"
	for _, sql := range []string{
		loop,
		"CREATE TABLE app_all WITH ('connector' = 'log', 'topic' = 'all') AS SELECT uid FROM other;\n" + loop,
	} {
		u, ds := Compile([]Source{{"ddl.sql", loopDDL}, {"job.sql", sql}}, Options{Registry: registry})
		if ds.HasErrors() {
			t.Fatalf("%s\n%s", sql, diag.Renderer{}.String(ds))
		}
		var lanes []string
		for _, l := range u.Explain.Lanes {
			lanes = append(lanes, l.Table+" > "+strings.Join(l.Direct, ", "))
		}
		got := strings.Join(lanes, "|")
		if want := "app_open > app_open_uids|app_close > app_close_uids"; !strings.HasSuffix(got, want) || strings.Contains(got, "app_all_uids") {
			t.Errorf("%s\nlanes %s, want %s", sql, got, want)
		}
	}
	x, ds := Compile([]Source{{"ddl.sql", loopDDL}, {"job.sql", "EXPLAIN " + loop}}, Options{Registry: registry, Mode: ModeCheck})
	if ds.HasErrors() {
		t.Fatal(diag.Renderer{}.String(ds))
	}
	plain := x.Statements[len(x.Statements)-1].Result.Rows[0][0]
	ddl := loopDDL[:strings.Index(loopDDL, "CREATE TABLE ods_tmpl")]
	if _, ds := Compile([]Source{{"ddl.sql", ddl}, {"job.sql", plain}}, Options{Registry: registry}); ds.HasErrors() || !strings.Contains(plain, "INSERT INTO") {
		t.Errorf("%s\n%s", plain, diag.Renderer{}.String(ds))
	}
}
