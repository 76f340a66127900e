package sqltest

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// deletion is what stands in the first column of a given row that deletes.
const deletion = "-"

// GivenUpserts is the connector "given-upsert": tables of newest rows by primary key.
// Option 'log' names a given table that holds their records in order: a STRING, "-" for
// a deletion, of which the key counts alone, then the columns.
type GivenUpserts struct{ given *Given }

// NewGivenUpserts reads the tables of g.
func NewGivenUpserts(g *Given) *GivenUpserts { return &GivenUpserts{g} }

// Spec implements connector.Connector.
func (u *GivenUpserts) Spec() *connector.Spec {
	return &connector.Spec{Name: "given-upsert", Source: true, Bounded: true, SourceChangelog: connector.Upsert,
		Options: []connector.Option{{Key: "log", Required: true}}}
}

// OpenSource implements connector.SourceConnector.
func (u *GivenUpserts) OpenSource(_ context.Context, t *connector.Table) (connector.Source, error) {
	rows := u.given.Rows(t.Options.String("log"))
	rows.mu.Lock()
	defer rows.mu.Unlock()
	s := &givenSource{table: t, parts: 1, kinds: []batch.Kind{}}
	if rows.cols == nil {
		return s, nil
	}
	if len(rows.cols) != len(t.Columns)+1 {
		return nil, fmt.Errorf("the log of %s has %d columns, want %d", t.Name, len(rows.cols), len(t.Columns)+1)
	}
	for i := range rows.cols[1:] {
		s.cols = append(s.cols, *rows.cols[i+1].Clone())
	}
	s.n = rows.n
	for i := range rows.n {
		kind := batch.UpdateAfter
		if string(rows.cols[0].Bytes(i)) == deletion {
			kind = batch.Delete
		}
		s.kinds = append(s.kinds, kind)
	}
	return s, nil
}
