package logtopic

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

var (
	theJob   = conntest.UUID(1)
	theTable = conntest.UUID(9)
	theLane  = connector.LaneID{Topic: conntest.UUID(7), Set: 1}
)

func artifactID(epoch, sequence uint64) connector.ArtifactID {
	return connector.ArtifactID{Job: theJob, Table: theTable, Lane: theLane, Epoch: epoch, Sequence: sequence}
}

// sinkTable is the suite's table over a topic.
func (w *logWorld) sinkTable(topic string, with ...string) *connector.Table {
	return w.table(topic, conntest.Columns(), append([]string{"scan.startup.mode", scanrange.Earliest}, with...)...)
}

func (w *logWorld) sink(t *connector.Table, epoch uint64) *sink {
	w.t.Helper()
	s, err := w.conn.OpenSink(ctx, t, conntest.OwnerOf(1, epoch))
	check(w.t, err)
	return s.(*sink)
}

func (w *logWorld) writer(s *sink, epoch uint64) *writer {
	w.t.Helper()
	wr, err := s.OpenWriter(ctx, connector.Attempt{ID: artifactID(epoch, 0), MemoryBytes: 16 << 20})
	check(w.t, err)
	return wr.(*writer)
}

// write puts rows into their buckets.
func write(t testing.TB, wr *writer, b *batch.Batch) {
	t.Helper()
	ids, err := wr.Buckets(b, nil, nil)
	check(t, err)
	for i := range b.Len {
		check(t, wr.Write(b, batch.Sel{int32(i)}, ids[i]))
	}
}

// seal seals every open bucket, each with the given offsets.
func seal(t testing.TB, wr *writer, sequence uint64, in ...connector.Input) []connector.Artifact {
	t.Helper()
	var req []connector.SealRequest
	for _, b := range wr.Open() {
		h := connector.Header{ID: artifactID(wr.at.epoch, sequence), Rows: b.Rows, Inputs: in}
		sequence++
		req = append(req, connector.SealRequest{Bucket: b.ID, Header: h})
	}
	as, err := wr.Seal(ctx, req)
	check(t, err)
	return as
}

// ids are the ids of all records of a topic, by partition.
func (w *logWorld) ids(topic string) [][]int64 {
	w.t.Helper()
	s := w.source(w.table(topic, conntest.Columns()))
	r := w.open(s, []int{0}, nil)
	defer r.Close()
	out := make([][]int64, len(r.splits))
	_, err := collect(w.t, r, 1000, 1<<20, func(b *batch.Batch) {
		for _, run := range b.Runs {
			out[run.Partition] = append(out[run.Partition], b.Cols[0].I64[run.FirstRow:run.FirstRow+run.Rows]...)
		}
	})
	check(w.t, err)
	return out
}

func (w *logWorld) notes(tp topiclog.Topic, key string) int {
	n := 0
	for _, p := range tp.Partitions {
		notes, err := w.store.Notes(p.ID, key)
		check(w.t, err)
		n += len(notes)
	}
	return n
}

// With partitioner fixed all rows of a lane go to one partition, after a restart as
// well, and those of a subtask to the one of its number.
func TestFixedPartition(t *testing.T) {
	w := newWorld(t)
	w.topic("out", 3, nil)
	table := w.sinkTable("out", "sink.partitioner", "fixed")
	table.PrimaryKey = []int{0}
	want := int(keyvalue.FixedPlace(artifactID(1, 0))) % 3
	for epoch := range uint64(2) {
		wr := w.writer(w.sink(table, epoch+1), epoch+1)
		for i := range uint64(3) {
			write(t, wr, conntest.Rows(int64(i)*10, 10))
			check(t, wr.s.Publish(ctx, seal(t, wr, i+1))...)
		}
	}
	for p, ids := range w.ids("out") {
		if p == want && len(ids) != 60 || p != want && len(ids) != 0 {
			t.Errorf("partition %d has %d rows; all belong in %d", p, len(ids), want)
		}
	}
	places := map[int32]bool{}
	for set := range uint32(50) {
		id := artifactID(1, 0)
		id.Lane.Set = set
		places[keyvalue.FixedPlace(id)%3] = true
		id.Keyed, id.Subtask = true, set
		if p := keyvalue.FixedPlace(id); p != int32(set) {
			t.Errorf("subtask %d has place %d", set, p)
		}
	}
	if len(places) != 3 {
		t.Errorf("50 lanes go to partitions %v", places)
	}
}

// Rows of one key go to one partition, by Kafka's murmur2 of the JSON key.
func TestPartitions(t *testing.T) {
	w := newWorld(t)
	w.topic("out", 3, nil)
	table := w.sinkTable("out")
	table.PrimaryKey = []int{0}
	s := w.sink(table, 1)
	wr := w.writer(s, 1)
	write(t, wr, conntest.Rows(0, 60))
	write(t, wr, conntest.Rows(0, 60))
	check(t, s.Publish(ctx, seal(t, wr, 1))...)
	total := 0
	for p, ids := range w.ids("out") {
		for _, id := range ids {
			if want := record.PartitionOf([]byte(fmt.Sprintf(`{"id":%d}`, id)), 3); want != p {
				t.Errorf("id %d is in partition %d, want %d", id, p, want)
			}
		}
		total += len(ids)
	}
	if total != 120 {
		t.Errorf("%d rows", total)
	}
	// Without a key whole artefacts go to the partitions in turn.
	w.topic("turn", 3, nil)
	s = w.sink(w.sinkTable("turn"), 1)
	wr = w.writer(s, 1)
	for i := range 6 {
		write(t, wr, conntest.Rows(int64(i)*10, 5))
		write(t, wr, conntest.Rows(int64(i)*10+5, 5))
		check(t, s.Publish(ctx, seal(t, wr, uint64(i)+1))...)
	}
	for p, ids := range w.ids("turn") {
		if len(ids) != 20 || ids[0] != int64(p)*10 || ids[19] != int64(p)*10+39 {
			t.Errorf("partition %d has %v", p, ids)
		}
	}
}

func TestRecordTimestamp(t *testing.T) {
	w := newWorld(t)
	w.topic("out", 1, nil)
	cols := []connector.Column{{Field: field("id", types.NewBigInt())}, {Field: field("ts", types.NewTimestampLTZ(3)), Metadata: "timestamp"}}
	s, err := w.conn.OpenSink(ctx, w.table("out", cols), conntest.OwnerOf(1, 1))
	check(t, err)
	b := new(batch.Batch)
	b.Reset(&batch.Schema{Fields: []types.Field{cols[0].Field, cols[1].Field}})
	for i := range b.Cols {
		b.Cols[i].Reset(b.Schema.Fields[i].Type, 3)
	}
	copy(b.Cols[0].I64, []int64{1, 2, 3})
	copy(b.Cols[1].I64, []int64{1_700_000_000_123_000, -1, -1_000})
	b.Len = 3
	wr, err := s.OpenWriter(ctx, connector.Attempt{ID: artifactID(1, 0)})
	check(t, err)
	write(t, wr.(*writer), b)
	check(t, s.Publish(ctx, seal(t, wr.(*writer), 1))...)
	cols[1].Virtual = true
	have, err := collect(t, w.open(w.source(w.table("out", cols)), nil, nil), 10, 1<<20, nil)
	check(t, err)
	if want := []string{"0:1,1700000000123000", "1:2,-1000", "2:3,-1000"}; !slices.Equal(have[0], want) {
		t.Errorf("read %v, want %v", have[0], want)
	}
	for _, bad := range []connector.Column{
		{Field: field("o", types.NewBigInt()), Metadata: "offset"},
		{Field: field("ts", types.NewTimestamp(3)), Metadata: "timestamp"},
	} {
		if _, err := w.conn.OpenSink(ctx, w.table("out", []connector.Column{cols[0], bad}), conntest.OwnerOf(1, 1)); err == nil {
			t.Errorf("a sink took metadata %s as %s", bad.Metadata, bad.Type)
		}
	}
}

// A row that makes too large a record is found before it counts as taken.
func TestRowsThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	w.topic("out", 1, map[string]string{"max.message.bytes": "2000"})
	cols := columns(field("id", types.NewBigInt()), field("text", types.NewString()))
	s, err := w.conn.OpenSink(ctx, w.table("out", cols), conntest.OwnerOf(1, 1))
	check(t, err)
	b := new(batch.Batch)
	b.Reset(w.table("out", cols).Schema(nil))
	sizes := []int{10, 1700, 5000, 300, 1900, 400, 1875}
	for i := range b.Cols {
		b.Cols[i].Reset(b.Schema.Fields[i].Type, 0)
	}
	b.Cols[1].Offsets = []int32{0}
	for i, n := range sizes {
		b.Cols[0].I64 = append(b.Cols[0].I64, int64(i))
		b.Cols[1].Data = append(b.Cols[1].Data, bytes.Repeat([]byte{'x'}, n)...)
		b.Cols[1].Offsets = append(b.Cols[1].Offsets, int32(len(b.Cols[1].Data)))
	}
	b.Len, b.Cols[0].Len, b.Cols[1].Len = len(sizes), len(sizes), len(sizes)
	x, err := s.OpenWriter(ctx, connector.Attempt{ID: artifactID(1, 0)})
	check(t, err)
	wr := x.(*writer)
	var rows []int32
	for _, e := range wr.Check(b, nil, nil) {
		if e.Code != batch.CodeSinkRefused || !strings.Contains(e.Message, "max.message.bytes") {
			t.Errorf("row %d: %s %s", e.Row, e.Code, e.Message)
		}
		rows = append(rows, e.Row)
	}
	if want := []int32{2, 4, 6}; !slices.Equal(rows, want) {
		t.Errorf("refused %v, want %v", rows, want)
	}
	good := batch.Sel{0, 1, 3, 5}
	check(t, wr.Write(b, good, 0))
	check(t, s.Publish(ctx, seal(t, wr, 1))...)
	r := w.open(w.source(w.table("out", cols)), []int{0}, nil)
	have, err := collect(t, r, 10, 1<<20, nil)
	check(t, err)
	if len(have[0]) != len(good) {
		t.Errorf("read %v", have[0])
	}
	if none := wr.Check(b, good, nil); none != nil {
		t.Errorf("good rows were refused: %v", none)
	}
}

// bound must not be below what a row takes, or a record too large gets past.
func TestBoundIsAnUpperBound(t *testing.T) {
	w := newWorld(t)
	w.topic("out", 1, nil)
	inner := types.NewRow(field("averylongfieldname", types.NewString()), field("x", types.NewArray(types.NewRow(field("another", types.NewDouble())))))
	cols := columns(field("a", types.NewArray(types.NewArray(types.NewString()))), field("r", types.NewArray(inner)), field("m", types.NewMap(types.NewString(), types.NewDecimal(38, 10))))
	s, err := w.conn.OpenSink(ctx, w.table("out", cols), conntest.OwnerOf(1, 1))
	check(t, err)
	x, err := s.OpenWriter(ctx, connector.Attempt{ID: artifactID(1, 0)})
	check(t, err)
	wr := x.(*writer)
	p := w.topic("in", 1, nil).Partitions[0]
	for i := range 20 {
		nul := strings.Repeat("\\u0001", i*7)
		elems := strings.TrimSuffix(strings.Repeat(`{"averylongfieldname":"`+nul+`","x":[{"another":-1.7976931348623157e308},{"another":null}]},`, i), ",")
		strs := strings.TrimSuffix(strings.Repeat(`["`+nul+`",""],`, i), ",")
		w.put(p, record.None, fmt.Sprintf(`{"a":[%s],"r":[%s],"m":{"%s":1234567890123456789012345678.0123456789}}`, strs, elems, nul))
	}
	r := w.open(w.source(w.table("in", cols)), nil, nil)
	rows := 0
	_, err = collect(t, r, 1000, 1<<20, func(b *batch.Batch) {
		for i := range b.Len {
			out, err := wr.s.enc.AppendValue(nil, b, i)
			check(t, err)
			if bound := wr.s.enc.Bound(b, i, i+1); bound < len(out) {
				t.Errorf("row of %d bytes has the bound %d: %s", len(out), bound, out)
			}
			rows++
		}
	})
	check(t, err)
	if rows != 20 {
		t.Errorf("%d rows", rows)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	w := newWorld(t)
	w.topic("out", 1, nil)
	s := w.sink(w.sinkTable("out"), 1)
	x, err := s.OpenWriter(ctx, connector.Attempt{ID: artifactID(1, 0), MemoryBytes: 64 << 10})
	check(t, err)
	wr := x.(*writer)
	b := conntest.Rows(0, 100)
	n := 0
	for ; ; n++ {
		if err = wr.Write(b, nil, 0); err != nil {
			break
		}
		if wr.HeldBytes() > 128<<10 {
			t.Fatalf("%d bytes are held", wr.HeldBytes())
		}
	}
	if !errors.Is(err, connector.ErrFull) || n == 0 {
		t.Fatalf("after %d batches: %v", n, err)
	}
	check(t, s.Publish(ctx, seal(t, wr, 1))...)
	if wr.HeldBytes() != 0 {
		t.Errorf("%d bytes are held by a sealed writer", wr.HeldBytes())
	}
	check(t, wr.Write(b, nil, 0))
	if got := len(w.ids("out")[0]); got != n*100 {
		t.Errorf("%d rows of %d", got, n*100)
	}
}

// A large artefact of many batches is one append, compressed as the topic says.
func TestLargeArtefacts(t *testing.T) {
	for _, codec := range []string{"producer", "zstd", "gzip"} {
		w := openWorld(t, vfs.NewMem(), func(o *topiclog.Options) {
			o.CacheBytes, o.JournalFileBytes, o.JournalMaxBytes = 64<<20, 0, 0
		})
		w.topic("out", 1, map[string]string{"compression.type": codec})
		s := w.sink(w.sinkTable("out"), 1)
		wr := w.writer(s, 1)
		first := int64(0)
		for {
			err := wr.Write(conntest.Rows(first, 1000), nil, 0)
			if errors.Is(err, connector.ErrFull) {
				break
			}
			check(t, err)
			first += 1000
			if first > 1<<20 {
				t.Fatal("an artefact without end")
			}
		}
		as := seal(t, wr, 1)
		check(t, s.Publish(ctx, as)...)
		if got := len(w.ids("out")[0]); int64(got) != first || len(as) != 1 {
			t.Errorf("%s: %d rows of %d in %d artefacts", codec, got, first, len(as))
		}
	}
}

// Notes go when they are settled, a few dozen at a time, and no sooner.
func TestNotesAreTrimmed(t *testing.T) {
	mem := vfs.NewMem()
	w := openWorld(t, mem, nil)
	tp := w.topic("out", 2, nil)
	s := w.sink(w.sinkTable("out"), 1)
	wr := w.writer(s, 1)
	key := laneKeyOf(artifactID(1, 0)).noteKey()
	var all []connector.Artifact
	const n = 6 * trimEvery
	for i := range n {
		write(t, wr, conntest.Rows(int64(i), 1))
		as := seal(t, wr, uint64(i)+1)
		check(t, s.Publish(ctx, as)...)
		all = append(all, as...)
	}
	if got := w.notes(tp, key); got != n {
		t.Fatalf("%d notes of %d", got, n)
	}
	check(t, s.Settled(ctx, artifactID(1, 100)))
	if got := w.notes(tp, key); got != n {
		t.Errorf("%d notes after 99 were settled: too few to trim in each partition", got)
	}
	check(t, s.Settled(ctx, artifactID(1, 151)))
	if got := w.notes(tp, key); got != n-150 {
		t.Errorf("%d notes after 150 were settled", got)
	}
	check(t, s.Settled(ctx, artifactID(1, 10))) // going back changes nothing
	outcomes, err := s.Resolve(ctx, all[150:])
	check(t, err)
	for i, o := range outcomes {
		if o != connector.Published {
			t.Fatalf("artefact %d is %s", 150+i, o)
		}
	}
	// The next process settles what the one before left.
	w = openWorld(t, mem.CrashClone(vfs.CrashOptions{}), nil)
	s = w.sink(w.sinkTable("out"), 2)
	if got := w.notes(tp, key); got != n-150 {
		t.Errorf("%d notes after a crash", got)
	}
	w.writer(s, 2)
	check(t, s.Settled(ctx, artifactID(2, 0)))
	if got := w.notes(tp, key); got != 0 {
		t.Errorf("%d notes are left", got)
	}
	// Another table, another lane and another job keep theirs.
	for i, change := range []func(*connector.ArtifactID){
		func(id *connector.ArtifactID) { id.Table = conntest.UUID(3) }, func(id *connector.ArtifactID) { id.Lane.Set = 5 },
		func(id *connector.ArtifactID) { id.Job = conntest.UUID(4) }, func(id *connector.ArtifactID) { id.Keyed = true },
	} {
		id := artifactID(1, 0)
		change(&id)
		if other := laneKeyOf(id).noteKey(); other == key {
			t.Errorf("case %d: the same key", i)
		}
	}
}

// Notes and payloads stay readable: the bytes are those of the first version.
func TestEncodings(t *testing.T) {
	h := &connector.Header{ID: connector.ArtifactID{Job: theJob, Generation: 3, Table: theTable, Lane: theLane, Epoch: 300, Sequence: 7},
		Inputs: []connector.Input{{Topic: conntest.UUID(7), Partition: 2, Offsets: offsets.OfRanges(offsets.Range{First: 5, End: 9}, offsets.Range{First: 12, End: 13})}}}
	keyed := connector.ArtifactID{Job: theJob, Generation: 1, Table: theTable, Keyed: true, Subtask: 4, Epoch: 2, Manifest: 9, Sequence: 1}
	p := &payload{topic: topiclog.UUID(conntest.UUID(8)), index: 1, partition: 300, rows: 2}
	with := *p
	with.batches = []byte("batches")
	lines := []string{
		"lane key  " + hex.EncodeToString([]byte(laneKeyOf(h.ID).noteKey())),
		"keyed key " + hex.EncodeToString([]byte(laneKeyOf(keyed).noteKey())),
		"note      " + hex.EncodeToString(encodeNote(h)),
		"keyed     " + hex.EncodeToString(encodeNote(&connector.Header{ID: keyed})),
		"payload   " + hex.EncodeToString(p.encode()),
		"batches   " + hex.EncodeToString(with.encode()),
	}
	golden, err := os.ReadFile("testdata/encodings.txt")
	check(t, err)
	if got := strings.Join(lines, "\n") + "\n"; got != string(golden) {
		t.Errorf("encodings:\n%swant:\n%s", got, golden)
	}
	at, in, err := decodeNote(encodeNote(h))
	check(t, err)
	if at != pointOf(h.ID) || len(in) != 1 || in[0].Topic != h.Inputs[0].Topic || in[0].Partition != 2 || !in[0].Offsets.Equal(h.Inputs[0].Offsets) {
		t.Errorf("note read back: %+v %+v", at, in)
	}
	back, err := decodePayload(with.encode())
	check(t, err)
	if back.topic != p.topic || back.index != 1 || back.partition != 300 || back.rows != 2 || string(back.batches) != "batches" {
		t.Errorf("payload read back: %+v", back)
	}
	for n := range encodeNote(h) {
		if _, _, err := decodeNote(encodeNote(h)[:n]); err == nil {
			t.Errorf("%d bytes of a note were read", n)
		}
	}
	for n := range p.encode() {
		if _, err := decodePayload(p.encode()[:n]); err == nil {
			t.Errorf("%d bytes of a payload were read", n)
		}
	}
	bad := p.encode()
	bad[0] = 2
	if _, err := decodePayload(bad); !errors.Is(err, errEncoding) {
		t.Errorf("a payload of version 2: %v", err)
	}
	note := encodeNote(h)
	note[0] = 2
	if _, _, err := decodeNote(note); !errors.Is(err, errEncoding) {
		t.Errorf("a note of version 2: %v", err)
	}
}
