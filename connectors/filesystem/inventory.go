package filesystem

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/storage/vfs"
)

// Inventory is what lies in a table partition's directory.
type Inventory struct {
	Files, Bytes int64
	// Rows is -1 when a file does not tell.
	Rows int64
}

// Inventory counts the data files of a table partition ("" is the table's own
// directory), whoever wrote them. known gives the rows of the files that the
// caller knows, by Artifact.Location; the others are asked by their footers.
func (s *Sink) Inventory(ctx context.Context, tablePartition string, known func(path string) (rows int64, ok bool)) (Inventory, error) {
	var v Inventory
	dir := s.dir
	if tablePartition != "" {
		dir = s.path(tablePartition)
	}
	infos, err := listInfo(s.fs, dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, fmt.Errorf("listing %s: %w", s.prefix+dir, err)
	}
	for _, info := range infos {
		if info.IsDir() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return v, err
		}
		name := s.fs.Join(dir, info.Name())
		v.Files++
		v.Bytes += info.Size()
		rows, ok := known(s.prefix + name)
		if !ok && v.Rows >= 0 {
			rows = s.fileRows(name, info.Size())
		}
		if rows < 0 || v.Rows < 0 {
			v.Rows = -1
		} else {
			v.Rows += rows
		}
	}
	return v, nil
}

// fileRows is the number of rows that a file's footer tells, -1 if it tells none.
func (s *Sink) fileRows(name string, size int64) int64 {
	if s.encode != nil {
		return -1
	}
	f, err := s.fs.Open(name)
	if err != nil {
		return -1
	}
	defer f.Close()
	_, rows, err := parquetfmt.Metadata(f, size)
	if err != nil {
		return -1
	}
	return rows
}

// Owned reports whether the table still belongs to this process: an error that
// wraps connector.ErrFenced when another has taken it over.
func (s *Sink) Owned() error { return s.owned() }

// PartitionValue is one column of a table partition's name.
type PartitionValue struct {
	// Column and Value are unescaped; Value is the default name for NULL.
	Column, Value string
	// Null tells that the value is NULL. SplitPartition does not set it: it does
	// not know the default name.
	Null bool
}

// SplitPartition splits a table partition, "dt=2024-05-01/hr=08", into its values.
func SplitPartition(tablePartition string) ([]PartitionValue, error) {
	vals, err := parsePartition(tablePartition, "")
	if err != nil {
		return nil, err
	}
	out := make([]PartitionValue, len(vals))
	for i, v := range vals {
		out[i] = PartitionValue{Column: v.name, Value: v.value}
	}
	return out, nil
}
