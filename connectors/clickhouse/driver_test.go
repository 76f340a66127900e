package clickhouse

import (
	"testing"
	"time"

	chcolumn "github.com/ClickHouse/clickhouse-go/v2/lib/column"
)

// rereadByDriver fills a column of the driver with a sealed block, whole.
func rereadByDriver(t testing.TB, file []byte, typ string, rows int) chcolumn.Interface {
	t.Helper()
	h, cols, err := decodeSealed(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := chcolumn.Type(typ).Column("x", &chcolumn.ServerContext{Timezone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	b := &sealedBlock{head: h, columns: cols}
	if err := fill([]chcolumn.Interface{c}, b); err != nil {
		t.Fatal(err)
	}
	if c.Rows() != rows {
		t.Fatalf("the driver reads %d rows of %d", c.Rows(), rows)
	}
	return c
}
