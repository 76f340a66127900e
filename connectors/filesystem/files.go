package filesystem

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// dataFile is a file of a table as it was when it was listed.
type dataFile struct {
	at   place
	path string // in at.fs
	// id is the path that the file's topic is made of: relative to the table where
	// the table is a directory, else in full.
	id         string
	values     []partitionValue // of the partition columns, in order
	size       int64
	modMillis  int64
	modNanos   int64
	compressed bool // compressed text; known with the splits
}

func newDataFile(at place, path, id string, info vfs.FileInfo) *dataFile {
	return &dataFile{at: at, path: path, id: id, size: info.Size(), modMillis: info.ModTime().UnixMilli(), modNanos: info.ModTime().UnixNano()}
}

// topic identifies a file with its content: the path, pinned to length and
// time. A file that changes is another topic, so a saved position of the old
// one does not match any more.
func (f *dataFile) topic() connector.UUID {
	h := sha256.New()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(f.size))
	binary.BigEndian.PutUint64(b[8:], uint64(f.modNanos))
	h.Write(b[:])
	h.Write([]byte(f.id))
	var id connector.UUID
	copy(id[:], h.Sum(nil))
	return id
}

// shown is a file's path as users write it.
func (f *dataFile) shown() string { return f.at.prefix + f.path }

// open opens a listed file and checks that it is still the one that was listed.
func (f *dataFile) open() (vfs.File, error) {
	h, err := f.at.fs.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", f.shown(), err)
	}
	info, err := h.Stat()
	if err == nil && (info.Size() != f.size || info.ModTime().UnixNano() != f.modNanos) {
		err = fmt.Errorf("%s has changed since it was listed", f.shown())
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// hidden names are never data: Hive's and Spark's rule. A directory "_dt=..." is a
// table partition: Spark's rule.
func hidden(name string, dir bool) bool {
	return name == "" || name[0] == '.' || name[0] == '_' && !(dir && strings.ContainsRune(name, '='))
}

// infoLister is a filesystem that describes the names of a directory in one
// call.
type infoLister interface {
	ListInfo(dir string) ([]vfs.FileInfo, error)
}

// listInfo describes what is in a directory and not hidden, sorted by name.
func listInfo(fsys vfs.FS, dir string) ([]vfs.FileInfo, error) {
	if l, ok := fsys.(infoLister); ok {
		infos, err := l.ListInfo(dir)
		return slices.DeleteFunc(infos, func(i vfs.FileInfo) bool { return hidden(i.Name(), i.IsDir()) }), err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	var out []vfs.FileInfo
	for _, n := range names {
		if hidden(n, true) {
			continue
		}
		info, err := fsys.Stat(fsys.Join(dir, n))
		if errors.Is(err, vfs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if hidden(n, info.IsDir()) {
			continue
		}
		out = append(out, named{info, n})
	}
	return out, nil
}

// named is a FileInfo under the name that was listed: a filesystem may describe
// a link by the name of what it leads to.
type named struct {
	vfs.FileInfo
	name string
}

func (n named) Name() string { return n.name }

// splits are the row groups of a Parquet file as [first row, end) pairs; a
// text file is one split of the bytes of its text.
func (s *Source) splits(f *dataFile) ([][2]int64, error) {
	h, err := f.open()
	if err != nil {
		return nil, err
	}
	if s.opts.format != formatParquet {
		end, err := s.textEnd(f, h)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read as %s: %w", f.shown(), s.opts.format, err)
		}
		return [][2]int64{{0, end}}, nil
	}
	defer h.Close()
	p, err := parquetfmt.OpenFile(h, f.size)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.shown(), err)
	}
	var out [][2]int64
	for _, g := range p.RowGroups() {
		out = append(out, [2]int64{g.FirstRow, g.FirstRow + g.Rows})
	}
	return out, nil
}

// textEnd looks at a text file, which it closes, and gives the end of its split.
func (s *Source) textEnd(f *dataFile, h vfs.File) (int64, error) {
	c, compressed, err := codecOf(f.path)
	if err != nil {
		h.Close()
		return 0, err
	}
	if f.compressed = compressed; compressed {
		in := newCompressedInput(h, f.size, c)
		defer in.close()
		return textBound(f.size), s.checkHead(in)
	}
	in := &plainInput{file: h, size: f.size}
	defer in.close()
	return f.size, s.checkHead(in)
}

// headBytes is how much of a text file is looked at before it is read.
const headBytes = 16 << 10

// noText are the first bytes of what is not text.
var noText = []struct{ magic, name string }{
	{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"}, {"\x04\x22\x4d\x18", "lz4"}, {"PAR1", "Parquet"},
}

// checkHead refuses a file that is not of the table's format as a whole: each
// of its lines would be a malformed record, and the file would seem to be read.
func (s *Source) checkHead(in textInput) error {
	head := make([]byte, headBytes)
	n, err := in.Read(head)
	if errors.Is(err, errDamaged) {
		return nil // its own lane tells, behind what can be read, and other files are read
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading its first bytes: %w", err)
	}
	head = head[:n]
	whole := err != nil
	for _, c := range noText {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			if c.name == "Parquet" {
				return errors.New("it is a Parquet file")
			}
			return fmt.Errorf("it is compressed with %s, and its name does not say so (files that end with %s are unpacked)", c.name, readableEndings())
		}
	}
	for range s.opts.skipLines {
		_, head, _ = bytes.Cut(head, []byte("\n"))
	}
	if f, ok := s.format.(format.HeadChecker); ok {
		return f.CheckHead(head, whole)
	}
	return nil
}
