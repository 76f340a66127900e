package logtopic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

func offsetsOf(ps []connector.Position) []int64 {
	var out []int64
	for _, p := range ps {
		out = append(out, p.Offset)
	}
	return out
}

func TestWhereReadingStartsAndEnds(t *testing.T) {
	w := newWorld(t)
	tp := w.topic("t", 3, nil)
	// Offsets 0 to 9 at 1000 to 1009 ms, of which 0 to 2 are removed; partition
	// 2 is empty.
	for p := range 2 {
		for range 10 / 5 {
			w.put(tp.Partitions[p], record.None, `{"id":0}`, `{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`)
		}
	}
	_, err := w.store.DeleteRecords(ctx, tp.Partitions[0].ID, 3)
	check(t, err)
	check(t, w.store.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: tp.Partitions[0].ID, Offset: 7}}))
	cases := []struct {
		with  []string
		start []int64
		end   []int64
	}{
		{[]string{"scan.startup.mode", scanrange.Earliest}, []int64{3, 0, 0}, nil},
		{[]string{"scan.startup.mode", scanrange.Latest}, []int64{10, 10, 0}, nil},
		{[]string{"scan.startup.mode", scanrange.Group, "properties.group.id", "g"}, []int64{7, 0, 0}, nil},
		{[]string{"scan.startup.mode", scanrange.Group, "properties.group.id", "other"}, []int64{3, 0, 0}, nil},
		{[]string{"scan.startup.mode", scanrange.Timestamp, "scan.startup.timestamp-millis", "1004"}, []int64{4, 4, 0}, nil},
		{[]string{"scan.startup.mode", scanrange.Timestamp, "scan.startup.timestamp-millis", "0"}, []int64{3, 0, 0}, nil},
		{[]string{"scan.startup.mode", scanrange.Timestamp, "scan.startup.timestamp-millis", "5000"}, []int64{10, 10, 0}, nil},
		{[]string{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:5"}, []int64{5, 0, 0}, nil},
		{[]string{"scan.bounded.mode", scanrange.Latest}, []int64{3, 0, 0}, []int64{10, 10, 0}},
		{[]string{"scan.bounded.mode", scanrange.Group, "properties.group.id", "g"}, []int64{3, 0, 0}, []int64{7, 0, 0}},
		{[]string{"scan.bounded.mode", scanrange.Timestamp, "scan.bounded.timestamp-millis", "1004"}, []int64{3, 0, 0}, []int64{4, 4, 0}},
		{[]string{"scan.bounded.mode", scanrange.Timestamp, "scan.bounded.timestamp-millis", "9999"}, []int64{3, 0, 0}, []int64{10, 10, 0}},
		{[]string{"scan.bounded.mode", scanrange.Specific, "scan.bounded.specific-offsets", "partition:1,offset:5"}, []int64{3, 0, 0}, []int64{10, 5, 0}},
	}
	for _, c := range cases {
		s := w.source(w.table("t", idOnly, c.with...))
		parts, err := s.Partitions(ctx)
		check(t, err)
		start, err := s.Start(ctx, parts)
		check(t, err)
		if got := offsetsOf(start); !slices.Equal(got, c.start) {
			t.Errorf("%v: starts at %v, want %v", c.with, got, c.start)
		}
		errs, err := s.Check(ctx, start)
		check(t, err)
		check(t, errs...)
		end, err := s.End(ctx, parts)
		check(t, err)
		if c.end == nil {
			c.end = []int64{connector.Unbounded, connector.Unbounded, connector.Unbounded}
		}
		if !slices.Equal(end, c.end) {
			t.Errorf("%v: ends at %v, want %v", c.with, end, c.end)
		}
	}
	for _, with := range [][]string{
		{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:2"},
		{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:11"},
		{"scan.bounded.mode", scanrange.Specific, "scan.bounded.specific-offsets", "partition:0,offset:11"},
	} {
		s := w.source(w.table("t", idOnly, with...))
		parts, err := s.Partitions(ctx)
		check(t, err)
		_, serr := s.Start(ctx, parts)
		_, eerr := s.End(ctx, parts)
		if err := errors.Join(serr, eerr); err == nil || !strings.Contains(err.Error(), "partition 0") {
			t.Errorf("%v: %v", with, err)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	c := New(nil)
	for _, x := range []struct{ with, key string }{
		{"scan.startup.mode=timestamp", "scan.startup.mode"},
		{"scan.startup.timestamp-millis=5", "scan.startup.timestamp-millis"},
		{"scan.startup.mode=group-offsets", "scan.startup.mode"},
		{"scan.bounded.mode=group-offsets", "scan.bounded.mode"},
		{"scan.bounded.specific-offsets=partition:0,offset:1", "scan.bounded.specific-offsets"},
		{"scan.bounded.mode=specific-offsets;scan.bounded.specific-offsets=partition:0", "scan.bounded.specific-offsets"},
		{"scan.startup.mode=specific-offsets;scan.startup.specific-offsets=partition:0,offset:1|partition:0,offset:2", "scan.startup.specific-offsets"},
		{"scan.startup.mode=timestamp;scan.startup.timestamp-millis=2000;scan.bounded.mode=timestamp;scan.bounded.timestamp-millis=1000", "scan.bounded.timestamp-millis"},
		{"scan.startup.mode=specific-offsets;scan.startup.specific-offsets=partition:0,offset:1|partition:1,offset:9;scan.bounded.mode=specific-offsets;scan.bounded.specific-offsets=partition:0,offset:1|partition:1,offset:8", "scan.bounded.specific-offsets"},
		{"scan.startup.mode=now", "scan.startup.mode"},
		{"topic=a,b", "topic"},
		{"topic=a|a", "topic"},
		{"topic-pattern=a.*", "topic-pattern"}, // beside topic
		{"topic=a|b;scan.startup.mode=specific-offsets;scan.startup.specific-offsets=partition:0,offset:1", "scan.startup.specific-offsets"},
		{"scan.start.mode=x", "scan.start.mode"},
	} {
		with := map[string]string{"connector": "log", "topic": "t"}
		for _, kv := range strings.Split(x.with, ";") {
			k, v, _ := strings.Cut(kv, "=")
			with[k] = strings.ReplaceAll(v, "|", ";")
		}
		s := c.Spec()
		s.Formats = nil
		_, errs := s.Resolve(with)
		if len(errs) != 1 || errs[0].Key != x.key {
			t.Errorf("%s: %v", x.with, errs)
		}
	}
}

// TestDiffersFromFlinkStartWithoutPosition: Flink fails where group-offsets has
// no committed position; here reading starts at the earliest record, and it is
// said that nobody has asked for it.
func TestDiffersFromFlinkStartWithoutPosition(t *testing.T) {
	w := newWorld(t)
	tp := w.topic("t", 2, nil)
	for _, p := range tp.Partitions {
		w.put(p, record.None, `{"id":0}`, `{"id":1}`)
	}
	check(t, w.store.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: tp.Partitions[1].ID, Offset: 1}}))
	for _, c := range []struct {
		with  []string
		start []int64
		why   []string
	}{
		{nil, []int64{0, 0}, []string{"warning: no 'scan.startup.mode', so the earliest record", "warning: no 'scan.startup.mode', so the earliest record"}},
		{[]string{"scan.startup.mode", scanrange.Group, "properties.group.id", "g"}, []int64{0, 1},
			[]string{`warning: group "g" has no position here, so the earliest record`, "'scan.startup.mode' = 'group-offsets'"}},
		{[]string{"scan.startup.mode", scanrange.Latest}, []int64{2, 2}, []string{"'scan.startup.mode' = 'latest-offset'", "'scan.startup.mode' = 'latest-offset'"}},
	} {
		table := w.table("t", idOnly, c.with...)
		if c.with == nil {
			// As a file that says nothing about the start.
			table.Options, _ = w.conn.Spec().Resolve(map[string]string{"connector": "log", "topic": "t"})
		}
		s := w.source(table)
		parts, err := s.Partitions(ctx)
		check(t, err)
		start, err := s.Start(ctx, parts)
		check(t, err)
		if got := offsetsOf(start); !slices.Equal(got, c.start) {
			t.Errorf("%v: starts at %v, want %v", c.with, got, c.start)
		}
		if got := s.(connector.StartExplainer).ExplainStart(parts); !slices.Equal(got, c.why) {
			t.Errorf("%v: %q, want %q", c.with, got, c.why)
		}
	}
}

// A saved position that does not belong to the log says what is gone.
func TestSavedPositions(t *testing.T) {
	w := newWorld(t)
	p := w.topic("t", 1, nil).Partitions[0]
	for i := range 150 {
		w.put(p, record.None, fmt.Sprintf(`{"id":%d}`, i))
	}
	_, err := w.store.DeleteRecords(ctx, p.ID, 80)
	check(t, err)
	s := w.source(w.table("t", idOnly))
	parts, err := s.Partitions(ctx)
	check(t, err)
	old := parts[0]
	at := func(offset int64, epoch int32) connector.Position {
		return connector.Position{Partition: old, Offset: offset, LeaderEpoch: epoch}
	}
	want := func(s connector.Source, p connector.Position, m *connector.MismatchError) {
		t.Helper()
		errs, err := s.Check(ctx, []connector.Position{p})
		check(t, err)
		if m == nil {
			check(t, errs[0])
			return
		}
		var got *connector.MismatchError
		if !errors.As(errs[0], &got) {
			t.Fatalf("position %d: %v", p.Offset, errs[0])
		}
		if got.Earliest != m.Earliest || got.Latest != m.Latest || got.Lost != m.Lost || got.Recreated != m.Recreated || got.Reason == "" || got.Position != p {
			t.Errorf("position %d: %+v, want %+v", p.Offset, got, m)
		}
	}
	want(s, at(80, 0), nil)
	want(s, at(150, 0), nil)
	want(s, at(150, -1), nil)
	// Removed by retention: 30 records are gone for certain.
	want(s, at(50, 0), &connector.MismatchError{Earliest: 80, Latest: 150, Lost: 30})
	// Beyond the end: it is not the log that was read.
	want(s, at(200, 0), &connector.MismatchError{Earliest: 80, Latest: 150, Lost: -1})
	// Deleted, and deleted and made again.
	check(t, w.store.DeleteTopic(ctx, "t", false))
	want(s, at(100, 0), &connector.MismatchError{Lost: -1, Recreated: true})
	tp := w.topic("t", 1, nil)
	w.put(tp.Partitions[0], record.None, `{"id":1}`)
	want(s, at(100, 0), &connector.MismatchError{Earliest: 0, Latest: 1, Lost: -1, Recreated: true})
	again := w.source(w.table("t", idOnly))
	want(again, at(0, 0), &connector.MismatchError{Earliest: 0, Latest: 1, Lost: -1, Recreated: true})
	if parts, err = again.Partitions(ctx); err != nil || parts[0].TopicID == old.TopicID {
		t.Errorf("the new topic is %v, %v", parts, err)
	}
	if _, err := s.Partitions(ctx); !errors.Is(err, topiclog.ErrTopicNotFound) {
		t.Errorf("partitions of a deleted topic: %v", err)
	}
}

// After a power cut an os topic goes on at offsets that nobody has seen, in a
// new leader epoch. Positions from before are right if what they stand for is
// there, and the hole is read over.
func TestPositionsAcrossAPowerCut(t *testing.T) {
	mem := vfs.NewMem()
	slow := func(o *topiclog.Options) { o.SyncInterval, o.MarkDelay = time.Hour, time.Hour }
	w := openWorld(t, mem, slow)
	p := w.topic("o", 1, map[string]string{"millrace.durability": "os"}).Partitions[0]
	w.put(p, record.None, `{"id":0}`, `{"id":1}`, `{"id":2}`)
	w.put(w.topic("f", 1, nil).Partitions[0], record.None, `{}`) // syncs
	w.put(p, record.None, `{"id":3}`, `{"id":4}`)
	w = openWorld(t, mem.CrashClone(vfs.CrashOptions{}), slow)
	s := w.source(w.table("o", idOnly))
	parts, err := s.Partitions(ctx)
	check(t, err)
	verdict := func(offset int64, epoch int32) error {
		errs, err := s.Check(ctx, []connector.Position{{Partition: parts[0], Offset: offset, LeaderEpoch: epoch}})
		check(t, err)
		return errs[0]
	}
	reader := w.open(s, nil, nil)
	have, err := collect(t, reader, 10, 1000, nil)
	check(t, err)
	check(t, verdict(3, reader.LeaderEpoch(0)))
	base := w.put(p, record.None, `{"id":5}`)
	w.put(w.topic("g", 1, nil).Partitions[0], record.None, `{}`)
	more, err := collect(t, reader, 10, 1000, nil)
	check(t, err)
	if got, want := append(have[0], more[0]...), []string{"0:0", "1:1", "2:2", fmt.Sprintf("%d:5", base)}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if base < 5 || reader.LeaderEpoch(0) != 1 {
		t.Fatalf("offset %d in epoch %d: offsets must not be given twice", base, reader.LeaderEpoch(0))
	}
	check(t, verdict(base+1, 1))
	check(t, verdict(3, 0))
	var m *connector.MismatchError
	if err := verdict(5, 0); !errors.As(err, &m) || m.Lost != -1 {
		t.Errorf("what was read above the end of epoch 0 is gone: %v", err)
	}
	// A start inside the hole belongs to the epoch behind it.
	s = w.source(w.table("o", idOnly, "scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:4"))
	start, err := s.Start(ctx, parts)
	check(t, err)
	check(t, verdict(start[0].Offset, start[0].LeaderEpoch))
	have, err = collect(t, w.open(s, nil, nil), 10, 1000, nil)
	check(t, err)
	if want := fmt.Sprintf("%d:5", base); len(have[0]) != 1 || have[0][0] != want {
		t.Errorf("from the hole: %v", have)
	}
}

// A partition that comes later is seen by the next listing, and a reader of the
// old ones is not disturbed.
func TestPartitionsAreAdded(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 2, nil)
	s := w.source(w.table("t", idOnly, "scan.startup.mode", scanrange.Latest))
	r := w.open(s, nil, nil)
	tp, err := w.store.AddPartitions(ctx, "t", 4)
	check(t, err)
	w.put(tp.Partitions[3], record.None, `{"id":1}`)
	parts, err := s.Partitions(ctx)
	check(t, err)
	if len(parts) != 4 {
		t.Fatalf("partitions: %v", parts)
	}
	// The lane gives a new partition the position 0 and asks whether it is right.
	young := connector.Position{Partition: parts[3]}
	errs, err := s.Check(ctx, []connector.Position{young})
	check(t, err)
	check(t, errs...)
	more, err := s.Open(ctx, []connector.Split{{Number: 9, From: young, End: connector.Unbounded}}, nil, func() {})
	check(t, err)
	defer more.Close()
	have, err := collect(t, more.(*reader), 10, 1000, nil)
	check(t, err)
	if len(have[9]) != 1 {
		t.Errorf("read %v", have)
	}
	var b batch.Batch
	if err := r.Next(ctx, &b, 1, 1); !errors.Is(err, connector.ErrNoData) {
		t.Errorf("the old reader: %v", err)
	}
}

func TestHoldsAndCursors(t *testing.T) {
	w := newWorld(t)
	tp := w.topic("t", 2, nil)
	s := w.source(w.table("t", idOnly, "properties.group.id", "g"))
	parts, err := s.Partitions(ctx)
	check(t, err)
	at := []connector.Position{{Partition: parts[0], Offset: 5, LeaderEpoch: 2}, {Partition: parts[1], Offset: 7}}
	check(t, s.(connector.Holder).Hold(ctx, "job", at))
	holds := w.store.Holds()
	if len(holds) != 2 || holds[0].Offset+holds[1].Offset != 12 || holds[0].Name != "job" {
		t.Errorf("holds %+v", holds)
	}
	check(t, s.(connector.CursorMirror).MirrorCursor(ctx, at))
	for _, c := range w.store.Cursors("g") {
		if want := at[c.Partition-tp.Partitions[0].ID]; c.Offset != want.Offset || c.LeaderEpoch != want.LeaderEpoch {
			t.Errorf("cursor %+v, want %+v", c, want)
		}
	}
	check(t, w.source(w.table("t", idOnly)).(connector.CursorMirror).MirrorCursor(ctx, at)) // no group, nothing to show
}

func TestDecodePolicy(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	for value, want := range map[string]connector.OnError{"dead-letter": connector.OnErrorDeadLetter, "drop": connector.OnErrorDrop,
		"null": connector.OnErrorDeadLetter, "null-or-drop": connector.OnErrorDrop, "fail": connector.OnErrorFail} {
		policy, is := w.source(w.table("t", idOnly, "json.on-error", value)).(connector.DecodePolicy).DecodeErrors()
		if policy != want || !is(string(batch.CodeTypeMismatch)) || is(string(batch.CodeDivisionByZero)) {
			t.Errorf("%s: %s", value, policy)
		}
	}
}
