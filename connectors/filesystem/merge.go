package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/runtime/batch"
)

// footerMerged is the footer key of files that were made of others: their names.
const footerMerged = "millrace.merged"

// mergeRows is how many rows are copied at once.
const mergeRows = 4096

// ErrNotMerged: the files are left as they are, for they are not all this table's
// to write again.
var ErrNotMerged = errors.New("files are not merged")

// Merge writes the rows of Parquet files, which lie in a directory relative to the
// table, into files of about target bytes in a version whose record was made and which
// holds nothing else. Rows keep their order.
func (s *Sink) Merge(ctx context.Context, v Version, dir string, names []string, target int64) error {
	if s.encode != nil {
		return fmt.Errorf("%w: only Parquet files are", ErrNotMerged)
	}
	m := &merger{sink: s, version: v, target: target, sources: names}
	defer m.abort()
	for _, n := range names {
		if err := m.file(ctx, s.path(strings.TrimPrefix(dir+"/"+n, "/"))); err != nil {
			return err
		}
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	// Invariant 6: a count that does not add up is found before anybody reads.
	if m.written != m.rows {
		return fmt.Errorf("%d rows were merged into %d", m.rows, m.written)
	}
	return s.fs.SyncDir(s.path(v.Dir()))
}

// merger copies files into the files of a version.
type merger struct {
	sink    *Sink
	version Version
	target  int64
	sources []string

	rows, written int64
	inputs        []string
	hash          uint64
	schema        string
	unhashed      bool // not all sources have row hashes over the same columns

	out   *parquetfmt.Writer
	spool *spool
	files int
	cols  []batch.Vec
}

func (m *merger) file(ctx context.Context, name string) error {
	s := m.sink
	h, err := s.fs.Open(name)
	if err != nil {
		return fmt.Errorf("opening %s: %w", s.prefix+name, err)
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil {
		return fmt.Errorf("looking at %s: %w", s.prefix+name, err)
	}
	f, err := parquetfmt.OpenFile(h, info.Size())
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotMerged, s.prefix+name, err)
	}
	if err := m.check(f); err != nil {
		return fmt.Errorf("%w: %s %w", ErrNotMerged, s.prefix+name, err)
	}
	m.note(f.Metadata())
	m.rows += f.Rows()
	for g := range f.RowGroups() {
		if err := m.group(ctx, f, g); err != nil {
			return fmt.Errorf("merging %s: %w", s.prefix+name, err)
		}
	}
	return nil
}

// check refuses files of others: they may hold what this table's columns do not.
func (m *merger) check(f *parquetfmt.File) error {
	if meta := f.Metadata(); meta[footerVersion] != "1" {
		return errors.New("was not written by Millrace")
	}
	for _, there := range f.Fields() {
		found := false
		for _, ours := range m.sink.fields {
			found = found || strings.EqualFold(ours.Name, there.Name)
		}
		if !found {
			return fmt.Errorf("has the column %s, which this job does not write", there.Name)
		}
	}
	return nil
}

// note adds up what footers say.
func (m *merger) note(meta map[string]string) {
	if in := meta[footerInputs]; in != "" {
		m.inputs = append(m.inputs, in)
	}
	h, err := strconv.ParseUint(meta[footerRowHash], 16, 64)
	if m.schema == "" {
		m.schema = meta[footerSchemaHash]
	}
	m.unhashed = m.unhashed || err != nil || m.schema == "" || m.schema != meta[footerSchemaHash]
	m.hash += h
}

func (m *merger) group(ctx context.Context, f *parquetfmt.File, group int) error {
	if m.cols == nil {
		m.cols = make([]batch.Vec, len(m.sink.fields))
	}
	r, err := f.ReadRowGroup(group, m.sink.fields)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(m.cols, mergeRows)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range m.cols {
			if m.cols[i].HasDeepErrs() {
				return fmt.Errorf("%w: column %s has values that it does not hold any more", ErrNotMerged, m.sink.fields[i].Name)
			}
		}
		if err := m.write(ctx, n); err != nil {
			return err
		}
	}
}

func (m *merger) write(ctx context.Context, rows int) error {
	if m.out == nil {
		s := m.sink
		m.spool = newSpool(s, s.path(fmt.Sprintf("%s/_merging-%d", m.version.Dir(), m.files)))
		var err error
		if m.out, err = parquetfmt.NewWriter(m.spool, s.fields, s.parquet); err != nil {
			return err
		}
	}
	if err := m.out.Write(m.cols, nil); err != nil {
		return err
	}
	m.written += int64(rows)
	if m.out.EstimatedBytes() < m.target {
		return nil
	}
	return m.end(ctx, false)
}

func (m *merger) finish(ctx context.Context) error {
	if m.out == nil {
		return nil
	}
	return m.end(ctx, m.files == 0)
}

// end finishes a file; whole tells that it holds all rows.
func (m *merger) end(ctx context.Context, whole bool) error {
	m.out.SetMetadata(footerVersion, "1")
	m.out.SetMetadata(footerMerged, strings.Join(m.sources, " "))
	if whole {
		m.out.SetMetadata(footerInputs, strings.Join(m.inputs, " "))
		if !m.unhashed {
			m.out.SetMetadata(footerRowHash, fmt.Sprintf("%016x", m.hash))
			m.out.SetMetadata(footerSchemaHash, m.schema)
		}
	}
	_, err := m.out.Close()
	if err == nil {
		err = m.spool.finish(ctx)
	}
	if err != nil {
		return err
	}
	fs := m.sink.fs
	to := fs.Join(fs.Dir(m.spool.name), fmt.Sprintf("%s%s-%d.%s", partPrefix, m.version.Name, m.files, m.sink.ext))
	if err := fs.Rename(m.spool.name, to); err != nil {
		return fmt.Errorf("naming %s: %w", m.sink.prefix+to, err)
	}
	m.out, m.spool = nil, nil
	m.files++
	return nil
}

func (m *merger) abort() {
	if m.out == nil {
		return
	}
	m.out.Abort()
	m.spool.abort()
}
