package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	xparquet "github.com/xitongsys/parquet-go/parquet"
	xreader "github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/source"
)

// row is a row of a table as text: column=value in the order of the columns,
// the file's first and then the table partition's.
type row = string

// multiset counts equal rows.
type multiset map[row]int

func (m multiset) total() int {
	n := 0
	for _, c := range m {
		n += c
	}
	return n
}

// readTable reads every visible Parquet file of a table's directory with
// xitongsys/parquet-go. Only flat columns can be read.
func readTable(t testing.TB, dir string) multiset {
	t.Helper()
	out := multiset{}
	for _, f := range tableFiles(t, dir) {
		readFile(t, dir, f, func(r row) { out[r]++ })
	}
	return out
}

// tableFiles are the data files that any reader of Hive-style tables sees:
// names starting with '.' or '_' are none, at any level.
func tableFiles(t testing.TB, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := p != dir && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_"))
		if d.IsDir() {
			if hidden {
				return filepath.SkipDir
			}
			return nil
		}
		if !hidden {
			files = append(files, p)
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	sort.Strings(files)
	return files
}

// readFile calls f with each row of a file.
func readFile(t testing.TB, dir, path string, f func(row)) {
	t.Helper()
	rel, err := filepath.Rel(dir, filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var partition strings.Builder
	if rel != "." {
		for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
			name, value, ok := strings.Cut(part, "=")
			if value, err = url.PathUnescape(value); err != nil || !ok {
				t.Fatalf("%s: %q is no table partition", path, part)
			}
			fmt.Fprintf(&partition, " %s=%s", name, value)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	names, columns, rows, err := readColumns(b)
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	var text strings.Builder
	for i := range rows {
		text.Reset()
		for c, name := range names {
			if c > 0 {
				text.WriteByte(' ')
			}
			text.WriteString(name)
			text.WriteByte('=')
			if v := columns[c][i]; v == nil {
				text.WriteString("NULL")
			} else {
				fmt.Fprint(&text, v)
			}
		}
		text.WriteString(partition.String())
		f(text.String())
	}
}

// readColumns decodes a whole file.
func readColumns(b []byte) (names []string, columns [][]any, rows int, err error) {
	defer func() {
		// The library panics on what it does not understand.
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	pr, err := xreader.NewParquetColumnReader(memoryFile{bytes.NewReader(b)}, 1)
	if err != nil {
		return nil, nil, 0, err
	}
	defer pr.ReadStop()
	rows = int(pr.GetNumRows())
	for _, e := range pr.Footer.Schema[1:] {
		if e.GetNumChildren() > 0 || e.GetRepetitionType() == xparquet.FieldRepetitionType_REPEATED {
			return nil, nil, 0, fmt.Errorf("column %s is nested", e.Name)
		}
		names = append(names, e.Name)
	}
	// The library changes the names in its schema to Go's; the file has them right.
	for i := range names {
		names[i] = pr.SchemaHandler.GetExName(i + 1)
	}
	for c := range names {
		values, _, _, err := pr.ReadColumnByIndex(int64(c), int64(rows))
		if err != nil {
			return nil, nil, 0, err
		}
		if len(values) != rows {
			return nil, nil, 0, fmt.Errorf("column %s has %d values, the file %d rows", names[c], len(values), rows)
		}
		columns = append(columns, values)
	}
	return names, columns, rows, nil
}

// memoryFile is a file's content as the library wants it.
type memoryFile struct{ *bytes.Reader }

func (f memoryFile) Open(string) (source.ParquetFile, error) {
	again := *f.Reader
	if _, err := again.Seek(0, 0); err != nil {
		return nil, err
	}
	return memoryFile{&again}, nil
}

func (memoryFile) Create(string) (source.ParquetFile, error) {
	return nil, fmt.Errorf("the file is only read")
}

func (memoryFile) Write([]byte) (int, error) { return 0, fmt.Errorf("the file is only read") }

func (memoryFile) Close() error { return nil }

// compare reports rows that are missing, doubled or not wanted.
func compare(t testing.TB, table string, got, want multiset) {
	t.Helper()
	const show = 8
	bad := 0
	say := func(r row, g, w int) {
		bad++
		if bad <= show {
			t.Errorf("table %s: %d times, want %d: %s", table, g, w, r)
		}
	}
	for _, r := range sortedRows(want) {
		if got[r] != want[r] {
			say(r, got[r], want[r])
		}
	}
	for _, r := range sortedRows(got) {
		if _, ok := want[r]; !ok {
			say(r, got[r], 0)
		}
	}
	if bad > show {
		t.Errorf("table %s: %d more rows differ", table, bad-show)
	}
	if bad > 0 {
		t.Errorf("table %s has %d rows, want %d", table, got.total(), want.total())
	}
}

func sortedRows(m multiset) []row {
	out := make([]row, 0, len(m))
	for r := range m {
		out = append(out, r)
	}
	sort.Strings(out)
	return out
}
