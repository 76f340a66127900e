package sqltest

import (
	"context"
	"errors"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// OpenLookup implements connector.LookupConnector: it compares each key with each
// row.
func (g *Given) OpenLookup(_ context.Context, t *connector.Table, keys, columns []int) (connector.Lookup, error) {
	return &givenLookup{given: g, rows: g.Rows(t.Name), table: t, keys: keys, columns: columns}, nil
}

// FailLookups makes the next n lookups fail, and gives how many were still to fail.
func (g *Given) FailLookups(n int) (left int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left, g.failing = g.failing, n
	return left
}

// failed reports a lookup that is to fail.
func (g *Given) failed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failing == 0 {
		return false
	}
	g.failing--
	return true
}

var errLookup = errors.New("the table does not answer, as the test wants it")

type givenLookup struct {
	given         *Given
	rows          *Rows
	table         *connector.Table
	keys, columns []int
}

// Find implements connector.Lookup.
func (l *givenLookup) Find(_ context.Context, keys *connector.LookupKeys, out *connector.Found) error {
	if l.given.failed() {
		return errLookup
	}
	l.rows.mu.Lock()
	defer l.rows.mu.Unlock()
	out.Reset()
	b := &batch.Batch{}
	b.Reset(l.table.Schema(l.columns))
	b.Len = l.rows.n
	for i, c := range l.columns {
		b.Cols[i].Reset(l.table.Columns[c].Type, 0)
		if l.rows.cols != nil {
			b.Cols[i] = *l.rows.cols[c].Clone()
		}
	}
	out.Rows = b
	for k := range keys.Len() {
		for row := range l.rows.n {
			equal := true
			for i, c := range l.keys {
				col := &l.rows.cols[c]
				equal = equal && !col.IsNull(row) && batch.ValueEqual(&keys.Cols[i], k, col, row)
			}
			if equal {
				out.Sel = append(out.Sel, int32(row))
			}
		}
		out.EndKey()
	}
	return nil
}

// Local implements connector.Lookup.
func (l *givenLookup) Local() bool { return false }

// Close implements connector.Lookup.
func (l *givenLookup) Close() error { return nil }
