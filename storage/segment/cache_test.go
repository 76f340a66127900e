package segment

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/millrace/millrace/storage/vfs"
)

// openFiles is an injector that counts the files that are open.
type openFiles struct {
	mu   sync.Mutex
	now  int
	most int
}

func (o *openFiles) Inject(op vfs.Op) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch op.Kind {
	case vfs.OpOpen:
		o.now++
		o.most = max(o.most, o.now)
	case vfs.OpClose:
		o.now--
	}
	return nil
}

func many(t testing.TB, fsys vfs.FS, n int) {
	t.Helper()
	for i := range n {
		w, err := Create(fsys, fmt.Sprint("s", i), Options{Meta: Meta{ID: uint64(i), Kind: Mixed}, ExtentBytes: 1})
		must(t, err)
		for p := range uint64(3) {
			raw, _ := run(t, p, int64(100*i), 0, 40, 60)
			_, err := w.Append(p, raw, 0)
			must(t, err)
		}
		_, err = w.Seal()
		must(t, err)
		must(t, w.Close())
	}
}

func TestCacheIsBounded(t *testing.T) {
	mem := vfs.NewMem()
	many(t, mem, 20)
	files := &openFiles{}
	var one Index
	must(t, one.add(Extent{}))
	perIndex := 6 * one.bytes() // each segment has six extents
	c := NewCache(vfs.NewFault(mem, files), CacheOptions{MaxIndexBytes: 5 * perIndex, MaxOpenFiles: 3})
	for round := range 2 {
		for i := range 20 {
			r := c.Reader(fmt.Sprint("s", i), Meta{ID: uint64(i), Kind: Mixed})
			got, _ := readAll(t, r, 1, 0)
			wantOffsets(t, "cached", got, int64(100*i), int64(100*i+99))
			if s := c.Stats(); s.Files > 3 || s.Indexes > 5 || s.IndexBytes > 5*perIndex {
				t.Fatalf("round %d segment %d: %+v", round, i, s)
			}
		}
	}
	if files.most > 4 { // three, and one just being opened
		t.Fatalf("%d files were open", files.most)
	}
	if s := c.Stats(); s.Files != 3 || s.Indexes != 5 {
		t.Fatalf("not used to the bounds: %+v", s)
	}
	c.mu.Lock()
	if n := len(c.entries); n > 8 {
		t.Fatalf("%d entries for 3 files and 5 indexes", n)
	}
	c.mu.Unlock()
	c.Close()
	if files.now != 0 {
		t.Fatalf("%d files left open", files.now)
	}
}

func TestCacheKeepsTheRecentlyUsed(t *testing.T) {
	mem := vfs.NewMem()
	many(t, mem, 4)
	files := &openFiles{}
	c := NewCache(vfs.NewFault(mem, files), CacheOptions{MaxOpenFiles: 2})
	read := func(i int) {
		readAll(t, c.Reader(fmt.Sprint("s", i), Meta{ID: uint64(i), Kind: Mixed}), 0, 0)
	}
	read(0)
	opens := &vfs.Nth{Kinds: vfs.OpOpen, From: 1 << 60}
	c.fs.(*vfs.FaultFS).SetInjector(opens)
	for _, i := range []int{1, 0, 2, 0, 3, 0} {
		read(i)
	}
	if n := opens.Seen(); n != 3 { // 1, 2 and 3, but never 0 again
		t.Fatalf("%d opens, want 3", n)
	}
	c.Close()
}

func TestCacheDrop(t *testing.T) {
	mem := vfs.NewMem()
	many(t, mem, 1)
	files := &openFiles{}
	c := NewCache(vfs.NewFault(mem, files), CacheOptions{})
	r := c.Reader("s0", Meta{})
	readAll(t, r, 0, 0)
	// A read under way keeps its file.
	shared, err := r.src.acquire()
	must(t, err)
	c.Drop("s0")
	if s := c.Stats(); s.Files != 0 || s.Indexes != 0 || s.IndexBytes != 0 {
		t.Fatalf("after drop: %+v", s)
	}
	if _, err := shared.f.ReadAt(make([]byte, 10), 0); err != nil {
		t.Fatalf("the file was closed under its reader: %v", err)
	}
	must(t, shared.release())
	if files.now != 0 {
		t.Fatalf("%d files left open", files.now)
	}
	must(t, mem.Remove("s0"))
	if _, err := r.ReadAt(nil, 0, 0); err == nil {
		t.Fatal("read a removed segment")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) != 0 {
		t.Fatal("an entry of a missing file stays")
	}
}

func TestCacheConcurrently(t *testing.T) {
	mem := vfs.NewMem()
	many(t, mem, 12)
	files := &openFiles{}
	c := NewCache(vfs.NewFault(mem, files), CacheOptions{MaxIndexBytes: 1, MaxOpenFiles: 2})
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(g, 0))
			buf := make([]byte, 64<<10)
			for range 200 {
				i := rng.IntN(12)
				path := fmt.Sprint("s", i)
				if rng.IntN(20) == 0 {
					c.Drop(path)
				}
				got, err := c.Reader(path, Meta{ID: uint64(i), Kind: Mixed}).ReadAt(buf, rng.Uint64N(3), int64(100*i+50))
				if err != nil || len(got) == 0 {
					t.Errorf("segment %d: %d bytes, %v", i, len(got), err)
				}
			}
		})
	}
	wg.Wait()
	c.Close()
	if files.now != 0 {
		t.Fatalf("%d files left open", files.now)
	}
}

// TestReadersOfAGrowingSegment read while it grows, seals and closes.
func TestReadersOfAGrowingSegment(t *testing.T) {
	mem := vfs.NewMem()
	w := own(t, mem, "s")
	raw, next := run(t, 42, 100, 0, 3)
	_, err := w.Append(42, raw, 0)
	must(t, err)
	r := w.Reader()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			buf := make([]byte, 64<<10)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := r.ReadAt(buf, 42, 100); err != nil || len(got) == 0 {
					t.Errorf("%d bytes, %v", len(got), err)
					return
				}
			}
		})
	}
	for range 200 {
		raw, next = run(t, 42, next, 0, 2)
		_, err := w.Append(42, raw, 0)
		must(t, err)
	}
	_, err = w.Seal()
	must(t, err)
	close(stop)
	wg.Wait()
	must(t, w.Close())
}
