package compile

import (
	"os"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestOneTopicIntoOneTable is the smallest job: a log table into a
// partitioned Parquet table.
func TestOneTopicIntoOneTable(t *testing.T) {
	const job = `
CREATE TABLE clicks (
  uid BIGINT NOT NULL,
  page ROW<url STRING, ms INT>,
  tags ARRAY<STRING>,
  ms_at BIGINT,
  ts AS TO_TIMESTAMP_LTZ(ms_at, 3),
  off BIGINT METADATA FROM 'offset' VIRTUAL,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'log', 'topic' = 'clicks');
CREATE TABLE out_t (uid BIGINT, url STRING, ms BIGINT, dt STRING) PARTITIONED BY (dt) WITH (
  'connector' = 'filesystem', 'path' = '/lake/out', 'format' = 'parquet', 'sink.partition-commit.policy.kind' = 'success-file');
INSERT INTO out_t SELECT uid, page.url, page.ms, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM clicks WHERE page.ms > 10 AND uid <> 7;
`
	u, ds := Compile([]Source{{"job.sql", job}}, Options{Registry: sqltest.Registry()})
	if ds.HasErrors() {
		t.Fatal(diag.Renderer{}.String(ds))
	}
	if testing.Verbose() {
		os.Stdout.WriteString(u.Explain.Text)
	}
	if got := len(u.Job.Nodes); got != 4 {
		t.Errorf("%d nodes, want source, filter, project, sink", got)
	}
}
