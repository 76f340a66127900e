package wal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/storage/vfs"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testOptions(fsys vfs.FS) Options {
	o := Options{FS: fsys, Dir: "j", Shard: 1, FileBytes: 16 << 10, MaxBytes: 64 << 10}
	for i := range o.Store {
		o.Store[i] = byte(i)
	}
	return o
}

func newFS(t testing.TB) *vfs.MemFS {
	m := vfs.NewMem()
	check(t, vfs.MkdirAllSync(m, "j"))
	return m
}

func openNew(t testing.TB, o Options) *Journal {
	t.Helper()
	rec, err := Recover(o, 0)
	check(t, err)
	j, err := Open(o, rec, rec.Epoch+1, 0)
	check(t, err)
	return j
}

// write appends one group with the given payloads, for partitions 0, 1, ...
func write(t testing.TB, j *Journal, payloads ...string) error {
	t.Helper()
	n := 0
	for _, p := range payloads {
		n += len(p)
	}
	var b Builder
	b.Begin(j, make([]byte, GroupSize(len(payloads), n)))
	for i, p := range payloads {
		_, err := b.Add(EntrySpec{Kind: KindBatch, Partition: uint32(i), Payload: []byte(p)})
		check(t, err)
	}
	return j.Write(b.Finish(j, 1))
}

func contents(r *Recovered) string {
	var out []string
	for _, g := range r.Groups {
		s := fmt.Sprintf("%d:", g.Sequence)
		for _, e := range g.Entries {
			if e.State == Bad {
				s += " BAD"
			} else {
				s += fmt.Sprintf(" %.8s", e.Payload)
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func wantContents(t testing.TB, o Options, after uint64, want string) *Recovered {
	t.Helper()
	r, err := Recover(o, after)
	check(t, err)
	if got := contents(r); got != want {
		t.Errorf("the journal holds %q, want %q", got, want)
	}
	return r
}

// golden reads the hex dump that was made from docs/format/journal.md by a
// program of its own.
func golden(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/journal.hex")
	check(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var size int
	_, err = fmt.Sscanf(lines[0], "size: %d", &size)
	check(t, err)
	b := make([]byte, size)
	for _, line := range lines[1:] {
		var at int
		var digits string
		_, err := fmt.Sscanf(line, "%x: %s", &at, &digits)
		check(t, err)
		row, err := hex.DecodeString(digits)
		check(t, err)
		copy(b[at:], row)
	}
	return b
}

func TestGoldenWrite(t *testing.T) {
	m := newFS(t)
	o := testOptions(m)
	j, err := Open(o, nil, 3, 6)
	check(t, err)
	var b Builder
	b.Begin(j, make([]byte, 4096))
	for _, s := range []EntrySpec{
		{Kind: KindBatch, Partition: 5, Base: 10, Last: 12, Payload: []byte("batches of five")},
		{Kind: KindCursor, Partition: 5, Payload: []byte("cursor")},
		{Kind: KindBatch, Partition: 9, Note: []byte("note"), Payload: []byte("batch of nine")},
	} {
		_, err := b.Add(s)
		check(t, err)
	}
	check(t, j.Write(b.Finish(j, 1700000000000)))
	check(t, j.Sync())
	b.Begin(j, make([]byte, 4096))
	check(t, j.Write(b.Finish(j, 1700000000123)))
	check(t, j.Close())
	got, err := vfs.ReadFile(m, "j/01-000001.mrj")
	check(t, err)
	if want := golden(t); !bytes.Equal(got, want) {
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Fatalf("%d bytes, want %d; first difference at %d", len(got), len(want), i)
			}
		}
	}
}

func TestGoldenRead(t *testing.T) {
	m := newFS(t)
	f, err := m.Create("j/01-000001.mrj")
	check(t, err)
	_, err = f.Write(golden(t))
	check(t, err)
	r := wantContents(t, testOptions(m), 0, "7: batches  cursor batch of, 8:")
	g := r.Groups[0]
	e := g.Entries[0]
	if r.Mark != 7 || r.Last != 8 || r.Epoch != 3 || g.TimeMs != 1700000000000 || e.Partition != 5 || e.Base != 10 || e.Last != 12 ||
		g.Entries[1].Kind != KindCursor || string(g.Entries[2].Note) != "note" || len(g.Damage) > 0 || len(r.Damage) > 0 {
		t.Errorf("read %+v of %+v", g, r)
	}
}

func TestOtherOwnersAndVersionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(b []byte, o *Options)
		want   error
	}{
		{"another store", func(_ []byte, o *Options) { o.Store[0]++ }, ErrNotJournal},
		{"a newer version", func(b []byte, _ *Options) {
			b[9] = 2
			h := sum(0, b[:60])
			copy(b[60:], []byte{byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)})
		}, ErrVersion},
	} {
		m := newFS(t)
		o := testOptions(m)
		b := golden(t)
		c.change(b, &o)
		f, err := m.Create("j/01-000001.mrj")
		check(t, err)
		_, err = f.Write(b)
		check(t, err)
		if _, err := Recover(o, 0); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

func TestFilesAreRecycled(t *testing.T) {
	m := newFS(t)
	o := testOptions(m)
	j := openNew(t, o)
	for i := range 100 {
		check(t, write(t, j, fmt.Sprintf("group %d", i+1)))
		check(t, j.Sync())
		if i%4 == 3 {
			j.Recycle(uint64(i))
		}
	}
	if total, _ := j.Bytes(); total > 64<<10 {
		t.Errorf("the journal grew to %d bytes although files were free", total)
	}
	check(t, j.Close())
	// What is left of the older groups is not taken for anything.
	r := wantContents(t, o, 97, "98: group 98, 99: group 99, 100: group 10")
	if r.Mark != 99 {
		t.Errorf("mark %d, want 99", r.Mark)
	}
}

func TestFullAndLargeGroups(t *testing.T) {
	m := newFS(t)
	o := testOptions(m)
	j := openNew(t, o)
	n := 0
	var err error
	for ; n < 100; n++ {
		if err = write(t, j, "x"); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("after %d groups: %v, want ErrFull", n, err)
	}
	next := j.Next()
	if int(next) != n+1 {
		t.Errorf("the next sequence is %d after %d groups", next, n)
	}
	// A refused group can be written once there is room; nothing was lost.
	j.Recycle(uint64(n))
	check(t, write(t, j, "after"))
	// A group larger than any file gets one of its own as soon as the others
	// are not needed.
	large := strings.Repeat("large", 40<<10)
	err = write(t, j, large)
	for i := 0; errors.Is(err, ErrFull) && i < 3; i++ {
		j.Recycle(j.Next() - 1)
		err = write(t, j, large)
	}
	check(t, err)
	check(t, j.Sync())
	check(t, j.Close())
	wantContents(t, o, next, fmt.Sprintf("%d: largelar", next+1))
}

// Bytes of a group inside a record are never taken for a group.
func TestGroupInsideRecord(t *testing.T) {
	m := newFS(t)
	o := testOptions(m)
	other := o
	other.Store[3]++
	var b Builder
	fake, err := Open(Options{FS: newFS(t), Dir: "j", Store: other.Store, Shard: 1, FileBytes: 16 << 10, MaxBytes: 64 << 10}, nil, 9, 50)
	check(t, err)
	b.Begin(fake, make([]byte, 4096))
	_, err = b.Add(EntrySpec{Kind: KindBatch, Payload: []byte("fake")})
	check(t, err)
	group := b.Finish(fake, 1)
	j := openNew(t, o)
	// The copy begins on a 4096 bound of the file: header 72 + 48 before it.
	payload := strings.Repeat("p", 4096-72-48) + string(group)
	check(t, write(t, j, payload))
	check(t, j.Sync())
	check(t, j.Close())
	// Damage both headers of the real group, so that its inside is searched.
	f, err := m.OpenReadWrite("j/01-000001.mrj")
	check(t, err)
	_, err = f.WriteAt([]byte("XXXX"), 4096)
	check(t, err)
	size := GroupSize(1, len(payload))
	_, err = f.WriteAt([]byte("XXXX"), int64(4096+size-72))
	check(t, err)
	wantContents(t, o, 0, "")
}

// Each piece of a group may be damaged alone; only payloads cost their entry.
func TestDamage(t *testing.T) {
	build := func() *vfs.MemFS {
		m := newFS(t)
		j := openNew(t, testOptions(m))
		for i := range 3 {
			check(t, write(t, j, fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i), fmt.Sprintf("c%d", i)))
			check(t, j.Sync())
		}
		check(t, j.Close())
		return m
	}
	const all = "1: a0 b0 c0, 2: a1 b1 c1, 3: a2 b2 c2"
	entry := func(i int) int64 { return 8192 + 72 + int64(i)*56 }
	for _, c := range []struct {
		what string
		at   int64
		bits byte
		want string
	}{
		{"file header", 5, 0x10, all},
		{"group header", 8192 + 17, 0x10, all},
		{"copy of the group header", 12288 - 60, 0x10, all},
		{"entry header", entry(1) + 9, 0x10, all},
		{"directory", 8192 + 72 + 3*56 + 10, 0x10, all},
		{"one bit of a payload", entry(1) + 48, 0x10, all},
		{"payload", entry(1) + 48, 0x14, "1: a0 b0 c0, 2: a1 BAD c1, 3: a2 b2 c2"},
		{"first payload", entry(0) + 49, 0x81, "1: a0 b0 c0, 2: BAD b1 c1, 3: a2 b2 c2"},
		{"padding", entry(0) + 52, 0x10, all},
	} {
		m := build()
		f, err := m.OpenReadWrite("j/01-000001.mrj")
		check(t, err)
		var b [1]byte
		_, err = f.ReadAt(b[:], c.at)
		check(t, err)
		b[0] ^= c.bits
		_, err = f.WriteAt(b[:], c.at)
		check(t, err)
		r, err := Recover(testOptions(m), 0)
		check(t, err)
		if got := contents(r); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		reported := len(r.Damage) > 0
		for _, g := range r.Groups {
			reported = reported || len(g.Damage) > 0
			for _, e := range g.Entries {
				reported = reported || e.State == Bad
			}
		}
		if !reported && c.what != "padding" {
			t.Errorf("%s: the damage is not reported", c.what)
		}
	}
}

// TestMend: one wrong bit of a small entry is found, wherever it is; more are not
// taken for one.
func TestMend(t *testing.T) {
	content := make([]byte, maxMended)
	for i := range content {
		content[i] = byte(i * 7)
	}
	want := sum(0, content)
	for bit := range len(content) * 8 {
		bad := bytes.Clone(content)
		bad[bit/8] ^= 1 << (bit % 8)
		if got, ok := mend(bad, want); !ok || !bytes.Equal(got, content) {
			t.Fatalf("bit %d is not mended", bit)
		}
		other := (bit*31 + 5) % (len(content) * 8)
		if bad[other/8] ^= 1 << (other % 8); other == bit {
			continue
		}
		if _, ok := mend(bad, want); ok {
			t.Fatalf("bits %d and %d are taken for one", bit, other)
		}
	}
	if _, ok := mend(append(content, 1), sum(0, append(content, 0))); ok {
		t.Error("a large entry is mended")
	}
}

// What a failed fsync leaves is not tried again.
func TestFailedSyncIsFinal(t *testing.T) {
	fsys := vfs.NewFault(newFS(t), nil)
	j := openNew(t, testOptions(fsys))
	check(t, write(t, j, "x"))
	fsys.SetInjector(&vfs.Nth{Kinds: vfs.OpSync})
	if err := j.Sync(); err == nil {
		t.Fatal("no error")
	}
	if err := j.Sync(); !errors.Is(err, ErrFailed) {
		t.Errorf("second sync: %v, want ErrFailed", err)
	}
	if err := write(t, j, "y"); !errors.Is(err, ErrFailed) {
		t.Errorf("write after it: %v, want ErrFailed", err)
	}
}

func FuzzRecover(f *testing.F) {
	f.Add(golden(f)[4096:])
	f.Fuzz(func(t *testing.T, b []byte) {
		m := newFS(t)
		file, err := m.Create("j/01-000001.mrj")
		check(t, err)
		whole := append(golden(t)[:4096:4096], b...)
		_, err = file.Write(whole)
		check(t, err)
		if _, err := Recover(testOptions(m), 0); err != nil && !errors.Is(err, ErrVersion) {
			t.Errorf("recovery failed: %v", err)
		}
	})
}
