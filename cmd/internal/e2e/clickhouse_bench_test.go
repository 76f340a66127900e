//go:build services

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// wideJob reads rows of 15 columns from a topic and writes them as they are.
const wideJob = `
SET 'pipeline.name' = 'wide';
CREATE TABLE src (
  a BIGINT NOT NULL, b BIGINT NOT NULL, ts TIMESTAMP_LTZ(0) NOT NULL, c INT NOT NULL, d INT NOT NULL, e DOUBLE NOT NULL, f INT NOT NULL,
  s1 STRING NOT NULL, s2 STRING NOT NULL, s3 STRING NOT NULL, s4 STRING NOT NULL, s5 STRING NOT NULL, s6 STRING NOT NULL, s7 STRING NOT NULL, s8 STRING NOT NULL
) WITH ('connector' = 'log', 'topic' = 'wide', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE dst WITH ('connector' = 'clickhouse', 'url' = '${URL}', 'table-name' = 'wide', 'sink.compression' = '${COMPRESSION}') LIKE src (EXCLUDING OPTIONS);
INSERT INTO dst SELECT * FROM src;
`

// wideFile writes rows of about 750 bytes of values as JSON, one a line.
func wideFile(t testing.TB, path string, rows int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	filler := strings.Repeat("abcdefghij", 30)
	var b []byte
	for k := range rows {
		b = fmt.Appendf(b[:0], `{"a":%d,"b":%d,"ts":"2024-05-01T08:00:%02dZ","c":%d,"d":%d,"e":%d.25,"f":%d`, k, k*7919, k%60, k%60_000, -k%1000, k%1000, k%65536)
		for i, n := range [...]int{36, 120, 120, 130, 15, 2, 20, 255} {
			text := strconv.Itoa(k*7919%100_003) + "-" + filler
			b = fmt.Appendf(b, `,"s%d":"%s"`, i+1, text[:n])
		}
		b = append(b, "}\n"...)
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkWholeJobIntoClickHouse is the way from a topic of JSON to the last row
// acknowledged by ClickHouse, in rows a second of one of our processors, and the
// server's time beside it. Run it with -benchtime 1x; the driver alone is
// connectors/clickhouse.TestInsertRate.
func BenchmarkWholeJobIntoClickHouse(b *testing.B) {
	for _, compression := range []string{"none", "lz4"} {
		b.Run(compression, func(b *testing.B) {
			c := clickHouse(b)
			for range b.N {
				w := newWorld(b)
				input := filepath.Join(w.dir, "input.ndjson")
				wideFile(b, input, *benchEvents)
				produce := w.start("topics", "produce", "wide", "-f", input)
				if code := produce.wait(); code != 0 {
					b.Fatalf("produce: %d\n%s", code, produce.stderr.String())
				}
				wideInto(b, w, c, compression)
			}
		})
	}
}

func wideInto(b *testing.B, w *world, c *services.ClickHouse, compression string) {
	b.Helper()
	query(b, c, "DROP TABLE IF EXISTS wide")
	query(b, c, "CREATE TABLE wide (a UInt64, b UInt64, ts DateTime('UTC'), c Int32, d Int32, e Float64, f UInt16, s1 String, s2 String, s3 String, s4 String, s5 String, s6 String, s7 String, s8 String) "+
		"ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 1000")
	job := w.file("wide.sql", wideJob)
	before, _, err := c.Usage()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	run := w.start(w.runArgs(job, "--set", "URL=clickhouse://"+c.Direct(), "--set", "COMPRESSION="+compression)...)
	if code := run.wait(); code != 0 {
		b.Fatalf("run: %d\n%s", code, run.stderr.String())
	}
	took := time.Since(began)
	after, _, err := c.Usage()
	if err != nil {
		b.Fatal(err)
	}
	if got := query(b, c, "SELECT count(), uniqExact(a) FROM wide"); got != fmt.Sprintf("%d\t%d", *benchEvents, *benchEvents) {
		b.Fatalf("ClickHouse has %s rows and keys, want %d", got, *benchEvents)
	}
	ours := run.usage()
	rows := float64(*benchEvents)
	b.ReportMetric(rows/ours.cpu.Seconds(), "rows/core-s")
	b.ReportMetric(float64(ours.cpu.Microseconds())/rows, "us/row")
	b.ReportMetric(float64((after-before).Microseconds())/rows, "server-us/row")
	b.ReportMetric(rows/took.Seconds(), "rows/s")
	b.ReportMetric(float64(ours.rss)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}
