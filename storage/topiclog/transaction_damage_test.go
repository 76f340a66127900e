package topiclog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// committedBeyondDamage reads the committed values of a partition and the offsets
// that damage took.
func committedBeyondDamage(t testing.TB, s *topiclog.Store, id topiclog.PartitionID) (values []string, lost [][2]int64, next, end int64) {
	t.Helper()
	st, err := s.State(id)
	check(t, err)
	var d record.Decoder
	defer d.Close()
	for next = st.Start; ; {
		l, err := s.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: next, Isolation: topiclog.Committed})
		var ce *topiclog.CorruptError
		if errors.As(err, &ce) {
			lost = append(lost, [2]int64{ce.From, ce.To})
			next = ce.To + 1
			continue
		}
		check(t, err)
		if len(l.Chunks) == 0 {
			next = l.NextOffset
			l.Release()
			return values, lost, next, st.HighWatermark
		}
		for _, c := range l.Chunks {
			for len(c) > 0 {
				var b record.Batch
				b, c, err = record.Split(c)
				check(t, err)
				if b.Attributes.Control() {
					continue
				}
				it, err := d.Records(b)
				check(t, err)
				for r := (record.Record{}); it.Next(&r); {
					values = append(values, string(r.Value))
				}
				check(t, it.Err())
			}
		}
		next = l.NextOffset
		l.Release()
	}
}

// TestDamagedTransactions: a flipped bit of the journal, wherever it is, also in
// the marker that ends a transaction, makes no aborted record visible, hides no
// committed one but those it hit, and holds up no reader. Wider damage may cost the
// marker: then what is hidden is reported, and only producers of the older protocol,
// whose epoch does not say where a transaction ends, can have two taken for one.
func TestDamagedTransactions(t *testing.T) {
	every := int64(509)
	wide := int64(31)
	if os.Getenv("MILLRACE_TORTURE") != "" {
		every, wide = 1, 1
	}
	for _, bump := range []bool{true, false} {
		for _, crash := range []bool{true, false} {
			t.Run(fmt.Sprintf("bump=%t,crash=%t", bump, crash), func(t *testing.T) {
				damagedTransactions(t, bump, crash, every, 0)
			})
			t.Run(fmt.Sprintf("wide,bump=%t,crash=%t", bump, crash), func(t *testing.T) {
				damagedTransactions(t, bump, crash, 8*wide, 3)
			})
		}
	}
}

// unflushed keeps all of a small history in the journal.
func unflushed(fsys vfs.FS) topiclog.Options {
	o := damageOptions(fsys)
	o.JournalFileBytes, o.JournalMaxBytes = 128<<10, 256<<10
	return o
}

func damagedTransactions(t *testing.T, bump, crash bool, every int64, more int) {
	mem := vfs.NewMem()
	s := open(t, unflushed(mem))
	part := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	a, b, c := newTxnProducer(t, s, "a", bump), newTxnProducer(t, s, "b", bump), newTxnProducer(t, s, "c", bump)
	var want []string
	offsets := map[string]int64{}
	put := func(p *txnProducer, value string) {
		check(t, p.put(part, value))
		if offsets[value] = p.last; !strings.Contains(value, "aborted") {
			want = append(want, value)
		}
	}
	// Each producer ends with another outcome, after others before it.
	put(a, "a1 aborted")
	check(t, a.end(false))
	put(a, "a2")
	put(b, "b1")
	check(t, b.end(true))
	check(t, a.end(true))
	put(b, "b2 aborted")
	put(c, "c1 aborted")
	check(t, c.end(false))
	check(t, b.end(false))
	put(a, "a3")
	check(t, a.end(true))
	put(c, "c2")
	check(t, c.end(true))
	put(b, "b3 aborted")
	check(t, b.end(false))
	put(a, "a4 aborted") // it never ends
	var fsys *vfs.MemFS
	if crash {
		fsys = mem.CrashClone(vfs.CrashOptions{})
		check(t, s.Close())
	} else {
		check(t, s.Close())
		fsys = mem.CrashClone(vfs.CrashOptions{})
	}
	for _, path := range files(t, fsys, "data") {
		if !strings.Contains(path, "journal") {
			continue
		}
		content, err := vfs.ReadFile(fsys, path)
		check(t, err)
		used := int64(len(strings.TrimRight(string(content), "\x00")))
		for bit := int64(0); bit < used*8; bit += every {
			// Nothing reads long runs of zeros.
			if at := int(bit / 8); len(bytes.Trim(content[max(0, at-16):min(len(content), at+16)], "\x00")) == 0 {
				continue
			}
			clone := fsys.CrashClone(vfs.CrashOptions{})
			flip(t, clone, path, bit)
			for i := range more {
				flip(t, clone, path, min(bit+int64(3*i+2), int64(len(content))*8-1))
			}
			what := fmt.Sprintf("bit %d of byte %d of %s", bit%8, bit/8, path)
			s, err := topiclog.Open(unflushed(clone))
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			named := s.Status().Recovery.Damage
			// Who goes on with the id of the transaction without an end aborts it.
			next := newTxnProducer(t, s, "a", bump)
			check(t, next.put(part, "last"))
			check(t, next.end(true))
			got, lost, reached, end := committedBeyondDamage(t, s, part)
			if reached != end {
				t.Errorf("%s: readers of committed records wait at %d of %d", what, reached, end)
			}
			if more > 0 && !bump {
				want = nil
			}
			for _, value := range append(slices.Clone(want), "last") {
				hit := slices.ContainsFunc(lost, func(x [2]int64) bool { return x[0] <= offsets[value] && offsets[value] <= x[1] }) && value != "last"
				hit = hit || more > 0 && value != "last" && slices.ContainsFunc(named, func(x topiclog.Damage) bool {
					return x.Topic == "t" && x.From <= offsets[value] && offsets[value] <= x.To
				})
				if !slices.Contains(got, value) && !hit {
					t.Errorf("%s: %q is not there; lost are %v of %v; %v", what, value, lost, offsets, named)
				}
			}
			for _, value := range got {
				if strings.Contains(value, "aborted") && (bump || more == 0) {
					t.Errorf("%s: %q can be read", what, value)
				}
			}
			check(t, s.Close())
			if t.Failed() {
				t.FailNow()
			}
		}
	}
}
