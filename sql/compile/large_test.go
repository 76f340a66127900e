package compile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestLargeStatements: generated SQL compiles in time that grows with its
// size, not with its square.
func TestLargeStatements(t *testing.T) {
	const ddl = "CREATE TABLE s (a INT, b STRING) WITH ('connector' = 'log', 'topic' = 's');\nCREATE TABLE p (a INT, b STRING) WITH ('connector' = 'print');\n"
	list := func(n int, sep string, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, sep)
	}
	for name, sql := range map[string]string{
		"in list":   "INSERT INTO p SELECT a, b FROM s WHERE a IN (" + list(9000, ", ", func(i int) string { return fmt.Sprint(i) }) + ")",
		"or chain":  "INSERT INTO p SELECT a, b FROM s WHERE " + list(4000, " OR ", func(i int) string { return fmt.Sprintf("a = %d", i) }),
		"union":     "INSERT INTO p " + list(500, " UNION ALL ", func(i int) string { return fmt.Sprintf("SELECT a + %d, b FROM s", i) }),
		"values":    "INSERT INTO p VALUES " + list(3000, ", ", func(i int) string { return fmt.Sprintf("(%d, 'x%d')", i, i) }),
		"case":      "INSERT INTO p SELECT CASE " + list(1000, " ", func(i int) string { return fmt.Sprintf("WHEN a = %d THEN %d", i, i) }) + " END, b FROM s",
		"wide view": "CREATE VIEW v AS SELECT " + list(1000, ", ", func(i int) string { return fmt.Sprintf("a + %d AS c%d", i, i) }) + ", b FROM s; INSERT INTO p SELECT c999, b FROM v",
		"concat":    "INSERT INTO p SELECT a, " + list(400, " || ", func(int) string { return "b" }) + " FROM s",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, ds := Compile([]Source{{"job.sql", ddl + sql}}, Options{Registry: sqltest.Registry()})
			if ds.HasErrors() {
				t.Fatal(diag.Renderer{}.String(ds[:1]))
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			} else {
				t.Log(took)
			}
		})
	}
}
