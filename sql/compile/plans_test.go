package compile

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

var update = flag.Bool("update", false, "write testdata/*.txt")

const planTables = `CREATE TABLE clicks (uid BIGINT, page ROW<url STRING, ms INT>, tags ARRAY<STRING>, ms BIGINT, unused STRING,
  ts AS TO_TIMESTAMP_LTZ(ms, 3), p INT METADATA FROM 'partition' VIRTUAL, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'log', 'topic' = 'clicks');
CREATE TABLE likes (uid INT, room STRING, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'likes');
CREATE TABLE lake (uid BIGINT, s STRING, dt STRING, hr INT) PARTITIONED BY (dt, hr) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'json');
CREATE TABLE a (uid BIGINT, s STRING) WITH ('connector' = 'print');
CREATE TABLE b (uid BIGINT, n BIGINT, at_hour STRING) WITH ('connector' = 'print');
`

// TestPlans compares bound plan, optimized plan, job graph, lanes and state
// with testdata/plans.txt: blocks of SQL, "----" and the plan, between "====".
func TestPlans(t *testing.T) {
	const file = "testdata/plans.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n====\n") {
		sql, want, _ := strings.Cut(block, "\n----\n")
		u, ds := Compile([]Source{{"ddl.sql", planTables}, {"job.sql", sql}}, Options{Registry: sqltest.Registry(), Parallelism: 2})
		if ds.HasErrors() {
			t.Errorf("%s\n%s", sql, diag.Renderer{}.String(ds))
			continue
		}
		var b strings.Builder
		b.WriteString(u.Explain.Text)
		for _, l := range u.Explain.Lanes {
			b.WriteString("lane " + l.Table + ": columns [" + strings.Join(l.Columns, ", ") + "] direct [" + strings.Join(l.Direct, ", ") + "] keyed [" + strings.Join(l.Keyed, ", ") + "]\n")
		}
		for _, s := range u.Explain.State {
			b.WriteString("state " + s.Kind + " " + s.Path + ": " + strings.Join(s.Slots, ", ") + "\n")
		}
		got := strings.TrimSpace(b.String())
		if got != strings.TrimSpace(want) && !*update {
			t.Errorf("%s\ngot\n%s\nwant\n%s", sql, got, want)
		}
		out = append(out, sql+"\n----\n"+got+"\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(out, "====\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
