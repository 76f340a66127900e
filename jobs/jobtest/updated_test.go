package jobtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// updatedSQL is tables whose rows change: an aggregate without a window, and the
// aggregate over it, whose rows go as well. One has the records' headers.
const updatedSQL = `
CREATE TABLE clicks (page STRING, price INT, ts TIMESTAMP_LTZ(3), h MAP<STRING, BYTES> METADATA FROM 'headers' VIRTUAL, WATERMARK FOR ts AS ts)
  WITH ('connector' = 'log', 'topic' = 'clicks', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE pages (page STRING, clicks BIGINT, price INT) WITH ('connector' = 'blackhole');
CREATE TABLE sizes (clicks BIGINT, pages BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE traced (page STRING, trace STRING, other STRING) WITH ('connector' = 'blackhole');
CREATE VIEW counted AS SELECT page, COUNT(*) AS clicks, MAX(price) AS price FROM clicks GROUP BY page;
INSERT INTO pages SELECT * FROM counted;
INSERT INTO sizes SELECT clicks, COUNT(*) FROM counted GROUP BY clicks;
INSERT INTO traced SELECT page, CAST(h['trace'] AS STRING), CAST(h['other'] AS STRING) FROM clicks;
`

// TestUpdatedTables: of rows that change those are compared that are left. Given
// records have the headers that the test gives them.
func TestUpdatedTables(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"job.sql": updatedSQL, "job.test.yaml": `
tests:
  - name: what is left
    given:
      clicks:
        - {page: a, price: 1}
        - {page: b, price: 7}
        - {page: a, price: 5}
        - {page: a, price: 2}
        - {page: c}
    want:
      pages:
        - {page: a, clicks: 3, price: 5}
        - {page: b, clicks: 1, price: 7}
        - {page: c, clicks: 1, price: null}
      sizes:
        - {clicks: 1, pages: 2}
        - {clicks: 3, pages: 1}
  - name: rows that are gone are not there
    given:
      clicks: [{page: a}, {page: a}]
    want:
      pages: [{page: a, clicks: 1}, {page: a, clicks: 2}]
  - name: headers
    given:
      clicks:
        - {page: a, $headers: {trace: t1, other: x}}
        - {page: b, $headers: {other: null, trace: 7}}
        - {page: c}
    want:
      traced:
        - {page: a, trace: t1, other: x}
        - {page: b, trace: "7", other: null}
        - {page: c, trace: null, other: null}
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
	for i, want := range []bool{true, false, true} {
		if rs[i].OK != want {
			t.Errorf("%s: %v, want %v: %+v", rs[i].Name, rs[i].OK, want, rs[i].Problems)
		}
	}
}
