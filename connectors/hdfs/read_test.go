//go:build services

package hdfs_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/hdfs"
	"github.com/millrace/millrace/storage/vfs"
)

// writeRandom writes a file of several blocks.
func writeRandom(t *testing.T, fsys *hdfs.FS, name string, size int, seed uint64) []byte {
	t.Helper()
	r := rand.NewChaCha8([32]byte{byte(seed)})
	data := make([]byte, size)
	_, _ = r.Read(data) // never fails
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

func smallBlocks(t *testing.T) *hdfs.FS {
	f := hdfs.Open(hdfs.Config{Authority: cluster.Addresses[0], Addresses: cluster.Addresses, User: superuser(), BlockBytes: 512 << 10,
		RPCTimeout: 5 * time.Second, RetryTimeout: time.Minute, SpoolDir: t.TempDir()}, vfs.NewOS())
	t.Cleanup(func() { f.Close() })
	return f
}

// TestReadAnywhere reads pieces of all sizes, forward, backward and over the ends
// of blocks, and takes the DataNode away in between.
func TestReadAnywhere(t *testing.T) {
	fsys, dir := smallBlocks(t), newDir()
	if err := fsys.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	data := writeRandom(t, fsys, dir+"/data", 6_000_001, seed)
	f, err := fsys.Open(dir + "/data")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	off := 0
	for i := range 600 {
		if i == 300 {
			cluster.DataNodes[0].Kill()
			if err := cluster.DataNodes[0].Start(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		size := 1 + rng.IntN(1<<rng.IntN(21))
		switch rng.IntN(3) {
		case 0:
			off = rng.IntN(len(data))
		case 1:
			// A little forward, as over a page that is not wanted.
			off = min(off+rng.IntN(100_000), len(data)-1)
		}
		buf := make([]byte, size)
		n, err := f.ReadAt(buf, int64(off))
		want := data[off:min(off+size, len(data))]
		if !bytes.Equal(buf[:n], want) || (err != nil) != (len(want) < size) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("seed %d, read %d: %d bytes at %d: %d bytes, equal=%t, %v", seed, i, size, off, n, bytes.Equal(buf[:n], want), err)
		}
		off += n
		if off >= len(data) {
			off = 0
		}
	}
	if n, err := f.ReadAt(make([]byte, 1), int64(len(data))); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("behind the end: %d, %v", n, err)
	}
}

// TestReplacedWhileRead: the file under the name is another one; no byte of it is
// given out as the first one's.
func TestReplacedWhileRead(t *testing.T) {
	fsys, dir := smallBlocks(t), newDir()
	if err := fsys.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	first := writeRandom(t, fsys, dir+"/data", 3_000_000, 1)
	f, err := fsys.Open(dir + "/data")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 100_000)
	if _, err := f.ReadAt(buf, 0); err != nil || !bytes.Equal(buf, first[:len(buf)]) {
		t.Fatalf("before: %v", err)
	}
	writeRandom(t, fsys, dir+"/data", 3_000_000, 2)
	// The blocks of the first file go when the DataNode hears of it; until then
	// they may still be read.
	for off := 0; off+len(buf) < len(first); off += len(buf) {
		n, err := f.ReadAt(buf, int64(off))
		if !bytes.Equal(buf[:n], first[off:off+n]) {
			t.Fatalf("bytes of another file at %d", off)
		}
		if err != nil {
			t.Logf("at %d: %v", off, err)
			break
		}
	}
	names, err := fsys.List(dir)
	if err != nil || len(names) != 1 || names[0] != "data" {
		t.Fatalf("left are %v, %v", names, err)
	}
}
