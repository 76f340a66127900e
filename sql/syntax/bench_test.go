package syntax

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
)

// BenchmarkParse reads a job of 1,000 tables with an INSERT each.
func BenchmarkParse(b *testing.B) {
	text := strings.Repeat("CREATE TABLE t (id BIGINT NOT NULL, name STRING COMMENT 'x', r ROW<a INT, b ARRAY<STRING>>, "+
		"ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = '${t}');\n"+
		"INSERT INTO s SELECT id, UPPER(name), r.a + 1, CASE WHEN id > 5 THEN 'x' ELSE 'y' END FROM t WHERE id IN (1, 2, 3) AND name LIKE 'a%';\n", 1000)
	f := diag.NewFile("job.sql", text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, errs := Parse(f, Options{}); errs.HasErrors() {
			b.Fatal(errs)
		}
	}
}
