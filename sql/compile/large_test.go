package compile

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestLargeStatements: generated SQL compiles in time that grows with its size, not
// with its square. Four times the size may take up to ten times the processor time:
// 4 is linear and 16 is its square. Other processes do not count in it.
func TestLargeStatements(t *testing.T) {
	const ddl = "CREATE TABLE s (a INT, b STRING) WITH ('connector' = 'log', 'topic' = 's');\nCREATE TABLE p (a INT, b STRING) WITH ('connector' = 'print');\n"
	list := func(n int, sep string, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, sep)
	}
	for name, sql := range map[string]func(n int) string{ // n: quarters of the size
		"in list": func(n int) string {
			return "INSERT INTO p SELECT a, b FROM s WHERE a IN (" + list(2250*n, ", ", func(i int) string { return fmt.Sprint(i) }) + ")"
		},
		"or chain": func(n int) string {
			return "INSERT INTO p SELECT a, b FROM s WHERE " + list(1000*n, " OR ", func(i int) string { return fmt.Sprintf("a = %d", i) })
		},
		"union": func(n int) string {
			return "INSERT INTO p " + list(125*n, " UNION ALL ", func(i int) string { return fmt.Sprintf("SELECT a + %d, b FROM s", i) })
		},
		"values": func(n int) string {
			return "INSERT INTO p VALUES " + list(750*n, ", ", func(i int) string { return fmt.Sprintf("(%d, 'x%d')", i, i) })
		},
		"case": func(n int) string {
			return "INSERT INTO p SELECT CASE " + list(250*n, " ", func(i int) string { return fmt.Sprintf("WHEN a = %d THEN %d", i, i) }) + " END, b FROM s"
		},
		"wide view": func(n int) string {
			return "CREATE VIEW v AS SELECT " + list(250*n, ", ", func(i int) string { return fmt.Sprintf("a + %d AS c%d", i, i) }) + ", b FROM s; INSERT INTO p SELECT c99, b FROM v"
		},
		"concat": func(n int) string {
			return "INSERT INTO p SELECT a, " + list(100*n, " || ", func(int) string { return "b" }) + " FROM s"
		},
	} {
		t.Run(name, func(t *testing.T) {
			took := func(n int) time.Duration {
				text := ddl + sql(n)
				best := time.Duration(math.MaxInt64)
				for range 3 {
					runtime.GC()
					start := processorTime(t)
					_, ds := Compile([]Source{{"job.sql", text}}, Options{Registry: sqltest.Registry()})
					best = min(best, processorTime(t)-start)
					if ds.HasErrors() {
						t.Fatal(diag.Renderer{}.String(ds[:1]))
					}
				}
				return best
			}
			quarter, whole := took(1), took(4)
			t.Logf("a quarter took %v, the whole %v of the processor", quarter, whole)
			// What takes less troubles nobody.
			const fast = 250 * time.Millisecond
			if whole > fast && whole > 10*quarter {
				t.Errorf("a quarter took %v, the whole %v of the processor", quarter, whole)
			}
		})
	}
}

// processorTime is what this process has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
