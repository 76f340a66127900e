package jobtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestLookup: a table that is looked up has the given records.
func TestLookup(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"job.sql": `
CREATE TABLE orders (id BIGINT, k INT, proc AS PROCTIME()) WITH ('connector' = 'log', 'topic' = 'orders');
CREATE TABLE dim (k INT, name STRING) WITH ('connector' = 'filesystem', 'path' = '/dim', 'format' = 'csv');
CREATE TABLE named (id BIGINT, name STRING) WITH ('connector' = 'log', 'topic' = 'named');
INSERT INTO named SELECT o.id, d.name FROM orders AS o LEFT JOIN dim FOR SYSTEM_TIME AS OF o.proc AS d ON o.k = d.k;
`, "job.test.yaml": `
tests:
  - name: enriched
    given:
      orders:
        - {id: 1, k: 10}
        - {id: 2, k: 20}
        - {id: 3}
      dim: ["10,ten", "10,TEN", "30,thirty"]
    want:
      named:
        - {id: 1, name: ten}
        - {id: 1, name: TEN}
        - {id: 2, name: null}
        - {id: 3, name: null}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load(filepath.Join(dir, "job.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rs, err := Run(context.Background(), s, Options{Registry: registry(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if !r.OK {
			t.Errorf("%+v", r)
		}
	}
	if len(rs) != 1 {
		t.Errorf("%d results", len(rs))
	}
}
