package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/storage/vfs"
)

// once is a body that is read a single time.
type once struct {
	*state.Sections
	read     int
	released bool
}

func (o *once) WriteTo(w io.Writer) (int64, error) {
	o.read++
	return o.Sections.WriteTo(w)
}

func (o *once) Release() { o.released = true }

// checkpointOf writes checkpoint n with two state files whose parts say whose they are.
func checkpointOf(t *testing.T, s Store, scope ledger.Scope, n uint64) {
	t.Helper()
	m := &Manifest{Number: n, Scope: scope, Stages: []Stage{{Name: "stage", Blobs: []Blob{
		{Name: "s0-0", Groups: state.Range{From: 0, To: 128}}, {Name: "s0-1", Groups: state.Range{From: 128, To: 256}}}}}}
	var bodies []Body
	for i := range 2 {
		p := new(state.Payload)
		for part := range 3 {
			p.Cut()
			p.Append(fmt.Appendf(nil, "checkpoint %d, file %d, part %d;", n, i, part))
		}
		bodies = append(bodies, &once{Sections: state.NewSections([]state.Section{{Path: "sums/group", Kind: "GroupAggregate", Body: p}})})
	}
	must(t, s.Write(context.Background(), n, Files(m, bodies)))
	for i, b := range bodies {
		if o := b.(*once); o.read != 1 {
			t.Errorf("file %d of checkpoint %d was read %d times", i, n, o.read)
		}
	}
	for _, x := range m.Stages[0].Blobs {
		b, err := s.Read(context.Background(), n, x.Name)
		must(t, err)
		if int64(len(b)) != x.Bytes {
			t.Errorf("file %s has %d bytes, the manifest says %d", x.Name, len(b), x.Bytes)
		}
	}
}

// gather is a take that notes what it got of the candidate that was tried last.
func gather(got *string) func(c *Candidate) error {
	return func(c *Candidate) error {
		*got = ""
		for i := range c.Stages[0].Blobs {
			err := c.ReadState(&c.Stages[0].Blobs[i], func(s *state.Section, part []byte) error {
				*got += string(part)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// TestDamagedStateFiles: of the newest checkpoint whose files all hold everything is taken,
// and what is wrong with a newer one is said with file, section and part.
func TestDamagedStateFiles(t *testing.T) {
	ctx := context.Background()
	scope := ledger.Scope{Job: connector.UUID{1}}
	book := openBook(t, scope)
	fs := vfs.NewMem()
	s := NewLocalStore(fs, "/cp")
	must(t, s.Open(ctx, 1))
	checkpointOf(t, s, scope, 1)
	checkpointOf(t, s, scope, 2)
	all := func(n int) string {
		var b strings.Builder
		for i := range 6 {
			fmt.Fprintf(&b, "checkpoint %d, file %d, part %d;", n, i/3, i%3)
		}
		return b.String()
	}
	var got string
	r, err := Restore(ctx, s, book, 0, gather(&got))
	must(t, err)
	if r.Manifest.Number != 2 || got != all(2) {
		t.Fatalf("checkpoint %d: %s", r.Manifest.Number, got)
	}
	whole, err := vfs.ReadFile(fs, "/cp/c2/s0-1")
	must(t, err)
	put := func(b []byte) {
		t.Helper()
		f, err := fs.Create("/cp/c2/s0-1")
		must(t, err)
		_, err = f.Write(b)
		must(t, err)
		must(t, f.Close())
	}
	flipped := bytes.Replace(whole, []byte("file 1, part 1"), []byte("file 1, part 7"), 1)
	other, err := vfs.ReadFile(fs, "/cp/c1/s0-1")
	must(t, err)
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"a byte has changed", flipped, `state file s0-1: corrupt saved state: section "sums/group", part 2, at byte`},
		{"it is cut off", whole[:len(whole)-60], `state file s0-1: corrupt saved state: section "sums/group", part 3, at byte`},
		{"it is of another checkpoint", other, `state file s0-1: corrupt saved state: it is not the one that the manifest names`},
		{"it is gone", nil, `state file s0-1: no such checkpoint`},
	} {
		if c.b == nil {
			must(t, fs.Remove("/cp/c2/s0-1"))
		} else {
			put(c.b)
		}
		r, err := Restore(ctx, s, book, 0, gather(&got))
		must(t, err)
		if r.Manifest.Number != 1 || got != all(1) || len(r.Newer) != 1 {
			t.Fatalf("%s: checkpoint %d: %s", c.name, r.Manifest.Number, got)
		}
		must(t, book.Append(ctx, &ledger.Publishing{Epoch: 1, Manifest: 2, IDs: ids("a")}))
		var abandoned *AbandonedError
		if _, err = Restore(ctx, s, book, 0, gather(&got)); !errors.As(err, &abandoned) || !strings.Contains(err.Error(), "checkpoint 2: "+c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		book = openBook(t, scope)
	}
	// What the operators say is no damage.
	refused := errors.New("refused")
	if _, err := Restore(ctx, s, book, 0, func(*Candidate) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

// TestCheckpointsOfVersion1 are read, and written anew as of the newest version.
func TestCheckpointsOfVersion1(t *testing.T) {
	ctx := context.Background()
	scope := ledger.Scope{Job: connector.UUID{1}}
	s := NewMemStore().Handle()
	must(t, s.Open(ctx, 1))
	// Written as docs/format/checkpoint.md has it.
	file := append([]byte{1, 1, 'p', 4}, "Sort\x00\x00\x00\x00\x00\x00\x00\x07\x03abc"...)
	file = append(file, sumOf(file)...)
	m := &Manifest{Number: 1, Scope: scope, Stages: []Stage{{Name: "stage", Blobs: []Blob{{Name: "s0-0", Groups: state.Range{From: 0, To: 256}, Bytes: int64(len(file)), Hash: uint64(checksum(file))}}}}}
	b := m.Encode()
	b[5] = 1
	// A crc32c in place of the hash.
	at := bytes.Index(b, []byte("s0-0")) + 4 + 4
	b = slices.Delete(b[:len(b)-4], at, at+4)
	b = append(b, sumOf(b)...)
	must(t, s.Write(ctx, 1, []File{{Name: "s0-0", Data: file}, {Name: ManifestFile, Data: b}}))
	var got string
	r, err := Restore(ctx, s, openBook(t, scope), 0, gather(&got))
	must(t, err)
	if r.Manifest.Version != 1 || got != "abc" {
		t.Fatalf("version %d, %q", r.Manifest.Version, got)
	}
	file[len(file)-5] ^= 1
	must(t, s.Write(ctx, 1, []File{{Name: "s0-0", Data: file}, {Name: ManifestFile, Data: b}}))
	if _, err := Restore(ctx, s, openBook(t, scope), 0, gather(&got)); !errors.Is(err, state.ErrCorrupt) || !strings.Contains(err.Error(), "state file s0-0") {
		t.Errorf("damaged: %v", err)
	}
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func sumOf(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, checksum(b)) }
