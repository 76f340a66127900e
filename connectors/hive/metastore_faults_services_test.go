//go:build services

package hive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

// lostCalls loses each call, and each answer, of opening and announcing: once,
// which nobody notices, and twice, which is an error; the next try mends it.
func lostCalls(t *testing.T, l *lake) {
	p := newProxy(t, l.Metastore)
	n := 0
	for _, method := range []string{"get_table_req", "create_table", "get_partitions_by_names", "add_partitions_req", "alter_partitions_with_environment_context"} {
		for _, answer := range []bool{false, true} {
			for _, times := range []int{1, 2} {
				n++
				w := l.world(fmt.Sprintf("lost%d", n), p.URI())
				p.Lose("", false, 0)
				opening := method == "create_table"
				if opening {
					p.Lose(method, answer, times)
				}
				s, err := w.Open(context.Background(), conntest.OwnerOf(1, 1))
				if opening {
					if (err != nil) != (times == 2) || p.Lost() != times {
						t.Fatalf("%s lost %d times (answer %v): %v", method, times, answer, err)
					}
					if err != nil {
						s, err = w.Open(context.Background(), conntest.OwnerOf(1, 1))
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				parts := write(t, s, 1, 0, 10)
				if method == "alter_partitions_with_environment_context" {
					announce(t, s, parts...)
					write(t, s, 2, 100, 10)
				}
				if !opening {
					p.Lose(method, answer, times)
					for _, err := range s.(*Sink).CommitPartitions(context.Background(), parts) {
						var ce *metastore.CallError
						if times == 2 && (!errors.As(err, &ce) || !ce.Sent) || times == 1 && err != nil {
							t.Fatalf("%s lost %d times (answer %v): %v", method, times, answer, err)
						}
					}
					if p.Lost() != times {
						t.Fatalf("%s was lost %d times, want %d", method, p.Lost(), times)
					}
				}
				announce(t, s, parts...)
				rows := 5
				if method == "alter_partitions_with_environment_context" {
					rows = 10
				}
				w.wantPartitions(t, map[string]int{parts[0]: rows, parts[1]: rows})
				s.Close()
			}
		}
	}
}

// hung: the metastore takes calls and does not answer.
func hung(t *testing.T, l *lake) {
	w := l.world("hung", l.URI)
	w.open(t, 1)
	var s connector.Sink
	patiently(t, func() (err error) {
		s, err = w.conn.OpenSink(context.Background(), w.table(conntest.Columns(), []int{2}, map[string]string{keyTimeout: "1 s"}), conntest.OwnerOf(1, 2))
		return err
	})
	defer s.Close()
	parts := write(t, s, 1, 0, 10)
	l.Pause()
	for range 2 {
		var ce *metastore.CallError
		if err := s.(*Sink).CommitPartition(context.Background(), parts[0]); !errors.As(err, &ce) {
			t.Errorf("got %v, want a call without an answer", err)
		}
	}
	l.Resume()
	patiently(t, func() error { return errors.Join(s.(*Sink).CommitPartitions(context.Background(), parts)...) })
	w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
}

// patiently tries until there is no error, as the runtime does.
func patiently(t testing.TB, f func() error) {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-late.C:
			t.Fatal(err)
		}
	}
}

// killed: while the metastore is away files are published; it catches up.
func killed(t *testing.T, l *lake) {
	w := l.world("killed", l.URI)
	s := w.open(t, 1)
	first := write(t, s, 1, 0, 10)
	announce(t, s, first[0])
	l.Kill()
	second := write(t, s, 2, 100, 10)
	for _, err := range s.CommitPartitions(context.Background(), second) {
		var ce *metastore.CallError
		if !errors.As(err, &ce) {
			t.Errorf("got %v, want a call without an answer", err)
		}
	}
	if n := len(w.Visible(t)); n != 20 {
		t.Errorf("%d rows are visible, want 20", n)
	}
	if _, err := os.Stat(filepath.Join(w.dir(), first[1], "_SUCCESS")); err == nil {
		t.Error("a partition that is not registered has its success file")
	}
	if err := l.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	patiently(t, func() error { return errors.Join(s.CommitPartitions(context.Background(), second)...) })
	w.wantPartitions(t, map[string]int{first[0]: 10, first[1]: 10})
}
