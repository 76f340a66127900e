package jobtest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// OpenLookup implements connector.LookupConnector over the given records; the front
// end asks for it only where the real connector can be looked up.
func (c *givenConnector) OpenLookup(_ context.Context, t *connector.Table, keys, columns []int) (connector.Lookup, error) {
	return fullcache.New(fullcache.Options{Load: func(ctx context.Context) (*fullcache.Table, error) {
		return c.load(ctx, t, keys, columns)
	}}), nil
}

// load reads the given records of a table.
func (c *givenConnector) load(ctx context.Context, t *connector.Table, keys, columns []int) (table *fullcache.Table, err error) {
	s, err := c.open(t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	parts, err := s.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	from, err := s.Start(ctx, parts)
	if err != nil {
		return nil, err
	}
	ends, err := s.End(ctx, parts)
	if err != nil {
		return nil, err
	}
	splits := make([]connector.Split, len(parts))
	for i := range parts {
		splits[i] = connector.Split{Number: int32(i), From: from[i], End: ends[i]}
	}
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	r, err := s.Open(ctx, splits, all, func() {})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	build := fullcache.NewBuilder(t.Name, t.Schema(nil), keys, columns, 0)
	var b batch.Batch
	for {
		err := r.Next(ctx, &b, 1000, 1<<20)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, connector.ErrNoData):
			return build.Table(), nil
		case err != nil:
			return nil, err
		}
		if err := checkGiven(t, &b); err != nil {
			return nil, err
		}
		if err := build.Add(&b, nil); err != nil {
			return nil, err
		}
	}
}

// checkGiven refuses records that a table that is looked up cannot have.
func checkGiven(t *connector.Table, b *batch.Batch) error {
	for i := range b.Notes {
		if n := &b.Notes[i]; n.Code != "" && n.Code != batch.CodeEmpty {
			return fmt.Errorf("table %s, given record %d: %s: %s", t.Name, n.Offset, n.Code, n.Message)
		}
	}
	for c := range b.Cols {
		if !b.Cols[c].HasDeepErrs() {
			continue
		}
		for row := range b.Len {
			if e := b.Cols[c].DeepErr(row); e != nil {
				return fmt.Errorf("table %s, column %s of a given record: %s: %s", t.Name, t.Columns[c].Name, e.Code, e.Message)
			}
		}
	}
	return nil
}
