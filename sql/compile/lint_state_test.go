package compile

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestJoinWithoutEqualityIsSaid: check says what such a join keeps and compares, but
// where the rows have a time to live.
func TestJoinWithoutEqualityIsSaid(t *testing.T) {
	const join = "INSERT INTO a SELECT c.uid, l.room FROM clicks c JOIN likes l ON c.uid < l.uid"
	for sql, want := range map[string]bool{
		join: true,
		"SET 'table.exec.state.ttl' = '1 d'; " + join:                                                    false,
		"INSERT INTO a SELECT c.uid, l.room FROM clicks c JOIN likes l ON c.uid = l.uid AND c.ts < l.ts": false,
	} {
		_, ds := Compile([]Source{{"ddl.sql", planTables}, {"job.sql", sql}}, Options{Registry: sqltest.Registry()})
		if ds.HasErrors() {
			t.Fatalf("%s\n%s", sql, diag.Renderer{}.String(ds))
		}
		if said := strings.Contains(diag.Renderer{}.String(ds), "compares each new one with all of the other side in one task"); said != want {
			t.Errorf("%s: said %v, want %v\n%s", sql, said, want, diag.Renderer{}.String(ds))
		}
	}
}
