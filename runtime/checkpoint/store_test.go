package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/vfs"
)

func files(s string) []File {
	return []File{{Name: ManifestFile, Data: []byte(s)}, {Name: "s0-0", Data: []byte("state " + s)}}
}

func TestStoresFenceLowerEpochs(t *testing.T) {
	ctx := context.Background()
	mem, fs := NewMemStore(), vfs.NewMem()
	for name, open := range map[string]func() Store{
		"mem":   func() Store { return mem.Handle() },
		"local": func() Store { return NewLocalStore(fs, "/data/cp") },
	} {
		t.Run(name, func(t *testing.T) {
			old, cur := open(), open()
			must(t, old.Open(ctx, 1))
			must(t, old.Write(ctx, 1, files("one")))
			must(t, cur.Open(ctx, 2))
			if err := old.Write(ctx, 2, files("zombie")); !errors.Is(err, connector.ErrFenced) {
				t.Fatalf("a lower epoch wrote: %v", err)
			}
			must(t, cur.Write(ctx, 2, files("two")))
			if err := open().Open(ctx, 1); !errors.Is(err, connector.ErrFenced) {
				t.Fatalf("a lower epoch opened the store: %v", err)
			}
			ns, err := cur.List(ctx)
			must(t, err)
			if !slices.Equal(ns, []uint64{1, 2}) {
				t.Fatalf("checkpoints %v, want 1 and 2", ns)
			}
			b, err := cur.Read(ctx, 2, ManifestFile)
			must(t, err)
			if string(b) != "two" {
				t.Fatalf("manifest %q", b)
			}
			must(t, cur.Remove(ctx, 1))
			must(t, cur.Remove(ctx, 1))
			if _, err := cur.Read(ctx, 1, ManifestFile); !errors.Is(err, ErrNotExist) {
				t.Fatalf("reading a removed checkpoint: %v", err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLocalStoreSurvivesACrashAtEachOperation writes three checkpoints and
// removes one, with a fault at the i-th operation and a crash there: what was
// acknowledged is whole, and no checkpoint is ever half there.
func TestLocalStoreSurvivesACrashAtEachOperation(t *testing.T) {
	ctx := context.Background()
	for nth := 0; ; nth++ {
		mem := vfs.NewMem()
		k, crashed := 0, false
		fault := vfs.NewFault(mem, vfs.InjectorFunc(func(vfs.Op) error {
			k++
			if k > nth {
				crashed = true
				return errors.New("crash")
			}
			return nil
		}))
		s := NewLocalStore(fault, "/cp")
		acked := map[uint64]bool{}
		err := s.Open(ctx, 1)
		for n := uint64(1); err == nil && n <= 3; n++ {
			if err = s.Write(ctx, n, files(fmt.Sprint(n))); err == nil {
				acked[n] = true
			}
		}
		if err == nil {
			delete(acked, 1)
			err = s.Remove(ctx, 1)
		}
		after := NewLocalStore(mem.CrashClone(vfs.CrashOptions{}), "/cp")
		must(t, after.Open(ctx, 2))
		ns, lerr := after.List(ctx)
		must(t, lerr)
		for n := range acked {
			if !slices.Contains(ns, n) {
				t.Fatalf("operation %d: acknowledged checkpoint %d is gone", nth, n)
			}
		}
		for _, n := range ns {
			for _, f := range files(fmt.Sprint(n)) {
				b, rerr := after.Read(ctx, n, f.Name)
				if rerr != nil || string(b) != string(f.Data) {
					t.Fatalf("operation %d: checkpoint %d has %s = %q, %v", nth, n, f.Name, b, rerr)
				}
			}
		}
		if !crashed {
			if nth < 10 {
				t.Fatalf("only %d operations", nth)
			}
			return
		}
	}
}

func openBook(t *testing.T, scope ledger.Scope) *ledger.Book {
	t.Helper()
	l, err := ledger.OpenLedger(context.Background(), ledger.NewMemStore())
	must(t, err)
	return l.Book(scope)
}

func nothing(*Candidate) error { return nil }

func TestRestoreTakesAnOlderCheckpointOnlyIfNothingAboveWasPublished(t *testing.T) {
	ctx := context.Background()
	scope := ledger.Scope{Job: connector.UUID{1}}
	book := openBook(t, scope)
	s := NewMemStore().Handle()
	must(t, s.Open(ctx, 1))
	for n := uint64(1); n <= 2; n++ {
		m := Manifest{Number: n, Scope: scope}
		must(t, s.Write(ctx, n, []File{{Name: ManifestFile, Data: m.Encode()}}))
	}
	must(t, s.Write(ctx, 3, []File{{Name: ManifestFile, Data: []byte("torn")}}))
	r, err := Restore(ctx, s, book, 0, nothing)
	must(t, err)
	if r.Manifest.Number != 2 || r.Next != 4 || !slices.Equal(r.Newer, []uint64{3}) {
		t.Fatalf("restored %d, next %d, newer %v; want 2, 4, [3]", r.Manifest.Number, r.Next, r.Newer)
	}
	must(t, book.Append(ctx, &ledger.Publishing{Epoch: 1, Manifest: 3, IDs: ids("a")}))
	var abandoned *AbandonedError
	if _, err = Restore(ctx, s, book, 0, nothing); !errors.As(err, &abandoned) || abandoned.Restorable != 2 || len(abandoned.Above) != 1 {
		t.Fatalf("restoring below a publishing: %v", err)
	}
	if r, err = Restore(ctx, s, book, 1, nothing); err != nil || r.Manifest.Number != 1 || r.Next != 4 || !slices.Equal(r.Newer, []uint64{2, 3}) {
		t.Fatalf("discarding after 1: %+v, %v", r, err)
	}
	if _, err = Restore(ctx, s, book, 3, nothing); !errors.Is(err, ErrNotExist) {
		t.Fatalf("discarding after what cannot be read: %v", err)
	}
	must(t, s.Remove(ctx, 3))
	must(t, s.Remove(ctx, 2))
	must(t, s.Remove(ctx, 1))
	if _, err = Restore(ctx, s, book, 0, nothing); !errors.As(err, &abandoned) || abandoned.Restorable != 0 {
		t.Fatalf("restoring nothing below a publishing: %v", err)
	}
}
