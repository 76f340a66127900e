package compile

import (
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestLateRowsIntoATable: the table of late rows is fed by the lane, behind the
// WHERE of the window's query, with the rows as its FROM gives them.
func TestLateRowsIntoATable(t *testing.T) {
	const ddl = `
CREATE TABLE clicks (uid BIGINT, page STRING, t STRING, ts AS TO_TIMESTAMP(t), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'c');
CREATE TABLE plays (uid BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'p');
CREATE TABLE out_t (k STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE late_clicks (ts TIMESTAMP(3), page STRING, t STRING) WITH ('connector' = 'print');
CREATE TABLE late_times (ts TIMESTAMP(3), uid BIGINT) WITH ('connector' = 'print');
CREATE TABLE timeless (uid BIGINT) WITH ('connector' = 'print');
CREATE TABLE strange (ts TIMESTAMP(3), nobody BIGINT) WITH ('connector' = 'print');
`
	const hours = "INSERT INTO out_t SELECT UPPER(page), COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) WHERE uid > 3 GROUP BY UPPER(page), window_start, window_end;"
	const wide = "CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED) WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) ALLOWED LATENESS INTERVAL '10' MINUTE WITH ('connector' = 'print', 'window.late-rows' = 'late_times') AS UNION OF c TIME ts AS (SELECT uid, COUNT(*) AS c FROM clicks WHERE page <> 'y' GROUP BY uid), p TIME ts AS (SELECT uid, COUNT(*) AS p FROM plays GROUP BY uid);"
	for _, c := range []struct {
		name, sql string
		code      diag.Code
		side      string
		inputs    int
		lateness  int64
	}{
		{"a window", "SET 'window.late-rows' = 'late_clicks';" + hours, "", "late_clicks", 1, 0},
		{"a window that takes rows after its end", "SET 'table.exec.emit.late-fire.enabled' = 'true'; SET 'table.exec.emit.late-fire.delay' = '1 s'; SET 'table.exec.emit.allow-lateness' = '5 min'; SET 'window.late-rows' = 'late_clicks';" + hours, "", "late_clicks", 1, 300_000},
		{"a wide table", wide, "", "late_times", 2, 600_000},
		{"unknown", "SET 'window.late-rows' = 'late_click';" + hours, diag.CodeUnknownTable, "", 0, 0},
		{"no row time", "SET 'window.late-rows' = 'timeless';" + hours, diag.CodeBadTable, "", 0, 0},
		{"a column of nobody", "SET 'window.late-rows' = 'strange';" + hours, diag.CodeUnknownColumn, "", 0, 0},
		{"itself", "SET 'window.late-rows' = 'out_t';" + hours, diag.CodeBadTable, "", 0, 0},
		{"of two windows", "SET 'window.late-rows' = 'late_times';" + hours + wide, diag.CodeBadTable, "", 0, 0},
		{"written otherwise, too", "SET 'window.late-rows' = 'late_times';" + hours + "INSERT INTO late_times SELECT ts, uid FROM plays;", diag.CodeBadTable, "", 0, 0},
		{"joins", "SET 'window.late-rows' = 'late_times'; INSERT INTO out_t SELECT c.page, p.uid FROM clicks c JOIN plays p ON c.uid = p.uid AND c.ts BETWEEN p.ts AND p.ts + INTERVAL '1' HOUR;", diag.CodeNotYet, "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, found := Compile([]Source{{Name: "job.sql", Text: ddl + c.sql}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
			if c.code != "" {
				for _, d := range found {
					if d.Code == c.code {
						return
					}
				}
				t.Fatalf("found %v, want %s", found, c.code)
			}
			if found.HasErrors() {
				t.Fatal(found)
			}
			var side *graph.Node
			for _, n := range u.Job.Nodes {
				if s, ok := n.Op.(*graph.Sink); ok && s.Table.Name == c.side {
					side = n
				}
			}
			if side == nil {
				t.Fatal("the table of late rows is not written")
			}
			f := side.Op.(*graph.Sink).Late
			if f == nil || f.Time != 0 || f.Lateness != c.lateness || f.Window.Size != 3_600_000 || len(side.Inputs) != c.inputs {
				t.Fatalf("filter %+v, %d inputs", f, len(side.Inputs))
			}
			for _, n := range u.Job.Nodes {
				if l := graph.LateRowsOf(n.Op); l != nil && (l.Table != side.ID || l.Policy != graph.DeadLetter) {
					t.Errorf("%s has late rows %+v", graph.OpName(n.Op), *l)
				}
			}
		})
	}
}
