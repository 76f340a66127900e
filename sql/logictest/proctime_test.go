package logictest

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestExplainProcessingTime: EXPLAIN says that windows go by the clock, and so does
// the name of their state, which is not that of windows by row time.
func TestExplainProcessingTime(t *testing.T) {
	b, _, err := sqltest.Binder(`CREATE TABLE o (id INT, proc AS PROCTIME()) WITH ('connector' = 'given')`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := sqltest.Query(b, "SELECT id, COUNT(*) FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(proc), INTERVAL '10' SECOND)) GROUP BY id, window_start, window_end")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	plan.Print(&text, out.Node)
	for _, want := range []string{"window=TUMBLE(size=10 s, by the clock), time=proc", "[id; TUMBLE(size=10 s, by the clock)]", "time checked only"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s\nhas no %s", text.String(), want)
		}
	}
}
