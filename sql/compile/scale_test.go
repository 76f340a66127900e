package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// manyTables is a job of n topics, each into a table of its own.
func manyTables(n int) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE tmpl (uid BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'parquet', 'sink.partition-commit.policy.kind' = 'success-file');\n")
	for i := range n {
		fmt.Fprintf(&b, "CREATE TABLE src%d (uid BIGINT, a ROW<b INT, c STRING>, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'log', 'topic' = 't%d');\n", i, i)
		fmt.Fprintf(&b, "CREATE TABLE dst%d (b INT, c STRING) WITH ('path' = '/lake/%d') LIKE tmpl;\n", i, i)
		fmt.Fprintf(&b, "INSERT INTO dst%d SELECT uid, DATE_FORMAT(ts, 'yyyy-MM-dd'), a.b, UPPER(a.c) FROM src%d WHERE a.b > 10;\n", i, i)
	}
	return b.String()
}

func TestThousandTables(t *testing.T) {
	u, ds := Compile([]Source{{"job.sql", manyTables(1000)}}, Options{Registry: sqltest.Registry()})
	if len(ds) > 0 {
		t.Fatal(diag.Renderer{}.String(ds[:1]))
	}
	if len(u.Job.Nodes) != 4000 || len(u.Explain.Lanes) != 1000 {
		t.Errorf("%d nodes, %d lanes", len(u.Job.Nodes), len(u.Explain.Lanes))
	}
}

func BenchmarkThousandTables(b *testing.B) {
	text := manyTables(1000)
	for b.Loop() {
		Compile([]Source{{"job.sql", text}}, Options{Registry: sqltest.Registry()})
	}
}
