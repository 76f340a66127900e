//go:build services

package hive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

// TestTwoMetastores: a table names both metastores of one database. Each way in which one
// or both of them are away costs at most a try; partitions are registered once.
func TestTwoMetastores(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	db, err := services.StartDerby(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Kill)
	warehouse := "file://" + t.TempDir()
	var both [2]*services.Metastore
	for i := range both {
		if both[i], err = services.StartMetastore(ctx, services.MetastoreOptions{Dir: t.TempDir(), Warehouse: warehouse, Database: db}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the end of a metastore's log:\n%s", both[i].Log())
			}
			both[i].Kill()
		})
	}
	first, second := both[0], both[1]
	c := metastore.New(metastore.Options{Addresses: []string{second.Address}})
	t.Cleanup(func() { c.Close() })
	l := &lake{Metastore: second, client: c}
	uris := first.URI + "," + second.URI

	t.Run("dies with a call under way", func(t *testing.T) { diesUnderACall(t, l, first) })
	t.Run("hangs", func(t *testing.T) {
		w := l.world("hanging", uris)
		s := openWith(t, w, map[string]string{keyTimeout: "5 s", keyConnect: "5 s"})
		parts := write(t, s, 1, 0, 10)
		announce(t, s, parts[0])
		first.Pause()
		defer first.Resume()
		var ce *metastore.CallError
		if err := s.CommitPartition(ctx, parts[1]); !errors.As(err, &ce) || !ce.Sent {
			t.Errorf("got %v, want a call without an answer", err)
		}
		announce(t, s, parts[1])
		w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
		// A job that starts meanwhile.
		w = l.world("begun", uris)
		s = openWith(t, w, map[string]string{keyConnect: "2 s"})
		announce(t, s, write(t, s, 1, 0, 10)...)
		w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
	})
	t.Run("dies between two calls", func(t *testing.T) {
		w := l.world("between", uris)
		s := w.open(t, 1)
		parts := write(t, s, 1, 0, 10)
		announce(t, s, parts[0])
		first.Kill()
		announce(t, s, parts[1])
		w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
	})
	t.Run("is dead at the start", func(t *testing.T) {
		w := l.world("started", uris)
		s := w.open(t, 1)
		parts := write(t, s, 1, 0, 10)
		announce(t, s, parts...)
		w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
	})
	t.Run("both are dead, then one is back", func(t *testing.T) {
		w := l.world("away", uris)
		s := w.open(t, 1)
		parts := write(t, s, 1, 0, 10)
		announce(t, s, parts[0])
		second.Kill()
		late := write(t, s, 2, 100, 10)
		for _, err := range s.CommitPartitions(ctx, late) {
			if !errors.Is(err, metastore.ErrUnavailable) || !strings.Contains(err.Error(), first.Address) || !strings.Contains(err.Error(), second.Address) {
				t.Errorf("got %v, want that neither can be reached", err)
			}
		}
		if n := len(w.Visible(t)); n != 20 {
			t.Errorf("%d rows are visible, want 20: files do not wait for the metastore", n)
		}
		if err := second.Start(ctx); err != nil {
			t.Fatal(err)
		}
		patiently(t, func() error { return errors.Join(s.CommitPartitions(ctx, late)...) })
		w.wantPartitions(t, map[string]int{parts[0]: 10, parts[1]: 10})
	})
}

// openWith opens a sink with further options.
func openWith(t *testing.T, w *realWorld, with map[string]string) *Sink {
	t.Helper()
	var s connector.Sink
	patiently(t, func() (err error) {
		s, err = w.conn.OpenSink(context.Background(), w.table(conntest.Columns(), []int{2}, with), conntest.OwnerOf(1, 1))
		return err
	})
	t.Cleanup(func() { s.Close() })
	return s.(*Sink)
}

// diesUnderACall loses a call, or the answer to it, at the first metastore: the second
// one is asked in the same try, and knows what the first has done.
func diesUnderACall(t *testing.T, l *lake, first *services.Metastore) {
	p := newProxy(t, first)
	for i, method := range []string{"add_partitions_req", "alter_partitions_with_environment_context"} {
		for _, answer := range []bool{false, true} {
			w := l.world(fmt.Sprintf("cut%d%t", i, answer), p.URI()+","+l.URI)
			s := w.open(t, 1)
			parts := write(t, s, 1, 0, 10)
			rows := 5
			if i == 1 {
				announce(t, s, parts...)
				write(t, s, 2, 100, 10)
				rows = 10
			}
			p.Lose(method, answer, 1)
			announce(t, s, parts...)
			if p.Lost() != 1 {
				t.Errorf("%s was lost %d times, want once", method, p.Lost())
			}
			w.wantPartitions(t, map[string]int{parts[0]: rows, parts[1]: rows})
			s.Close()
		}
	}
}
