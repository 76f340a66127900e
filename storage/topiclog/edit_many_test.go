package topiclog

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/millrace/millrace/storage/manifest"
)

// Every state that the rules allow is the same after it was written and read, also
// where sequences wrap and in more entries than one edit takes.
func TestProducersEditRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	type entry struct {
		part PartitionID
		id   int64
		st   producerState
	}
	var want []entry
	for range 30_000 {
		x := entry{PartitionID(rng.Uint32()), rng.Int64N(1 << rng.IntN(62)), newProducerState()}
		st := &x.st
		st.epoch, st.lastMs, st.coordinatorEpoch = int16(rng.IntN(math.MaxInt16)), rng.Int64N(1<<42), int32(rng.IntN(5))-1
		offset, seq, count := rng.Int64N(1<<40), int32(rng.Uint32()&math.MaxInt32), int32(1+rng.IntN(1000))
		if rng.IntN(10) == 0 {
			seq = math.MaxInt32 - int32(rng.IntN(3))
		}
		even := rng.IntN(2) == 0
		for range rng.IntN(producerBatches + 1) {
			if !even {
				offset += rng.Int64N(100)
				count = int32(1 + rng.IntN(1000))
			}
			st.batches[st.n] = producerBatch{offset, seq, count}
			st.n++
			offset, seq = offset+int64(count), addSequence(seq, count)
		}
		if st.lastOffset = offset + rng.Int64N(2); rng.IntN(3) == 0 {
			st.txnFirst = rng.Int64N(offset + 1)
		}
		want = append(want, x)
	}
	var w producersEdit
	for i := range want {
		w.add(want[i].part, want[i].id, &want[i].st)
	}
	edits := w.edits()
	if len(edits) < 2 {
		t.Errorf("%d edits", len(edits))
	}
	n := 0
	eachEdit(t, edits, editProducers, func(d *dec) {
		decodeProducers(d, func(part PartitionID, id int64, st producerState) {
			if got := (entry{part, id, st}); n < len(want) && got != want[n] {
				t.Fatalf("seed %d: entry %d: %+v, want %+v", seed, n, got, want[n])
			}
			n++
		})
	})
	if n != len(want) {
		t.Errorf("seed %d: %d entries, want %d", seed, n, len(want))
	}
}

func TestEpochsEditRoundTrip(t *testing.T) {
	var want, got []EpochRange
	var parts []PartitionID
	var w epochsEdit
	for i := range 100_000 {
		r := EpochRange{LeaderEpoch: int32(i % 7), Start: int64(i) * 1_000_003, End: int64(i)*1_000_003 + int64(i%13)}
		want, parts = append(want, r), append(parts, PartitionID(math.MaxUint32-i))
		w.add(parts[i], r)
	}
	edits := w.edits()
	if len(edits) < 2 {
		t.Errorf("%d edits", len(edits))
	}
	eachEdit(t, edits, editEpochs, func(d *dec) {
		decodeEpochs(d, func(part PartitionID, r EpochRange) {
			if part != parts[len(got)] {
				t.Fatalf("entry %d: partition %d, want %d", len(got), part, parts[len(got)])
			}
			got = append(got, r)
		})
	})
	if !reflect.DeepEqual(got, want) {
		t.Error("the epochs are others after reading")
	}
}

// An edit that was cut gives an error, and no entry that is not whole.
func TestCutManyEdits(t *testing.T) {
	st := producerState{epoch: 1, coordinatorEpoch: -1, lastOffset: 500, lastMs: 1000, txnFirst: -1, n: 1}
	st.batches[0] = producerBatch{500, 200, 1}
	var w producersEdit
	w.add(700, 3000, &st)
	var v epochsEdit
	v.add(700, EpochRange{300, 400, 500})
	whole := w.edits()[0].Payload
	for n := 1; n < len(whole); n++ {
		d := &dec{b: whole[:n]}
		decodeProducers(d, func(PartitionID, int64, producerState) { t.Errorf("%d bytes of %d: an entry", n, len(whole)) })
		if d.err == nil {
			t.Errorf("%d bytes of %d: no error", n, len(whole))
		}
	}
	whole = v.edits()[0].Payload
	for n := 1; n < len(whole); n++ {
		d := &dec{b: whole[:n]}
		decodeEpochs(d, func(PartitionID, EpochRange) { t.Errorf("%d bytes of %d: an epoch", n, len(whole)) })
		if d.err == nil {
			t.Errorf("%d bytes of %d: no error", n, len(whole))
		}
	}
}

// eachEdit hands edits of a kind to decode and looks that all of each is read.
func eachEdit(t *testing.T, edits []manifest.Edit, kind uint16, decode func(*dec)) {
	t.Helper()
	for _, e := range edits {
		if e.Kind != kind || len(e.Payload) > manyEditBytes {
			t.Errorf("kind %d with %d bytes", e.Kind, len(e.Payload))
		}
		d := &dec{b: e.Payload}
		if decode(d); d.err != nil || len(d.b) > 0 {
			t.Errorf("%v, %d bytes left", d.err, len(d.b))
		}
	}
}
