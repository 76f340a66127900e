//go:build services

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest/oracle"
)

// TestKilledTablesByDuckDB reads what a killed job wrote with DuckDB, by Hive's
// layout, as a user would.
func TestKilledTablesByDuckDB(t *testing.T) {
	w, want := killRun(t, 6, 12_000)
	for table, rows := range want.rows {
		from := fmt.Sprintf("read_parquet(%s, hive_partitioning = true, hive_types_autocast = false)",
			oracle.Quote(filepath.Join(w.lake, table, "**", "*.parquet")))
		head := oracle.Query(t, "SELECT * FROM "+from+" LIMIT 0")
		exprs := make([]string, len(head.Columns))
		for i, c := range head.Columns {
			exprs[i] = `"` + c + `"`
			if strings.HasPrefix(head.Types[i], "TIMESTAMP") {
				exprs[i] = "epoch_us(" + exprs[i] + ")"
			}
		}
		got := multiset{}
		for _, r := range oracle.Query(t, "SELECT "+strings.Join(exprs, ", ")+" FROM "+from).Rows {
			fields := make([]string, len(r))
			for i, v := range r {
				fields[i] = head.Columns[i] + "=NULL"
				if v != nil {
					fields[i] = fmt.Sprintf("%s=%v", head.Columns[i], v)
				}
			}
			got[strings.Join(fields, " ")]++
		}
		compare(t, table, got, rows)
	}
}
