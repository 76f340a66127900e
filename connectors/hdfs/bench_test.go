//go:build services

package hdfs_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/hdfs"
	"github.com/millrace/millrace/storage/vfs"
)

func openRoot(tb testing.TB) *hdfs.FS {
	f := hdfs.Open(hdfs.Config{Authority: cluster.Addresses[0], Addresses: cluster.Addresses, User: superuser(),
		RPCTimeout: time.Minute, RetryTimeout: time.Minute, SpoolDir: tb.TempDir()}, vfs.NewOS())
	tb.Cleanup(func() { f.Close() })
	return f
}

// BenchmarkUpload sends the same bytes by our writer, spool and all, and by
// Hadoop's own shell, in turn. The fastest of each counts; the shell's is less
// its fastest put of one byte, which is its start. Run it with -benchtime 5x.
func BenchmarkUpload(b *testing.B) {
	const size = 256 << 20
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	local := filepath.Join(b.TempDir(), "data")
	one := filepath.Join(b.TempDir(), "one")
	if err := os.WriteFile(local, data, 0o644); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(one, data[:1], 0o644); err != nil {
		b.Fatal(err)
	}
	fsys, ctx := openRoot(b), within(b)
	dir := newDir()
	if err := fsys.MkdirAll(dir); err != nil {
		b.Fatal(err)
	}
	put := func(file, name string) time.Duration {
		began := time.Now()
		if _, err := cluster.Shell(ctx, "-put", file, dir+"/"+name); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	ours, theirs, start := time.Hour, time.Hour, time.Hour
	for i := range b.N {
		began := time.Now()
		f, err := fsys.CreateNew(fmt.Sprintf("%s/ours%d", dir, i))
		if err != nil {
			b.Fatal(err)
		}
		for off := 0; off < size; off += 64 << 10 {
			if _, err := f.Write(data[off : off+64<<10]); err != nil {
				b.Fatal(err)
			}
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
		o := time.Since(began)
		t, s := put(local, fmt.Sprintf("theirs%d", i)), put(one, fmt.Sprintf("one%d", i))
		b.Logf("ours %v, FsShell -put %v with a start of %v", o.Round(time.Millisecond), t.Round(time.Millisecond), s.Round(time.Millisecond))
		ours, theirs, start = min(ours, o), min(theirs, t), min(start, s)
		if err := fsys.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		if err := fsys.MkdirAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	theirs -= start
	b.ReportMetric(size/ours.Seconds()/1e6, "ours-MB/s")
	b.ReportMetric(size/theirs.Seconds()/1e6, "FsShell-MB/s")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRead reads a file from beginning to end in pieces of a text table,
// and in the small pieces that a Parquet reader asks for.
func BenchmarkRead(b *testing.B) {
	const size = 64 << 20
	fsys := openRoot(b)
	dir := newDir()
	if err := fsys.MkdirAll(dir); err != nil {
		b.Fatal(err)
	}
	f, err := fsys.CreateNew(dir + "/data")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.CopyN(f, rand.Reader, size); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	for _, piece := range []int{4 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("%d KiB", piece>>10), func(b *testing.B) {
			b.SetBytes(size)
			for range b.N {
				r, err := fsys.Open(dir + "/data")
				if err != nil {
					b.Fatal(err)
				}
				buf := make([]byte, piece)
				for off := int64(0); off < size; off += int64(piece) {
					if _, err := r.ReadAt(buf, off); err != nil {
						b.Fatal(err)
					}
				}
				r.Close()
			}
		})
	}
	// Two columns read in turn: each piece is elsewhere.
	b.Run("two places in turn", func(b *testing.B) {
		const piece, pieces = 64 << 10, 200
		b.SetBytes(piece * pieces)
		for range b.N {
			r, err := fsys.Open(dir + "/data")
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]byte, piece)
			for i := range int64(pieces) {
				if _, err := r.ReadAt(buf, i%2*size/2+i/2*piece); err != nil {
					b.Fatal(err)
				}
			}
			r.Close()
		}
	})
}
