package filesystem

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/connector"
)

// Source reads a table's files. A partition of the SPI is a split: one row
// group of a Parquet file, offsets being row ordinals in the file, or one text
// file, offsets being byte offsets of lines in its text, decompressed where the file is
// compressed.
type Source struct {
	conn      *Connector
	at        place           // where the table lies; unused with directories
	lister    DirectoryLister // nil: the table is a directory
	table     *connector.Table
	opts      tableOptions
	partNames []string
	filter    connector.PartitionFilter // nil: all table partitions are wanted
	format    format.Format             // nil: parquet
	policy    format.Policy

	mu     sync.Mutex
	known  map[connector.UUID]*listed
	torn   map[connector.UUID]error // files in which something cannot be read, and why
	mounts map[string]place         // of directories, by scheme and host
}

// listed is a file with its splits.
type listed struct {
	file   *dataFile
	splits [][2]int64
}

var (
	_ connector.Source       = (*Source)(nil)
	_ connector.DecodePolicy = (*Source)(nil)

	_ connector.PartitionPruner = (*Source)(nil)

	_ connector.LookupConnector = (*Connector)(nil)
)

// OpenSource implements connector.SourceConnector.
func (c *Connector) OpenSource(ctx context.Context, t *connector.Table) (connector.Source, error) {
	if p, ok := c.Second(t.Options); ok {
		return nil, &connector.OptionError{Key: p.Option, Message: "not_yet: reading a table with a standby, whose partitions lie here and there, and of one that moved while its home was away there are files at both; " +
			"declare each home as a table of its own: what lies where is in 'millrace tables ls' and in the manifest topic"}
	}
	s, err := c.newSource(t)
	if err != nil {
		return nil, err
	}
	s.at, err = c.place(ctx, t.Options.String(keyPath), t.Options)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Connector) newSource(t *connector.Table) (*Source, error) {
	opts, err := c.tableOptions(t)
	if err != nil {
		return nil, err
	}
	s := &Source{conn: c, table: t, opts: opts, known: map[connector.UUID]*listed{}, torn: map[connector.UUID]error{}, mounts: map[string]place{}}
	return s, s.bind()
}

// bind checks the columns and finds the format.
func (s *Source) bind() (err error) {
	t := s.table
	for _, k := range t.PartitionKeys {
		col := t.Columns[k]
		if !partitionType(col.Type) {
			return fmt.Errorf("column %s: a table cannot be partitioned by %s (not_yet: only strings, integers, BOOLEAN and DATE)", col.Name, col.Type)
		}
		s.partNames = append(s.partNames, col.Name)
	}
	for _, col := range t.Columns {
		if col.Metadata != "" && !knownMetadata(col.Metadata) {
			return fmt.Errorf("column %s: no metadata %q; there is file.path, file.name, file.size, file.modification-time", col.Name, col.Metadata)
		}
	}
	if s.opts.format != formatParquet {
		s.format = s.conn.formats[s.opts.format]
		s.policy, err = s.format.Policy(format.FromValues(t.Options, ""))
	}
	return err
}

func metadataColumns() []connector.MetadataColumn {
	return []connector.MetadataColumn{
		{Key: "file.path", Type: "STRING NOT NULL", Doc: "The file's full path."},
		{Key: "file.name", Type: "STRING NOT NULL", Doc: "Its last component."},
		{Key: "file.size", Type: "BIGINT NOT NULL", Doc: "Its size in bytes."},
		{Key: "file.modification-time", Type: "TIMESTAMP_LTZ(3) NOT NULL", Doc: "When it was last changed."},
	}
}

func knownMetadata(key string) bool {
	for _, m := range metadataColumns() {
		if m.Key == key {
			return true
		}
	}
	return false
}

// Partitions implements connector.Source.
func (s *Source) Partitions(ctx context.Context) ([]connector.Partition, error) {
	defer context.AfterFunc(ctx, func() { hurry(s.at.fs) })()
	files, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var parts []connector.Partition
	for _, f := range files {
		if f.size == 0 && s.format != nil {
			continue
		}
		l, err := s.listing(f)
		if err != nil {
			return nil, err
		}
		for i := range l.splits {
			parts = append(parts, connector.Partition{TopicID: f.topic(), Topic: f.shown(), ID: int32(i)})
		}
	}
	return parts, nil
}

func (s *Source) listing(f *dataFile) (*listed, error) {
	id := f.topic()
	s.mu.Lock()
	l := s.known[id]
	s.mu.Unlock()
	if l != nil {
		return l, nil
	}
	splits, err := s.splits(f)
	if err != nil {
		return nil, err
	}
	l = &listed{file: f, splits: splits}
	s.mu.Lock()
	s.known[id] = l
	s.mu.Unlock()
	return l, nil
}

// find gives the file and bounds of a split, listing anew when the file is not
// known yet: positions outlive the process that listed it.
func (s *Source) find(ctx context.Context, p connector.Partition) (*listed, error) {
	for try := range 2 {
		s.mu.Lock()
		l := s.known[p.TopicID]
		s.mu.Unlock()
		if l != nil {
			if int(p.ID) < 0 || int(p.ID) >= len(l.splits) {
				return nil, fmt.Errorf("%s has no split %d", p.Topic, p.ID)
			}
			return l, nil
		}
		if try == 0 {
			if _, err := s.Partitions(ctx); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// Start implements connector.Source: files are read from their beginning.
func (s *Source) Start(ctx context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		l, err := s.find(ctx, p)
		if err == nil && l == nil {
			err = fmt.Errorf("%s is gone or has changed", p.Topic)
		}
		if err != nil {
			return nil, err
		}
		out[i] = connector.Position{Partition: p, Offset: l.splits[p.ID][0]}
	}
	return out, nil
}

// End implements connector.Source: every split ends, also with a monitor
// interval, which only finds new files.
func (s *Source) End(ctx context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i, p := range parts {
		l, err := s.find(ctx, p)
		if err == nil && l == nil {
			err = fmt.Errorf("%s is gone or has changed", p.Topic)
		}
		if err != nil {
			return nil, err
		}
		out[i] = l.splits[p.ID][1]
	}
	return out, nil
}

// Check implements connector.Source.
func (s *Source) Check(ctx context.Context, saved []connector.Position) ([]error, error) {
	out := make([]error, len(saved))
	for i, p := range saved {
		l, err := s.find(ctx, p.Partition)
		if err != nil {
			return nil, err
		}
		if l == nil {
			out[i] = &connector.MismatchError{Position: p, Lost: -1, Recreated: true, Reason: "the file is gone or has changed since it was listed"}
			continue
		}
		if b := l.splits[p.Partition.ID]; p.Offset < b[0] || p.Offset > b[1] {
			out[i] = &connector.MismatchError{Position: p, Earliest: b[0], Latest: b[1], Lost: -1, Reason: "the position lies outside the split"}
		} else if torn := s.tornOf(p.Partition.TopicID); torn != nil && p.Offset < b[1] {
			out[i] = damaged(p, b[1], torn)
		}
	}
	return out, nil
}

// DecodeErrors implements connector.DecodePolicy.
func (s *Source) DecodeErrors() (connector.OnError, func(string) bool) {
	return s.policy.DecodeErrors()
}

// Close implements connector.Source.
func (s *Source) Close() error {
	var errs []error
	if s.at.release != nil {
		errs = append(errs, s.at.release())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, at := range s.mounts {
		errs = append(errs, at.release())
		delete(s.mounts, k)
	}
	return errors.Join(errs...)
}

// Open implements connector.Source.
func (s *Source) Open(ctx context.Context, splits []connector.Split, columns []int, _ func()) (connector.Reader, error) {
	r := &reader{source: s, schema: s.table.Schema(columns), bounds: map[int32]int64{}, raw: -1}
	if columns == nil {
		for i := range s.table.Columns {
			columns = append(columns, i)
		}
	}
	isKey := map[int]int{}
	for k, c := range s.table.PartitionKeys {
		isKey[c] = k
	}
	at := map[int]int{}
	for out, c := range columns {
		at[c] = out
		col := s.table.Columns[c]
		switch k, key := isKey[c]; {
		case key:
			r.keys = append(r.keys, columnAt{out: out, index: k})
		case col.Metadata != "":
			r.meta = append(r.meta, metaAt{out: out, key: col.Metadata})
		default:
			r.physical = append(r.physical, out)
			r.fields = append(r.fields, col.Field)
		}
	}
	if s.format != nil {
		cfg := format.DecoderConfig{Options: format.FromValues(s.table.Options, "")}
		for c, col := range s.table.Columns {
			if _, key := isKey[c]; key || col.Metadata != "" {
				continue
			}
			out, wanted := at[c]
			if !wanted {
				out = -1
			}
			cfg.Fields = append(cfg.Fields, col.Field)
			cfg.Columns = append(cfg.Columns, out)
		}
		dec, err := s.format.NewDecoder(cfg)
		if err != nil {
			return nil, err
		}
		r.decoder, r.cut = dec, s.format.Split(cfg.Options)
	}
	for _, sp := range splits {
		l, err := s.find(ctx, sp.From.Partition)
		if err == nil && l == nil {
			err = &connector.MismatchError{Position: sp.From, Lost: -1, Recreated: true, Reason: "the file is gone or has changed since it was listed"}
		}
		if err != nil {
			return nil, err
		}
		b := l.splits[sp.From.Partition.ID]
		from, end := max(sp.From.Offset, b[0]), min(sp.End, b[1])
		r.bounds[sp.Number] = end
		if s.format != nil && l.file.compressed && from < end {
			r.bounds[sp.Number] = from + l.file.size // until it is known better
		}
		r.todo = append(r.todo, splitWork{split: sp, file: l.file, first: b[0], from: from, end: end})
	}
	return r, nil
}
