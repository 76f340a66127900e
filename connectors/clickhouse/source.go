package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// Source reads a table as it is when it is listed: a split is a range of one of its
// partitions, an offset a row's place in a fixed order.
type Source struct {
	server *server
	table  *connector.Table
	def    *definition
	opts   scanOptions
	// order is the ORDER BY of every range.
	order string
	// wanted tells the partitions that are read; nil: all.
	wanted connector.PartitionFilter
	// unsignedRange: the column of the ranges has no sign.
	unsignedRange bool

	mu    sync.Mutex
	known map[connector.UUID]*rangeOf
	parts []connector.Partition // listed once
}

// scanOptions are the options of a table that is read.
type scanOptions struct {
	filter, rangeBy string
	ranges          int64
	lower, upper    *int64
}

func scanOptionsOf(v connector.Values) scanOptions {
	o := scanOptions{filter: v.String(keyFilter), rangeBy: v.String(keyRangeColumn), ranges: max(v.Int(keyRanges), 1)}
	if v.Has(keyRangeLower) {
		lo, hi := v.Int(keyRangeLower), v.Int(keyRangeUpper)
		o.lower, o.upper = &lo, &hi
	}
	return o
}

var (
	_ connector.SourceConnector = (*Connector)(nil)
	_ connector.Source          = (*Source)(nil)
	_ connector.PartitionPruner = (*Source)(nil)
)

// OpenSource implements connector.SourceConnector.
func (c *Connector) OpenSource(ctx context.Context, t *connector.Table) (connector.Source, error) {
	opts, err := optionsOf(t.Options)
	if err != nil {
		return nil, err
	}
	srv, err := connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	s := &Source{server: srv, table: t, opts: scanOptionsOf(t.Options), known: map[connector.UUID]*rangeOf{}}
	if err := s.prepare(ctx); err != nil {
		srv.conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *Source) prepare(ctx context.Context) error {
	d, err := s.server.describe(ctx)
	if errors.Is(err, errNoTable) {
		return &connector.OptionError{Key: keyTable, OnValue: true, Message: "table " + s.server.name() + " does not exist"}
	}
	if err != nil {
		return err
	}
	s.def = d
	switch {
	case !strings.HasSuffix(d.engine, "MergeTree"):
		return fmt.Errorf("not_yet: reading table %s of engine %s; its rows cannot be pinned, so that a retry could read others: the MergeTree family can", s.server.name(), d.engine)
	case len(s.server.opts.addr.hosts) > 1 && !d.replicated():
		return fmt.Errorf("'%s' names %d servers, and table %s is a %s, which is not replicated between them; name one server",
			keyURL, len(s.server.opts.addr.hosts), s.server.name(), d.engine)
	}
	if _, err := s.server.selected(s.table, d, nil); err != nil {
		return err
	}
	if err := s.checkRangeColumn(); err != nil {
		return err
	}
	if err := s.checkPartitionedBy(); err != nil {
		return err
	}
	s.order = s.orderBy()
	return nil
}

// selected are the columns of a SELECT. All faults are reported at once.
func (s *server) selected(t *connector.Table, d *definition, columns []int) ([]*readColumn, error) {
	if columns == nil {
		for i := range t.Columns {
			columns = append(columns, i)
		}
	}
	var out []*readColumn
	var errs []error
	for _, i := range columns {
		col := &t.Columns[i]
		c, err := s.selectedColumn(col, d)
		if err != nil {
			errs = append(errs, fmt.Errorf("column %s: %w", col.Name, err))
			continue
		}
		out = append(out, c)
	}
	return out, errors.Join(errs...)
}

func (s *server) selectedColumn(col *connector.Column, d *definition) (*readColumn, error) {
	if col.Metadata != "" {
		return nil, fmt.Errorf("tables of ClickHouse have no metadata %q", col.Metadata)
	}
	have := d.column(col.Name)
	if have == nil {
		return nil, fmt.Errorf("table %s has no such column%s", s.name(), nearest(col.Name, d))
	}
	if have.kind == "EPHEMERAL" {
		return nil, errors.New("it is EPHEMERAL and cannot be read")
	}
	return selectColumn(col.Name, col.Type, have.typ, s.timeZone)
}

// checkPartitionedBy compares PARTITIONED BY, where it is given, with the table's own
// key: whole partitions are left out by it.
func (s *Source) checkPartitionedBy() error {
	keys := s.table.PartitionKeys
	if len(keys) == 0 {
		return nil
	}
	text := strings.TrimPrefix(s.def.partitionKey, "tuple")
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		text = text[1 : len(text)-1]
	}
	own := splitTop(text)
	same := len(own) == len(keys)
	for i := range keys {
		same = same && strings.Trim(strings.TrimSpace(own[i]), "`") == s.table.Columns[keys[i]].Name
	}
	if !same {
		return fmt.Errorf("PARTITIONED BY names other columns than the table's own partition key, which is %q; leave it out", s.def.partitionKey)
	}
	return nil
}

// Prune implements connector.PartitionPruner.
func (s *Source) Prune(f connector.PartitionFilter) { s.wanted = f }

// isWanted asks the filter about a partition, by one of its rows.
func (s *Source) isWanted(ctx context.Context, snap *snapshot, parts []part) (bool, error) {
	if s.wanted == nil || len(s.table.PartitionKeys) == 0 {
		return true, nil
	}
	names, err := snap.cover(parts)
	if err != nil {
		return false, err
	}
	cols, err := s.server.selected(s.table, s.def, s.table.PartitionKeys)
	if err != nil {
		return false, err
	}
	b := &batch.Batch{}
	b.Reset(s.table.Schema(s.table.PartitionKeys))
	n, err := s.server.firstRow(ctx, "SELECT "+inColumns(cols)+" FROM "+s.server.name()+" WHERE "+inParts(names), cols, b.Cols)
	if err != nil || n == 0 {
		return true, err // merged meanwhile, or emptied: the listing finds out
	}
	b.Len = 1
	return s.wanted.Wanted(b), nil
}

func (s *Source) checkRangeColumn() error {
	if s.opts.rangeBy == "" {
		return nil
	}
	have := s.def.column(s.opts.rangeBy)
	if have == nil {
		return &connector.OptionError{Key: keyRangeColumn, OnValue: true, Message: fmt.Sprintf("table %s has no column %q%s", s.server.name(), s.opts.rangeBy, nearest(s.opts.rangeBy, s.def))}
	}
	typ, err := parseType(have.typ)
	if err != nil {
		return err
	}
	if typ.name == "Nullable" {
		typ = typ.args[0]
	}
	if _, _, width, ok := integerBounds(typ.name); !ok || width > 8 {
		return &connector.OptionError{Key: keyRangeColumn, OnValue: true, Message: fmt.Sprintf("not_yet: ranges of column %s of type %s; integers of up to 64 bits are cut", s.opts.rangeBy, have.typ)}
	}
	s.unsignedRange = strings.HasPrefix(typ.name, "U")
	return nil
}

// orderBy is a total order of the rows as far as this table can tell them apart: the
// primary key that it declares, else the server's sorting key and then every column.
func (s *Source) orderBy() string {
	var by []string
	if len(s.table.PrimaryKey) > 0 {
		for _, i := range s.table.PrimaryKey {
			by = append(by, quoteName(s.table.Columns[i].Name))
		}
		return strings.Join(by, ", ")
	}
	if s.def.sortingKey != "" {
		by = append(by, s.def.sortingKey)
	}
	for i := range s.table.Columns {
		name := s.table.Columns[i].Name
		by = append(by, orderable(quoteName(name), s.table.Columns[i].Type))
	}
	return strings.Join(by, ", ")
}

// orderable is a column in a form that can be ordered.
func orderable(name string, t types.Type) string {
	if hasMap(t) {
		return "toString(" + name + ")"
	}
	return name
}

func hasMap(t types.Type) bool {
	switch t.Kind {
	case types.Map:
		return true
	case types.Array:
		return hasMap(*t.Elem)
	case types.Row:
		for _, f := range t.Fields {
			if hasMap(f.Type) {
				return true
			}
		}
	}
	return false
}

// Partitions implements connector.Source. The table is listed once: a bounded reading
// is of one moment.
func (s *Source) Partitions(ctx context.Context) ([]connector.Partition, error) {
	s.mu.Lock()
	parts := s.parts
	s.mu.Unlock()
	if parts != nil {
		return parts, nil
	}
	ranges, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts != nil {
		return s.parts, nil
	}
	s.parts = []connector.Partition{}
	for i := range ranges {
		r := &ranges[i]
		p := connector.Partition{TopicID: r.topic(s), Topic: r.name(s)}
		s.known[p.TopicID] = r
		s.parts = append(s.parts, p)
	}
	return s.parts, nil
}

// find is the range of a partition, nil when there is none.
func (s *Source) find(ctx context.Context, p connector.Partition) (*rangeOf, error) {
	if _, err := s.Partitions(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ID != 0 {
		return nil, nil
	}
	return s.known[p.TopicID], nil
}

// moved is the error of a position in a range that is no more.
func moved(p connector.Position) *connector.MismatchError {
	return &connector.MismatchError{Position: p, Lost: -1, Recreated: true,
		Reason: "the rows of this table partition, or what is read of them, are others than when it was listed"}
}

// Start implements connector.Source: ranges are read from their beginning.
func (s *Source) Start(ctx context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		out[i] = connector.Position{Partition: p}
		r, err := s.find(ctx, p)
		if err == nil && r == nil {
			err = moved(out[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// End implements connector.Source.
func (s *Source) End(ctx context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i, p := range parts {
		r, err := s.find(ctx, p)
		if err == nil && r == nil {
			err = moved(connector.Position{Partition: p})
		}
		if err != nil {
			return nil, err
		}
		out[i] = r.rows
	}
	return out, nil
}

// Check implements connector.Source.
func (s *Source) Check(ctx context.Context, saved []connector.Position) ([]error, error) {
	out := make([]error, len(saved))
	for i, p := range saved {
		r, err := s.find(ctx, p.Partition)
		switch {
		case err != nil:
			return nil, err
		case r == nil:
			out[i] = moved(p)
		case p.Offset > r.rows:
			out[i] = &connector.MismatchError{Position: p, Latest: r.rows, Lost: -1, Reason: "the position lies outside the range"}
		}
	}
	return out, nil
}

// Close implements connector.Source.
func (s *Source) Close() error { return s.server.conn.Close() }

// query is the statement that reads a range from a row on.
func (s *Source) query(r *rangeOf, parts []string, cols []*readColumn, from, end int64) string {
	where := inParts(parts)
	if s.opts.filter != "" {
		where += " AND (" + s.opts.filter + ")"
	}
	if r.where != "" {
		where += " AND (" + r.where + ")"
	}
	return "SELECT " + inColumns(cols) + " FROM " + s.server.name() + " WHERE " + where + " ORDER BY " + s.order +
		" LIMIT " + strconv.FormatInt(from, 10) + ", " + strconv.FormatInt(end-from, 10) +
		" SETTINGS max_block_size = " + strconv.Itoa(blockRows)
}

// blockRows is how many rows the server should send at a time.
const blockRows = 8192
