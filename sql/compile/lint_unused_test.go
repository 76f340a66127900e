package compile

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestUnusedColumns: check names the columns of the job file's own tables that nothing
// reads: not those of the watermark, of a key, of a view that is read, of another file.
func TestUnusedColumns(t *testing.T) {
	const src = "CREATE TABLE src (uid BIGINT, «unused_column|room» STRING, n INT, ts TIMESTAMP(3), `a%d` INT, WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'src');\n"
	const out = "CREATE TABLE dst (x BIGINT, y INT) WITH ('connector' = 'print');\n"
	ds := checkMarks(t, src+out+"INSERT INTO dst SELECT uid, n FROM src WHERE uid > 1;\n", ModeCheck)
	if len(ds) != 1 || ds[0].Message != `columns "room", "a%d" of "src" are read by no statement` {
		t.Errorf("%s", diag.Renderer{}.String(ds))
	}
	// Each column has a reader: the one statement or the other, a condition, a view.
	checkMarks(t, "CREATE TABLE src (uid BIGINT, room STRING, n INT, c AS n + 1) WITH ('connector' = 'log', 'topic' = 'src');\n"+out+
		"CREATE VIEW v AS SELECT uid, n FROM src WHERE room = 'x';\nINSERT INTO dst SELECT uid, 1 FROM v;\nINSERT INTO dst SELECT 1, c FROM src;\n", ModeCheck)
	// A table that nothing reads, and a run, say nothing.
	checkMarks(t, strings.NewReplacer("«unused_column|", "", "»", "").Replace(src)+out+"INSERT INTO dst VALUES (1, 2);\n", ModeCheck)
	checkMarks(t, strings.NewReplacer("«unused_column|", "", "»", "").Replace(src)+out+"INSERT INTO dst SELECT uid, n FROM src;\n", ModeRun)
	// DDL beside the job serves other jobs, too.
	_, ds = Compile([]Source{{"ddl.sql", strings.NewReplacer("«unused_column|", "", "»", "").Replace(src) + out}, {"job.sql", "INSERT INTO dst SELECT uid, n FROM src;"}},
		Options{Registry: sqltest.Registry(), Mode: ModeCheck})
	if len(ds) != 0 {
		t.Errorf("%s", diag.Renderer{}.String(ds))
	}
	// Many are counted.
	_, ds = Compile([]Source{{"job.sql", "CREATE TABLE src (uid BIGINT, a INT, b INT, c INT, d INT, e INT, f INT, g INT) WITH ('connector' = 'log', 'topic' = 'src');\n" + out +
		"INSERT INTO dst SELECT uid, 1 FROM src;"}}, Options{Registry: sqltest.Registry(), Mode: ModeCheck})
	if len(ds) != 1 || ds[0].Message != `columns "a", "b", "c", "d", "e", 2 more of "src" are read by no statement` {
		t.Errorf("%s", diag.Renderer{}.String(ds))
	}
}
