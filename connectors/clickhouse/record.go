package clickhouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// record is what this job has put into a table partition by method replace: a file of
// the staging directory, docs/format/replace-record.md.
type record struct {
	Format int `json:"format"`
	// Name is the partition as the ledger names it.
	Name string `json:"name"`
	// Done is the content that was seen last, Next the one that was about to come.
	Done *version `json:"done,omitempty"`
	Next *version `json:"next,omitempty"`
}

// version is one content.
type version struct {
	Version uint64 `json:"version"`
	// Partition is ClickHouse's id, "" for an empty content of a partition that was
	// never there.
	Partition string `json:"partition"`
	Rows      int64  `json:"rows"`
	// Hash is the sum of the server's hashes of the rows.
	Hash  uint64   `json:"hash,string"`
	Parts []string `json:"parts"`
}

func (v *version) content() content { return content{v.Rows, v.Hash} }

const recordFormat = 1

func (s *sink) recordPath(name string) string {
	return s.fs.Join(s.recordDir(), strconv.FormatUint(xxhash.Sum64String(name), 16)+".json")
}

func (s *sink) recordDir() string { return s.staging.Own("replaced") }

// readRecord is the record of a partition, an empty one when there is none.
func (s *sink) readRecord(name string) (*record, error) {
	r, err := s.readRecordFile(s.recordPath(name))
	if err != nil {
		return nil, err
	}
	if r == nil {
		return &record{Format: recordFormat, Name: name}, nil
	}
	if r.Name != name {
		return nil, fmt.Errorf("%s is of %s, not of %s", s.recordPath(name), place(r.Name), place(name))
	}
	return r, nil
}

func (s *sink) readRecordFile(path string) (*record, error) {
	b, err := vfs.ReadFile(s.fs, path)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	r := &record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Format != recordFormat {
		return nil, fmt.Errorf("%s has format %d; this program knows %d", path, r.Format, recordFormat)
	}
	return r, nil
}

// writeRecord makes a record durable.
func (s *sink) writeRecord(r *record) error {
	if err := vfs.MkdirAllSync(s.fs, s.recordDir()); err != nil {
		return fmt.Errorf("making %s: %w", s.recordDir(), err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding a record: %w", err)
	}
	if err := vfs.WriteFileAtomic(s.fs, s.recordPath(r.Name), b); err != nil {
		return fmt.Errorf("writing %s: %w", s.recordPath(r.Name), err)
	}
	return nil
}

// alone refuses a content whose partition of ClickHouse is another name's already: each
// would wipe the other one out.
func (s *sink) alone(name, partition string) error {
	files, err := s.fs.List(s.recordDir())
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", s.recordDir(), err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, ".json") {
			continue
		}
		r, err := s.readRecordFile(s.fs.Join(s.recordDir(), f))
		if err != nil {
			return err
		}
		for _, v := range []*version{r.Done, r.Next} {
			if v != nil && v.Rows > 0 && v.Partition == partition && r.Name != name {
				return fmt.Errorf("%w: partition %s of table %s has the content of %s; two windows cannot replace one partition", connector.ErrRefused, partition, s.location(), place(r.Name))
			}
		}
	}
	return nil
}

// partitionNamed is the id of the partition of a name: of the records, else of the rows
// that are there; "" when there is none.
func (s *sink) partitionNamed(ctx context.Context, name string) (string, error) {
	have, err := s.readRecord(name)
	if err != nil {
		return "", err
	}
	for _, v := range []*version{have.Next, have.Done} {
		if v != nil && v.Partition != "" {
			return v.Partition, nil
		}
	}
	parts, err := s.server.parts(ctx)
	if err != nil {
		return "", err
	}
	for _, snap := range snapshots(parts) {
		found, err := s.nameOf(ctx, snap.partition)
		if err != nil {
			return "", err
		}
		if found == name {
			return snap.partition, nil
		}
	}
	return "", nil
}

// nameOf is the name of a partition of the table, by one of its rows.
func (s *sink) nameOf(ctx context.Context, partition string) (string, error) {
	bound := s.binding()
	if len(bound.keys) == 0 {
		return "", nil
	}
	// The batch has the table's columns in their places; those of the key are read.
	b := &batch.Batch{Len: 1}
	var cols []*readColumn
	var at []int
	for i := range bound.keys {
		k := &bound.keys[i]
		name := bound.names[bound.keyColumn(i)]
		c, err := selectColumn(name, k.col.sql.WithNullable(true), bound.def.column(name).typ, s.server.timeZone)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", name, err)
		}
		cols, at = append(cols, c), append(at, k.source)
		for len(b.Cols) <= k.source {
			b.Cols = append(b.Cols, batch.Vec{})
		}
	}
	vecs := make([]batch.Vec, len(cols))
	n, err := s.server.firstRow(ctx, "SELECT "+inColumns(cols)+" FROM "+s.server.name()+" WHERE startsWith(_part, "+quoteText(partition+"_")+")", cols, vecs)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", fmt.Errorf("partition %s of %s has no rows any more", partition, s.location())
	}
	for i, place := range at {
		b.Cols[place] = vecs[i]
	}
	return s.PartitionOf(b, 0)
}
