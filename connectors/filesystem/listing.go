package filesystem

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// Directory is a part of a table whose directories something else than the
// table's path tells: a metastore.
type Directory struct {
	// Path is spelled as option 'path' is.
	Path string
	// Values are those of the partition columns, in order.
	Values []PartitionValue
}

// DirectoryLister gives the directories of a table that hold rows which are
// wanted; wanted says so by the values of the partition columns.
type DirectoryLister func(ctx context.Context, wanted func([]PartitionValue) bool) ([]Directory, error)

// OpenDirectories opens a table that is read from the directories which list
// gives, each with all that is below it. Option 'path' is not looked at.
func (c *Connector) OpenDirectories(t *connector.Table, list DirectoryLister) (*Source, error) {
	s, err := c.newSource(t)
	if err != nil {
		return nil, err
	}
	s.lister = list
	return s, nil
}

// Prune implements connector.PartitionPruner.
func (s *Source) Prune(f connector.PartitionFilter) { s.filter = f }

// list finds all data files that are wanted, sorted by path in each directory.
func (s *Source) list(ctx context.Context) ([]*dataFile, error) {
	w := &walk{ctx: ctx}
	if s.lister != nil {
		return s.listDirectories(w)
	}
	info, err := s.at.fs.Stat(s.at.dir)
	switch {
	case errors.Is(err, vfs.ErrNotExist):
		// A table that nobody has written yet is empty.
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking at %s: %w", s.at.prefix+s.at.dir, err)
	case !info.IsDir():
		if len(s.partNames) > 0 {
			return nil, fmt.Errorf("%s is a file; a partitioned table is a directory", s.at.prefix+s.at.dir)
		}
		return []*dataFile{newDataFile(s.at, s.at.dir, "", info)}, nil
	}
	var fault error
	if len(s.partNames) > 0 {
		w.values, fault = s.valuesOf, s.notIn(0)
	}
	err = w.dir(s.at, s.at.dir, "", nil, fault)
	return w.files, err
}

func (s *Source) listDirectories(w *walk) ([]*dataFile, error) {
	dirs, err := s.lister(w.ctx, func(vals []PartitionValue) bool { return s.wanted(internal(vals)) })
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		at, err := s.mount(w.ctx, d.Path)
		if err != nil {
			return nil, err
		}
		vals := internal(d.Values)
		info, err := at.fs.Stat(at.dir)
		switch {
		case errors.Is(err, vfs.ErrNotExist):
			// A partition that nobody has written yet is empty.
			continue
		case err == nil && !info.IsDir():
			err = errors.New("it is a file, not a directory")
		}
		if err == nil {
			err = w.dir(at, at.dir, d.Path, vals, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("looking at %s: %w", d.Path, err)
		}
	}
	return w.files, nil
}

func internal(vals []PartitionValue) []partitionValue {
	out := make([]partitionValue, len(vals))
	for i, v := range vals {
		out[i] = partitionValue{name: v.Column, value: v.Value, null: v.Null}
	}
	return out
}

// mount gives the place of a directory. Those of one host share a mount.
func (s *Source) mount(ctx context.Context, path string) (place, error) {
	name := scheme(path)
	if name == "" {
		return s.conn.place(ctx, path, s.table.Options)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(path, name+"://"), "/")
	key := name + "://" + host
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.mounts[key]
	if !ok {
		if err := s.conn.checkPath(path); err != nil {
			return place{}, err
		}
		v := s.table.Options
		if p, ok := s.conn.Second(v); ok && strings.HasPrefix(p.Options.String(keyPath)+"/", key+"/") {
			v = p.Options // how its second home is reached
		}
		var err error
		if at, err = s.conn.place(ctx, path, v); err != nil {
			return place{}, err
		}
		s.mounts[key] = at
	}
	dir, ok := strings.CutPrefix(path, at.prefix)
	if !ok {
		return place{}, fmt.Errorf("%s is not below %s", path, at.prefix)
	}
	at.dir = at.fs.Join(dir)
	return at, nil
}

// walk collects the data files below directories.
type walk struct {
	ctx   context.Context
	files []*dataFile
	// values gives the values of the partition that a directory is, by its path
	// relative to the table, whether its rows are wanted, or why files in it belong
	// to none. A nil function: values are given.
	values func(rel string) (vals []partitionValue, wanted bool, fault error)
}

// dir walks one directory. fault is why a file in it belongs to no partition.
func (w *walk) dir(at place, dir, id string, vals []partitionValue, fault error) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	infos, err := listInfo(at.fs, dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", at.prefix+dir, err)
	}
	for _, info := range infos {
		full, id := at.fs.Join(dir, info.Name()), strings.TrimPrefix(id+"/"+info.Name(), "/")
		if !info.IsDir() {
			f := newDataFile(at, full, id, info)
			if fault != nil {
				return fmt.Errorf("%s: %w", f.shown(), fault)
			}
			f.values = vals
			w.files = append(w.files, f)
			continue
		}
		below, belowFault, wanted := vals, fault, true
		if w.values != nil {
			below, wanted, belowFault = w.values(id)
		}
		if !wanted {
			continue
		}
		if err := w.dir(at, full, id, below, belowFault); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf are a partition's values by its directory; see walk. A file in a
// directory that is none is refused rather than skipped.
func (s *Source) valuesOf(rel string) ([]partitionValue, bool, error) {
	vals, err := parsePartition(rel, s.opts.defaultName)
	if err != nil {
		return nil, true, err
	}
	if len(vals) != len(s.partNames) {
		return nil, true, s.notIn(len(vals))
	}
	for k, v := range vals {
		if v.name != s.partNames[k] {
			return nil, true, fmt.Errorf("it lies in partition %s, the table's column is %s", v.name, s.partNames[k])
		}
	}
	return vals, s.wanted(vals), nil
}

func (s *Source) notIn(depth int) error {
	if depth == 0 {
		return fmt.Errorf("it lies in no partition directory (%s=.../)", strings.Join(s.partNames, "=.../"))
	}
	return fmt.Errorf("it lies in %d partition directories, the table has %d (%s=.../)", depth, len(s.partNames), strings.Join(s.partNames, "=.../"))
}

// wanted asks the filter about a partition. One whose values are not of the
// columns' types is wanted: reading it says so.
func (s *Source) wanted(vals []partitionValue) bool {
	if s.filter == nil || len(vals) == 0 {
		return true
	}
	schema := s.table.Schema(s.table.PartitionKeys)
	b := &batch.Batch{Schema: schema, Cols: make([]batch.Vec, len(vals)), Len: 1}
	for i, v := range vals {
		if constant(&b.Cols[i], schema.Fields[i].Type, 1, v) != nil {
			return true
		}
	}
	return s.filter.Wanted(b)
}
