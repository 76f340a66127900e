package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// OpenLookup implements connector.LookupConnector: the whole table is kept in memory.
func (c *Connector) OpenLookup(ctx context.Context, t *connector.Table, keys, columns []int) (connector.Lookup, error) {
	probe, err := c.OpenSource(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	l := &lookupTable{c: c, table: t}
	l.read, l.keys, l.columns = fullcache.Columns(keys, columns)
	return fullcache.New(fullcache.Options{Load: l.load, Now: c.now}.From(t)), nil
}

// lookupTable reads a table that is looked up.
type lookupTable struct {
	c     *Connector
	table *connector.Table
	// read are the columns that are read, keys and columns places among them.
	read, keys, columns []int
}

const (
	loadRows  = 4096
	loadBytes = 4 << 20
)

// load reads all files as they are now.
func (l *lookupTable) load(ctx context.Context) (table *fullcache.Table, err error) {
	opened, err := l.c.OpenSource(ctx, l.table)
	if err != nil {
		return nil, err
	}
	s := opened.(*Source)
	defer func() { err = errors.Join(err, s.Close()) }()
	// A table that is written may not be there yet. One that is looked up has to be:
	// otherwise a wrong path, or a directory that is being replaced, would look like
	// a table without rows.
	if _, err := s.at.fs.Stat(s.at.dir); errors.Is(err, vfs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist", s.at.prefix+s.at.dir)
	}
	r, parts, err := s.openAll(ctx, l.read)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	build := fullcache.NewBuilder(l.table.Name, l.table.Schema(l.read), l.keys, l.columns, l.table.Options.Bytes(fullcache.KeyMaxBytes))
	var b batch.Batch
	var sel batch.Sel
	for {
		err := r.Next(ctx, &b, loadRows, loadBytes)
		if err == io.EOF {
			return build.Table(), nil
		}
		if err != nil {
			return nil, err
		}
		if sel, err = s.usable(&b, parts, sel[:0]); err != nil {
			return nil, err
		}
		if err := build.Add(&b, sel); err != nil {
			return nil, err
		}
		r.Release()
	}
}

// openAll reads every file of the table; splits are numbered as the partitions.
func (s *Source) openAll(ctx context.Context, columns []int) (connector.Reader, []connector.Partition, error) {
	parts, err := s.Partitions(ctx)
	if err != nil {
		return nil, nil, err
	}
	from, err := s.Start(ctx, parts)
	if err != nil {
		return nil, nil, err
	}
	splits := make([]connector.Split, len(parts))
	for i := range parts {
		splits[i] = connector.Split{Number: int32(i), From: from[i], End: connector.Unbounded}
	}
	r, err := s.Open(ctx, splits, columns, func() {})
	return r, parts, err
}

// usable lists the rows without errors. There is no dead letter for the others: they
// are dropped where the table says so, else nothing can be looked up.
func (s *Source) usable(b *batch.Batch, parts []connector.Partition, sel batch.Sel) (batch.Sel, error) {
	if sel == nil {
		sel = batch.Sel{} // nil would be all rows
	}
	on, _ := s.DecodeErrors()
	for i := range b.Runs {
		run := &b.Runs[i]
		file := parts[run.Partition].Topic
		for _, n := range b.Notes[run.FirstNote : run.FirstNote+run.Notes] {
			if n.Code != "" && n.Code != batch.CodeEmpty && on != connector.OnErrorDrop {
				return nil, s.unusable(file, n.Offset, &batch.ValueError{Code: n.Code, Where: n.Where, Message: n.Message})
			}
		}
		for row := run.FirstRow; row < run.FirstRow+run.Rows; row++ {
			e := fullcache.RowError(b, int(row))
			switch {
			case e == nil:
				sel = append(sel, row)
			case on != connector.OnErrorDrop:
				return nil, s.unusable(file, b.Offset(run, int(row)), e)
			}
		}
	}
	return sel, nil
}

// unusable is the error of a row of a table that is looked up.
func (s *Source) unusable(file string, offset int64, e *batch.ValueError) error {
	where, hint := "", ""
	if e.Where != "" {
		where = ", column " + e.Where
	}
	if s.format != nil {
		hint = fmt.Sprintf("; '%s.on-error' = 'null-or-drop' reads around such records", s.opts.format)
	}
	return fmt.Errorf("%s, record at offset %d: %s%s: %s%s", file, offset, e.Code, where, e.Message, hint)
}
