package ledger

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
)

var update = flag.Bool("update", false, "write golden files")

var (
	scope  = Scope{Job: connector.UUID{0xaa, 1}, Generation: 2}
	tableA = connector.UUID{0xbb, 2}
	topicA = connector.UUID{0xcc, 3}
	laneA  = connector.LaneID{Topic: topicA, Set: 1}
)

func artifactID(epoch, seq uint64) connector.ArtifactID {
	return connector.ArtifactID{Job: scope.Job, Generation: scope.Generation, Table: tableA, Lane: laneA, Epoch: epoch, Sequence: seq}
}

// intent is one file of the offsets of partition 0.
func intent(epoch, seq uint64, set offsets.Set, odd ...Odd) *Intent {
	in := &Intent{Writer: Writer{Lane: laneA, Epoch: epoch}, SealedMillis: 1_700_000_000_123,
		Artifacts: []connector.Artifact{{Header: connector.Header{ID: artifactID(epoch, seq), TablePartition: "dt=2021-07-21",
			Rows: set.Count(), RowHash: 0x0123456789abcdef, SchemaHash: 0xfedcba9876543210, MinEventTime: -5, MaxEventTime: 7},
			Bytes: 1234, Location: "/t/dt=2021-07-21/x.parquet", Payload: []byte{1, 2, 3}}},
		Inputs: []Input{{Topic: topicA, Partition: 0, Offsets: set, Odd: OddsOf(odd...)}}}
	in.Artifacts[0].Header.Inputs = in.headerInputs()
	return in
}

func committed(epoch, seq uint64) *Outcome {
	return &Outcome{ID: artifactID(epoch, seq), Writer: Writer{Lane: laneA, Epoch: epoch}, Result: Committed, TimeMillis: 5}
}

func cursor(epoch uint64, offset int64, rows int64) *Cursor {
	return &Cursor{Output: tableA, Topic: topicA, Lane: laneA, Epoch: epoch, Offset: offset, Counts: Counts{Records: rows, Read: rows, Written: rows, Expanded: rows}}
}

// facts has one of each kind, with every field set.
func facts() []Fact {
	group := intent(4, 2, offsets.Of(10, 20), Odd{Offset: 12, Written: 2, Expanded: 5, Late: 1,
		Filtered: Tallies{{Reason{"where", ""}, 3}}, Dead: Tallies{{Reason{"overflow", "v"}, 1}}}, Odd{Offset: 19})
	group.Minutes = []MinuteSum{{Kind: EventMinute, Minute: 27_000_000, Counts: MinuteCounts{1, 0, 2, 3, 4}}, {Kind: LogMinute, Minute: -1}}
	two := intent(4, 7, offsets.Of(1, 3))
	second := two.Artifacts[0]
	second.Header.ID.Sequence, second.Header.TablePartition = 8, "dt=2021-07-22"
	two.Artifacts = append(two.Artifacts, second)
	keyed := connector.ArtifactID{Job: scope.Job, Generation: scope.Generation, Table: tableA, Keyed: true, Subtask: 3, Epoch: 9, Manifest: 17, Sequence: 1}
	anew := intent(6, 1, offsets.Of(10, 20))
	anew.Rewrite, anew.Artifacts[0].Home = true, connector.StandbyHome
	return []Fact{
		&Start{Epoch: 3, TimeMillis: -1},
		&Table{Name: "事件", ID: tableA, Exchange: true, Feeds: []string{"a", "b"}},
		&Lane{ID: laneA, Topic: "clicks", Source: "src", Partitions: []int32{0, 2, 5}, Retired: true},
		&Open{Lane: laneA, Epoch: 4, Fingerprint: 77, TimeMillis: 1},
		&Cursor{Output: tableA, Topic: topicA, Partition: 5, Lane: laneA, Epoch: 4, Offset: 1 << 40, LeaderEpoch: -1, Watermark: -1 << 63,
			Counts: Counts{Records: 9, Lost: 1, Read: 10, Written: 3, Folded: 2, Late: 1, Expanded: 6,
				Filtered: Tallies{{Reason{"empty", ""}, 1}, {Reason{"where", ""}, 1}}, Dead: Tallies{{Reason{"type_mismatch", "actor.id"}, 2}}},
			LostRanges: offsets.Of(5, 6)},
		&Hour{Output: tableA, Topic: topicA, Partition: 1, Lane: laneA, Epoch: 4, Kind: LogMinute, Hour: -7,
			Minutes: []Minute{{0, MinuteCounts{1}}, {59, MinuteCounts{0, 0, 0, 0, 9}}}},
		&Hour{Output: tableA, Topic: topicA, Lane: laneA, Epoch: 4, Hour: OtherHour, Minutes: []Minute{{-1, MinuteCounts{2}}}},
		&Head{Output: tableA, Lane: laneA, Epoch: 4, Next: []PartitionOffset{{0, 100}, {2, 7}}, OldestAgeMillis: -1},
		group, two,
		&Intent{Writer: Writer{Keyed: true, Epoch: 9}, Artifacts: []connector.Artifact{{Header: connector.Header{ID: keyed}}}},
		&Outcome{ID: artifactID(4, 2), Writer: Writer{Lane: laneA, Epoch: 5}, Result: Void, TimeMillis: 2, Reason: "refused"},
		&Close{Table: tableA, TablePartition: "dt=2021-07-21/hr=06", Step: Closed, Version: 2, Bounds: []Bound{{topicA, 3, 55}}, TimeMillis: 8},
		&Publishing{Epoch: 9, Manifest: 17, IDs: []connector.ArtifactID{{Table: tableA, Keyed: true, Subtask: 3, Epoch: 9, Manifest: 17, Sequence: 1}}},
		&Emitted{Table: tableA, Epoch: 9, Manifest: 17, Rows: 100, Dead: Tallies{{Reason{"overflow", "n"}, 1}}},
		&Open{Lane: laneA, Epoch: 5, Fingerprint: 77, TimeMillis: 1, Ends: []PartitionOffset{{0, 0}, {2, 1 << 40}}, EndsBy: 99},
		&Switch{Table: tableA, Number: 2, To: connector.StandbyHome, Edge: true, TimeMillis: 9, Reason: "by hand"},
		&Moved{Table: tableA, Number: 3, TablePartition: "dt=2021-07-21/hr=06", To: connector.StandbyHome, Retracted: true, IDs: []connector.ArtifactID{artifactID(4, 2), artifactID(4, 7)}},
		anew,
		&Lane{ID: laneA, Topic: "clicks", Source: "src", Partitions: []int32{1}, Later: true},
	}
}

// owned is a fact as a book would show it: ids completed by the scope.
func owned(f Fact) Fact {
	b := newBook(nil, scope)
	switch f := f.(type) {
	case *Intent:
		b.own(f)
	case *Outcome:
		f.ID.Job, f.ID.Generation = scope.Job, scope.Generation
	case *Moved:
		for i := range f.IDs {
			f.IDs[i].Job, f.IDs[i].Generation = scope.Job, scope.Generation
		}
	}
	return f
}

func TestFactsSurviveEncoding(t *testing.T) {
	for _, f := range facts() {
		r := EncodeFact(scope, f)
		s, got, err := DecodeFact(r)
		if err != nil {
			t.Fatalf("%T: %v", f, err)
		}
		if got = owned(got); s != scope || !reflect.DeepEqual(got, f) {
			t.Errorf("%T:\n got %+v\nwant %+v", f, got, f)
		}
	}
}

// TestGoldenBytes reads the bytes of version 1, which stay readable for ever,
// and checks that they are still what is written.
func TestGoldenBytes(t *testing.T) {
	const name = "testdata/ledger-v1.hex"
	var b strings.Builder
	for _, f := range facts() {
		r := EncodeFact(scope, f)
		fmt.Fprintf(&b, "%T\n%x\n%x\n", f, r.Key, r.Value)
	}
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(golden) {
		t.Errorf("what is written differs from %s", name)
	}
	lines := strings.Fields(string(golden))
	for i := 0; i+2 < len(lines); i += 3 {
		key, err1 := hex.DecodeString(lines[i+1])
		value, err2 := hex.DecodeString(lines[i+2])
		_, f, err := DecodeFact(Record{key, value})
		if err := errors.Join(err1, err2, err); err != nil {
			t.Fatalf("%s: %v", lines[i], err)
		}
		if want := facts()[i/3]; !reflect.DeepEqual(owned(f), want) {
			t.Errorf("golden %s is %+v, want %+v", lines[i], f, want)
		}
	}
}

// TestEveryFlippedBitIsSeen: no single changed bit of key or value is read as a
// fact.
func TestEveryFlippedBitIsSeen(t *testing.T) {
	for _, f := range facts() {
		r := EncodeFact(scope, f)
		for i := range 8 * (len(r.Key) + len(r.Value)) {
			key, value := bytes.Clone(r.Key), bytes.Clone(r.Value)
			if i < 8*len(key) {
				key[i/8] ^= 1 << (i % 8)
			} else {
				j := i - 8*len(key)
				value[j/8] ^= 1 << (j % 8)
			}
			if _, _, err := DecodeFact(Record{key, value}); err == nil {
				t.Fatalf("%T: bit %d flipped and nobody noticed", f, i)
			}
		}
	}
}

func TestUnknownVersionIsRefused(t *testing.T) {
	// A whole record of version 2, checksum and all.
	r := EncodeFact(scope, &Start{Epoch: 1})
	r.Value = append([]byte(nil), r.Value[:len(r.Value)-valueTrailer]...)
	r.Value[3] = 2
	r.Value = appendChecksum(r.Key, r.Value)
	if _, _, err := DecodeFact(r); !errors.Is(err, ErrVersion) {
		t.Errorf("version 2: %v", err)
	}
}

func FuzzDecodeFact(f *testing.F) {
	for _, x := range facts() {
		r := EncodeFact(scope, x)
		f.Add(r.Key, r.Value[:len(r.Value)-valueTrailer])
	}
	f.Fuzz(func(t *testing.T, key, body []byte) {
		_, x, err := DecodeFact(Record{key, appendChecksum(key, body)})
		if err != nil || x == nil {
			return
		}
		// What is read can be written and read again.
		if _, _, err := DecodeFact(EncodeFact(scope, x)); err != nil {
			t.Errorf("%T read from %x does not survive: %v", x, body, err)
		}
	})
}

func open(t *testing.T, s Store) *Book {
	t.Helper()
	l, err := OpenLedger(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return l.Book(scope)
}

func appendAll(t *testing.T, b *Book, fs ...Fact) {
	t.Helper()
	if err := b.Append(context.Background(), fs...); err != nil {
		t.Fatal(err)
	}
}

// TestFence: a process that lost its lane appends through a ledger of its own,
// which knows nothing of the new epoch. Readers void what it writes, also
// after a compactor has dropped what it superseded.
func TestFence(t *testing.T) {
	for _, compact := range []bool{false, true} {
		s := NewMemStore()
		old := open(t, s)
		appendAll(t, old, &Open{Lane: laneA, Epoch: 1}, cursor(1, 10, 10), intent(1, 1, offsets.Of(10, 15)))
		next := open(t, s)
		appendAll(t, next, &Open{Lane: laneA, Epoch: 2}, cursor(2, 10, 10),
			&Outcome{ID: artifactID(1, 1), Writer: Writer{Lane: laneA, Epoch: 2}, Result: Committed})
		appendAll(t, old, cursor(1, 99, 99), &Outcome{ID: artifactID(1, 1), Writer: Writer{Lane: laneA, Epoch: 1}, Result: Void},
			intent(1, 2, offsets.Of(40, 50)), committed(1, 2), &Head{Output: tableA, Lane: laneA, Epoch: 1})
		if compact {
			s.Compact()
		}
		b := open(t, s)
		c, _ := b.Cursor(CursorKey{tableA, topicA, 0})
		if c.Offset != 10 || b.Voided() != 5 || b.Head(tableA, laneA) != nil {
			t.Errorf("compact=%v: cursor at %d, %d records void", compact, c.Offset, b.Voided())
		}
		if e, ok := b.Intent(artifactID(1, 1)); !ok || e.Result != Committed {
			t.Errorf("compact=%v: intent is %v", compact, e)
		}
		if _, ok := b.Intent(artifactID(1, 2)); ok {
			t.Errorf("compact=%v: the zombie's intent stands", compact)
		}
		if err := b.Append(context.Background(), cursor(1, 20, 20)); !errors.Is(err, connector.ErrFenced) {
			t.Errorf("append of a lower epoch: %v", err)
		}
	}
}

// TestVoidIsNeverCompleted, nor is a commit taken back: the first result
// stands.
func TestVoidIsNeverCompleted(t *testing.T) {
	s := NewMemStore()
	b := open(t, s)
	void := committed(1, 1)
	void.Result = Void
	appendAll(t, b, &Open{Lane: laneA, Epoch: 1}, intent(1, 1, offsets.Of(0, 5)), void, committed(1, 1))
	if e, _ := b.Intent(artifactID(1, 1)); e.Result != Void {
		t.Errorf("intent is %s", e.Result)
	}
}

func TestRowsAndCheck(t *testing.T) {
	s := NewMemStore()
	b := open(t, s)
	appendAll(t, b, &Table{Name: "t", ID: tableA}, &Lane{ID: laneA, Topic: "clicks"}, &Open{Lane: laneA, Epoch: 1}, cursor(1, 10, 10),
		// Straddles the cursor: offset 8 and 9 are counted there already.
		intent(1, 1, offsets.Of(8, 14), Odd{Offset: 12, Written: 1, Expanded: 1, Dead: Tallies{{Reason{"overflow", "v"}, 2}}}), committed(1, 1),
		intent(1, 2, offsets.Of(20, 30)))
	rows := b.Rows()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	// 10 below the cursor; above it 10, 11, 13 of one row each and 12 of three.
	if c := rows[0].Counts; c.Read != 16 || c.Written != 14 || c.Dead.Sum() != 2 || c.Open() != 0 || rows[0].TopicName != "clicks" {
		t.Errorf("counts %+v", c)
	}
	if v := b.Check(); len(v) > 0 {
		t.Errorf("violations %v", v)
	}
	appendAll(t, b, intent(1, 3, offsets.Of(13, 16)), committed(1, 3))
	if v := b.Check(); len(v) != 1 || !strings.Contains(v[0].Problem, "offsets 13 are in two") {
		t.Errorf("violations %v", v)
	}
	bad := cursor(1, 40, 40)
	bad.Counts.Written--
	appendAll(t, b, bad)
	if v := b.Check(); len(v) != 2 || !strings.Contains(v[0].Problem, "1 rows are unaccounted for") {
		t.Errorf("violations %v", v)
	}
}

func TestPruneKeepsWhatIsNeeded(t *testing.T) {
	s := NewMemStore()
	b := open(t, s)
	ctx := context.Background()
	appendAll(t, b, &Table{Name: "t", ID: tableA}, &Open{Lane: laneA, Epoch: 1}, cursor(1, 0, 0))
	appendAll(t, b, intent(1, 1, offsets.Of(0, 10)), committed(1, 1), intent(1, 2, offsets.Of(10, 30)), committed(1, 2))
	appendAll(t, b, &Open{Lane: laneA, Epoch: 2}, cursor(2, 20, 20))
	before := b.Rows()[0].Counts
	keep := PruneOptions{NowMillis: 1000, KeepMillis: 100}
	// The old open and cursor, and artefact 1 with its outcome: the cursor is
	// past it. Artefact 2 is in the skip set still.
	if n, err := b.Prune(ctx, keep); n != 4 || err != nil {
		t.Errorf("dropped %d: %v", n, err)
	}
	keep.KeepMillis = 10_000
	appendAll(t, b, cursor(2, 30, 30))
	if n, _ := b.Prune(ctx, keep); n != 0 {
		t.Errorf("dropped %d before ledger.keep", n)
	}
	keep.KeepMillis = 0
	keep.Closed = func(CloseKey) bool { return false }
	if n, _ := b.Prune(ctx, keep); n != 0 {
		t.Errorf("dropped %d of an open table partition", n)
	}
	s.Compact()
	again := open(t, s)
	if got := again.Rows()[0].Counts; !reflect.DeepEqual(got, before) {
		t.Errorf("counts after pruning %+v, before %+v", got, before)
	}
	if _, ok := again.Intent(artifactID(1, 1)); ok {
		t.Error("artefact 1 is still there")
	}
	if _, ok := again.Intent(artifactID(1, 2)); !ok {
		t.Error("artefact 2 is gone")
	}
}

func TestRollUpKeepsTheSums(t *testing.T) {
	b := open(t, NewMemStore())
	h := func(hour int64, minutes ...Minute) *Hour {
		return &Hour{Output: tableA, Topic: topicA, Lane: laneA, Epoch: 1, Hour: hour, Minutes: minutes}
	}
	appendAll(t, b, &Open{Lane: laneA, Epoch: 1}, h(1, Minute{0, MinuteCounts{1}}, Minute{7, MinuteCounts{2, 0, 5}}), h(2, Minute{3, MinuteCounts{4}}),
		h(OtherHour, Minute{-1, MinuteCounts{9}}))
	appendAll(t, b, &Open{Lane: laneA, Epoch: 2}) // a restart in between
	for _, want := range []int{1, 0} {            // once
		if n, err := b.RollUp(context.Background(), 2*3_600_000); n != want || err != nil {
			t.Errorf("%d hours rolled up, want %d: %v", n, want, err)
		}
	}
	k := CursorKey{tableA, topicA, 0}
	if got := b.Hour(k, EventMinute, 1).Minutes; !reflect.DeepEqual(got, []Minute{{-1, MinuteCounts{3, 0, 5}}}) {
		t.Errorf("hour 1 is %v", got)
	}
	if got := b.Hour(k, EventMinute, 2).Minutes; len(got) != 1 || got[0].Minute != 3 {
		t.Errorf("hour 2, which ends later, is %v", got)
	}
}

// TestOvertakenAnnouncement: a file that is committed after the partition was
// closed opens it again; an announcement of what was there before is refused,
// whether the commit is in the book or in the same batch.
func TestOvertakenAnnouncement(t *testing.T) {
	b := open(t, NewMemStore())
	step := func(s CloseStep, version uint32) *Close {
		return &Close{Table: tableA, TablePartition: "p", Step: s, Version: version}
	}
	ctx := context.Background()
	if err := b.Append(ctx, step(Announced, 1)); !errors.Is(err, ErrStale) {
		t.Errorf("announced before it was closed: %v", err)
	}
	appendAll(t, b, step(Closed, 1))
	appendAll(t, b, step(Closing, 2))
	if err := b.Append(ctx, step(Announced, 1)); !errors.Is(err, ErrStale) {
		t.Errorf("announced though a file came late: %v", err)
	}
	appendAll(t, b, step(Closed, 2))
	batch := map[CloseKey]*Close{{tableA, "p"}: step(Closing, 3)}
	if err := b.stale([]Fact{step(Announced, 2)}, batch); !errors.Is(err, ErrStale) {
		t.Errorf("announced though a file comes in the same batch: %v", err)
	}
	appendAll(t, b, step(Announced, 2))
	if c := b.Close(CloseKey{tableA, "p"}); c.Step != Announced {
		t.Errorf("it is %s", c.Step)
	}
}

// TestConcurrentAppendsShareBatches: what waits while a batch is written goes
// into the next one, in one piece each.
func TestConcurrentAppendsShareBatches(t *testing.T) {
	s := NewMemStore()
	gate, entered := make(chan struct{}), make(chan struct{}, 1)
	batches := 0
	s.SetHook(func([]Record) error {
		if batches++; batches == 1 {
			entered <- struct{}{}
			<-gate
		}
		return nil
	})
	b := open(t, s)
	var wg sync.WaitGroup
	one := func(i int64) {
		defer wg.Done()
		c := cursor(1, i, i)
		c.Partition = int32(i)
		if err := b.Append(context.Background(), c); err != nil {
			t.Error(err)
		}
	}
	wg.Add(1)
	go one(0)
	<-entered
	for i := int64(1); i <= 20; i++ {
		wg.Add(1)
		go one(i)
	}
	for {
		b.ledger.queueMu.Lock()
		n := len(b.ledger.queue)
		b.ledger.queueMu.Unlock()
		if n == 20 {
			break
		}
	}
	close(gate)
	wg.Wait()
	if batches != 2 || len(b.Cursors(tableA)) != 21 {
		t.Errorf("%d batches, %d cursors", batches, len(b.Cursors(tableA)))
	}
}

// TestLargeAppendsAreCut: what waits is cut into batches of a bounded size, an
// append never.
func TestLargeAppendsAreCut(t *testing.T) {
	s := NewMemStore()
	var sizes []int
	s.SetHook(func(rs []Record) error {
		n := 0
		for _, r := range rs {
			n += len(r.Key) + len(r.Value)
		}
		sizes = append(sizes, n)
		return nil
	})
	b := open(t, s)
	var queue []*pending
	for i := range uint64(40) {
		in := intent(1, i+1, offsets.Of(int64(i)*10, int64(i)*10+5))
		in.Artifacts[0].Payload = make([]byte, 20<<10)
		queue = append(queue, &pending{book: b, facts: []Fact{in, committed(1, i+1)}, done: make(chan error, 1)})
	}
	b.ledger.write(context.Background(), queue)
	for _, p := range queue {
		if err := <-p.done; err != nil {
			t.Fatal(err)
		}
	}
	if len(sizes) != 4 || sizes[0] > batchBytes+32<<10 {
		t.Errorf("batches of %v bytes", sizes)
	}
	if n := len(b.Intents(func(e *Entry) bool { return e.Result == Committed })); n != 40 {
		t.Errorf("%d committed", n)
	}
}

func TestFailedAppendBreaksTheLedger(t *testing.T) {
	s := NewMemStore()
	b := open(t, s)
	boom := errors.New("disk on fire")
	s.SetHook(func([]Record) error { return boom })
	if err := b.Append(context.Background(), cursor(1, 1, 1)); !errors.Is(err, boom) || !errors.Is(err, ErrBroken) {
		t.Errorf("append: %v", err)
	}
	s.SetHook(nil)
	if err := b.Append(context.Background(), cursor(1, 1, 1)); !errors.Is(err, ErrBroken) {
		t.Errorf("append to a broken ledger: %v", err)
	}
}

// TestCompactionChangesNothing: random facts by several epochs, with and
// without compaction, give equal books.
func TestCompactionChangesNothing(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		s := NewMemStore()
		b := open(t, s)
		appendAll(t, b, &Table{Name: "t", ID: tableA})
		epoch, seq, at := uint64(0), uint64(0), int64(0)
		for range 60 {
			switch r.IntN(5) {
			case 0:
				epoch++
				appendAll(t, b, &Open{Lane: laneA, Epoch: epoch}, cursor(epoch, at, at))
			case 1:
				if epoch > 0 {
					seq++
					n := int64(1 + r.IntN(5))
					appendAll(t, b, intent(epoch, seq, offsets.Of(at, at+n)), committed(epoch, seq))
					at += n
					appendAll(t, b, cursor(epoch, at, at))
				}
			case 2:
				if _, err := b.Prune(context.Background(), PruneOptions{NowMillis: 100}); err != nil {
					t.Fatal(err)
				}
			case 3:
				appendAll(t, b, &Close{Table: tableA, TablePartition: fmt.Sprint(r.IntN(3)), Step: CloseStep(1 + r.IntN(2))})
			case 4:
				s.Compact()
			}
		}
		rows, closes := b.Rows(), b.Closes(tableA)
		s.Compact()
		again := open(t, s)
		if !reflect.DeepEqual(again.Rows(), rows) || !reflect.DeepEqual(again.Closes(tableA), closes) || len(again.Check()) > 0 {
			t.Fatalf("seed %d: %+v after, %+v before; %v", seed, again.Rows(), rows, again.Check())
		}
	}
}

// TestOdds: exceptions are kept in order, whatever order they come in.
func TestOdds(t *testing.T) {
	at := func(offsets ...int64) (l []Odd) {
		for _, o := range offsets {
			l = append(l, Odd{Offset: o, Written: o % 3, Expanded: 2 * o, Dead: Tallies{{Reason{"overflow", "v"}, 1}}})
		}
		return l
	}
	a, b := OddsOf(at(9, 2, 5)...), OddsOf(at(1, 7, 300)...)
	a.Merge(&b)
	b.Merge(&Odds{})
	if want := OddsOf(at(1, 2, 5, 7, 9, 300)...); !reflect.DeepEqual(a, want) || a.Len() != 6 || b.Len() != 3 {
		t.Errorf("merged %+v, want %+v", a, want)
	}
	var got []Odd
	for o := range a.All() {
		got = append(got, *o)
	}
	if !reflect.DeepEqual(got, at(1, 2, 5, 7, 9, 300)) {
		t.Errorf("got %+v", got)
	}
	in := Input{Offsets: offsets.Of(0, 400), Odd: a}
	if c := in.Counts(5, 300); c.Records != 295 || c.Written != 295-3+2+1+0 || c.Dead.Sum() != 3 {
		t.Errorf("counts %+v", c)
	}
	// An exception of an array takes few bytes.
	var many Odds
	for i := range int64(100_000) {
		many.Add(&Odd{Offset: i, Written: 1, Expanded: 2})
	}
	if c := many.Clip(); cap(c.packed) > 700_000 {
		t.Errorf("100,000 exceptions take %d bytes", cap(c.packed))
	}
}
