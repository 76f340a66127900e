package compile

import (
	"flag"
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
	sqltest.Blocks(t, "testdata/plans.txt", *update, func(sql string) string {
		u, ds := Compile([]Source{{"ddl.sql", planTables}, {"job.sql", sql}}, Options{Registry: sqltest.Registry(), Parallelism: 2})
		if ds.HasErrors() {
			text := diag.Renderer{}.String(ds)
			t.Errorf("%s\n%s", sql, text)
			return text
		}
		var b strings.Builder
		b.WriteString(u.Explain.Text)
		for _, l := range u.Explain.Lanes {
			b.WriteString("lane " + l.Table + ": columns [" + strings.Join(l.Columns, ", ") + "] direct [" + strings.Join(l.Direct, ", ") + "] keyed [" + strings.Join(l.Keyed, ", ") + "]\n")
		}
		for _, s := range u.Explain.State {
			b.WriteString("state " + s.Kind + " " + s.Path + ": " + strings.Join(s.Slots, ", ") + "\n")
		}
		return b.String()
	})
}
