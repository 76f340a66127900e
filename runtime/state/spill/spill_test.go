package spill

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/storage/vfs"
)

// written makes runs of blocks, each the text of its hashes, with the hashes by run.
func written(t *testing.T, s *Store, rng *rand.Rand, runs, keys int) ([]*Run, [][]uint64) {
	t.Helper()
	w, err := s.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	var out []*Run
	var all [][]uint64
	for range runs {
		hashes := make([]uint64, keys)
		for i := range hashes {
			hashes[i] = rng.Uint64() >> 8 // of one key group
		}
		slices.Sort(hashes)
		r := w.Begin(keys)
		for rest := hashes; len(rest) > 0; {
			n := min(1+rng.IntN(20), len(rest))
			if err := w.Block(fmt.Append(nil, rest[:n]), rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		out, all = append(out, r), append(all, hashes)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return out, all
}

// TestRunsAreReadBack: each hash is in its block, few others pass the filter, and
// ranges together have every block of every run.
func TestRunsAreReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := New(vfs.NewMem(), "/spill")
	runs, hashes := written(t, s, rng, 3, 5000)
	for i, r := range runs {
		var buf []byte
		for _, h := range hashes[i] {
			block := r.Find(h)
			if block < 0 {
				t.Fatalf("run %d does not have hash %x", i, h)
			}
			var err error
			if buf, err = r.Read(block, buf); err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(buf, fmt.Append(nil, h)) {
				t.Fatalf("run %d, hash %d is not in block %s", i, h, buf)
			}
		}
		passed := 0
		for range 10_000 {
			if r.filter.has(rng.Uint64() >> 8) {
				passed++
			}
		}
		if passed > 400 {
			t.Errorf("run %d: %d of 10,000 hashes pass that are not there", i, passed)
		}
	}
	ranges := Ranges(runs, 1000)
	if len(ranges) < 10 || ranges[0].Low != 0 || ranges[len(ranges)-1].High != 1<<64-1 {
		t.Fatalf("ranges %v", ranges)
	}
	for i := 1; i < len(ranges); i++ {
		if ranges[i].Low != ranges[i-1].High+1 {
			t.Fatalf("range %x follows %x", ranges[i], ranges[i-1])
		}
	}
	for i, r := range runs {
		seen := 0
		for _, x := range ranges {
			in := map[uint64]bool{}
			for b := range r.In(x) {
				buf, err := r.Read(b, nil)
				if err != nil {
					t.Fatal(err)
				}
				var hs []uint64
				for f := range bytes.FieldsSeq(bytes.Trim(buf, "[]")) {
					var h uint64
					if _, err := fmt.Sscan(string(f), &h); err != nil {
						t.Fatal(err)
					}
					hs = append(hs, h)
				}
				for _, h := range hs {
					in[h] = true
				}
			}
			for _, h := range hashes[i] {
				if x.Has(h) && !in[h] {
					t.Fatalf("run %d: hash %x of range %x is in none of its blocks", i, h, x)
				}
			}
			for h := range in {
				if x.Has(h) {
					seen++
				}
			}
		}
		if seen != len(hashes[i]) {
			t.Errorf("run %d: %d hashes in all ranges, want %d", i, seen, len(hashes[i]))
		}
	}
}

// TestFilesGoWithTheirLastRun: and the directory with the store.
func TestFilesGoWithTheirLastRun(t *testing.T) {
	fs := vfs.NewMem()
	s := New(fs, "/spill")
	if there, _ := vfs.Exists(fs, "/spill"); there {
		t.Error("the directory is there before anything is written")
	}
	runs, _ := written(t, s, rand.New(rand.NewPCG(2, 2)), 2, 100)
	written(t, s, rand.New(rand.NewPCG(3, 3)), 1, 100)
	size := s.Bytes()
	if size == 0 || s.Written() != size {
		t.Fatalf("%d bytes on disk, %d written", size, s.Written())
	}
	runs[0].Retain()
	runs[0].Release()
	runs[1].Release()
	if _, err := runs[0].Read(0, nil); err != nil || s.Bytes() != size {
		t.Fatalf("%v, %d bytes", err, s.Bytes())
	}
	runs[0].Release()
	if names, err := fs.List("/spill"); len(names) != 1 || err != nil || s.Bytes() >= size {
		t.Fatalf("files %v, %d bytes (%v)", names, s.Bytes(), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if there, _ := vfs.Exists(fs, "/spill"); there || s.Bytes() != 0 {
		t.Errorf("the directory is there: %t, %d bytes", there, s.Bytes())
	}
	if _, err := s.NewWriter(); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
