package hive

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// defaultPartition is Hive's name for NULL among partition values.
const defaultPartition = "__HIVE_DEFAULT_PARTITION__"

// maxNamesPerCall bounds how many partitions are asked for in one call.
const maxNamesPerCall = 300

// Source reads one table of a metastore: connector filesystem's source over the
// directories of the table's partitions, wherever the metastore says they lie. It
// is safe for concurrent use.
type Source struct {
	*filesystem.Source
	client catalog
	done   func()
	table  *metastore.Table
	stored stored
	// columns gives for each column of the SQL table its place among the columns
	// that connector filesystem is given.
	columns []int
}

var (
	_ connector.SourceConnector = (*Connector)(nil)
	_ connector.Source          = (*Source)(nil)
	_ connector.DecodePolicy    = (*Source)(nil)
	_ connector.PartitionPruner = (*Source)(nil)
)

// OpenSource implements connector.SourceConnector: it looks the table up and
// compares it with what is to be read.
func (c *Connector) OpenSource(ctx context.Context, t *connector.Table) (connector.Source, error) {
	opts, err := c.tableOptions(t)
	if err != nil {
		return nil, err
	}
	s := &Source{}
	if s.client, s.done, err = c.client(t.Options, opts.user); err != nil {
		return nil, err
	}
	if err := s.open(ctx, c, t, opts); err != nil {
		s.done()
		return nil, err
	}
	return s, nil
}

func (s *Source) open(ctx context.Context, c *Connector, t *connector.Table, opts tableOptions) error {
	there, err := lookUp(ctx, s.client, opts)
	if err != nil {
		return err
	}
	s.table = there
	faults := foreign(there)
	if len(faults) == 0 {
		s.stored, faults = storedAs(&there.Storage, there.Parameters)
	}
	if len(faults) == 0 {
		faults = readable(there, t)
	}
	if len(faults) > 0 {
		return &MismatchError{Database: there.Database, Table: there.Name, Reading: true, Differences: faults}
	}
	location := tableLocation(there)
	if err := opts.checkPath(there, location); err != nil {
		return err
	}
	ft, err := fileTable(c, t, location, s.stored)
	if err != nil {
		return err
	}
	s.arrange(ft, t)
	s.Source, err = c.files.OpenDirectories(ft, s.directories)
	return err
}

// readable compares the columns that are to be read with those of the table.
func readable(there *metastore.Table, t *connector.Table) []string {
	var faults []string
	isKey := map[int]bool{}
	var keys []metastore.Column
	for _, k := range t.PartitionKeys {
		isKey[k] = true
		keys = append(keys, metastore.Column{Name: t.Columns[k].Name})
	}
	if a, b := names(there.PartitionKeys), names(keys); a != b {
		faults = append(faults, fmt.Sprintf("it is partitioned by (%s), the table here by (%s)", a, b))
		return faults
	}
	for i, col := range t.Columns {
		if col.Metadata != "" {
			continue
		}
		list := there.Storage.Columns
		if isKey[i] {
			list = there.PartitionKeys
		}
		h := columnOf(list, col.Name)
		if h == nil {
			faults = append(faults, fmt.Sprintf("it has no column %s (it has %s)", col.Name, names(list)))
			continue
		}
		ht, err := parseType(h.Type)
		if err != nil {
			faults = append(faults, fmt.Sprintf("column %s: %v", col.Name, err))
		} else if !holds(col.Type, ht) {
			faults = append(faults, fmt.Sprintf("column %s is %s there, which %s does not hold", col.Name, h.Type, col.Type.WithNullable(true)))
		}
	}
	return faults
}

func columnOf(list []metastore.Column, name string) *metastore.Column {
	for i := range list {
		if strings.EqualFold(list[i].Name, name) {
			return &list[i]
		}
	}
	return nil
}

// arrange puts the columns into the order in which files have them: lines of text
// have no names, so that all columns of the table are there, in its order.
func (s *Source) arrange(ft, t *connector.Table) {
	s.columns = make([]int, len(t.Columns))
	if s.stored.format != formatCSV {
		for i := range s.columns {
			s.columns[i] = i
		}
		return
	}
	at := map[string]int{}
	for i, col := range t.Columns {
		if col.Metadata == "" {
			at[strings.ToLower(col.Name)] = i
		}
	}
	cols, moved := []connector.Column{}, map[int]bool{}
	for _, h := range s.table.Storage.Columns {
		col := connector.Column{Field: types.Field{Name: h.Name, Type: types.NewString()}} // one that nobody wants
		if i, ok := at[strings.ToLower(h.Name)]; ok {
			col = t.Columns[i]
			s.columns[i], moved[i] = len(cols), true
		}
		cols = append(cols, col)
	}
	for i, col := range t.Columns {
		if !moved[i] {
			s.columns[i] = len(cols)
			cols = append(cols, col)
		}
	}
	ft.Columns = cols
	ft.PartitionKeys = nil
	for _, k := range t.PartitionKeys {
		ft.PartitionKeys = append(ft.PartitionKeys, s.columns[k])
	}
}

// Open implements connector.Source.
func (s *Source) Open(ctx context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	at := s.columns
	if columns != nil {
		at = make([]int, len(columns))
		for i, c := range columns {
			at[i] = s.columns[c]
		}
	}
	return s.Source.Open(ctx, splits, at, notify)
}

// Close implements connector.Source.
func (s *Source) Close() error {
	err := s.Source.Close()
	s.done()
	return err
}

// directories lists the partitions of the metastore that are wanted. Directories
// that are not registered hold nothing that readers of the table see.
func (s *Source) directories(ctx context.Context, wanted func([]filesystem.PartitionValue) bool) ([]filesystem.Directory, error) {
	if len(s.table.PartitionKeys) == 0 {
		path, err := filePath(s.table.Storage.Location)
		return []filesystem.Directory{{Path: path}}, err
	}
	db, table := s.table.Database, s.table.Name
	all, err := s.client.PartitionNames(ctx, db, table)
	if err != nil {
		return nil, fmt.Errorf("listing the partitions of table %s.%s: %w", db, table, err)
	}
	var ask []string
	values := map[string][]filesystem.PartitionValue{}
	for _, name := range all {
		vals, err := s.values(name)
		if err != nil {
			return nil, err
		}
		if wanted(vals) {
			ask = append(ask, name)
			var text []string
			for _, v := range vals {
				text = append(text, v.Value)
			}
			values[key(text)] = vals
		}
	}
	var out []filesystem.Directory
	for len(ask) > 0 {
		n := min(len(ask), maxNamesPerCall)
		parts, err := s.client.Partitions(ctx, db, table, ask[:n])
		if err != nil {
			return nil, fmt.Errorf("looking up partitions of table %s.%s: %w", db, table, err)
		}
		for _, p := range parts {
			vals, ok := values[key(p.Values)]
			if !ok {
				return nil, fmt.Errorf("the metastore names a partition of table %s.%s %v, and lists it under another name", db, table, p.Values)
			}
			d, err := s.directory(p, vals)
			if err != nil {
				return nil, err
			}
			out = append(out, d)
		}
		ask = ask[n:]
	}
	return out, nil
}

// values are those of a partition's name, in the order of the table's keys.
func (s *Source) values(name string) ([]filesystem.PartitionValue, error) {
	vals, err := filesystem.SplitPartition(name)
	if err == nil && len(vals) != len(s.table.PartitionKeys) {
		err = fmt.Errorf("it has %d values, the table %d partition columns", len(vals), len(s.table.PartitionKeys))
	}
	if err != nil {
		return nil, fmt.Errorf("partition %s of table %s.%s: %w", name, s.table.Database, s.table.Name, err)
	}
	for i := range vals {
		vals[i].Null = vals[i].Value == defaultPartition
	}
	return vals, nil
}

// directory is where a partition lies; one whose files are stored in another way
// than the table's is refused.
func (s *Source) directory(p *metastore.Partition, vals []filesystem.PartitionValue) (filesystem.Directory, error) {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("partition %s of table %s.%s cannot be read: %s", strings.Join(p.Values, "/"), s.table.Database, s.table.Name, fmt.Sprintf(format, args...))
	}
	st, faults := storedAs(&p.Storage, s.table.Parameters)
	if len(faults) > 0 {
		return filesystem.Directory{}, fault("%s", strings.Join(faults, "; "))
	}
	if !st.equal(s.stored) {
		return filesystem.Directory{}, fault("it is stored in another way than the table (not_yet)")
	}
	path, err := filePath(p.Storage.Location)
	if err != nil {
		return filesystem.Directory{}, fault("%v", err)
	}
	return filesystem.Directory{Path: path, Values: vals}, nil
}
