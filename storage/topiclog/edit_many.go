package topiclog

import (
	"math"

	"github.com/millrace/millrace/storage/manifest"
)

// What each flush says of each of its partitions goes into few edits with many short
// entries: with tens of thousands of partitions of few records each, an edit of its
// own for each would be as much work as the records.

// manyEditBytes is the size at which such an edit ends and another begins.
const manyEditBytes = 256 << 10

// producersEdit makes edits of kind editProducers. The zero value is ready.
type producersEdit struct {
	e    enc
	part PartitionID // of the entry before, as id and ms
	id   int64
	ms   int64
	done []manifest.Edit
}

// producerEntryBytes bounds an entry.
const producerEntryBytes = 200

// add appends what segments say of a producer of a partition. A state without batches
// says nothing.
func (w *producersEdit) add(part PartitionID, id int64, st *producerState) {
	if st.lastOffset < 0 {
		return
	}
	if len(w.e.b) > manyEditBytes-producerEntryBytes {
		w.end()
	}
	e := &w.e
	e.i(int64(part) - int64(w.part))
	e.i(id - w.id)
	e.i(st.lastMs - w.ms)
	w.part, w.id, w.ms = part, id, st.lastMs
	e.i(int64(st.epoch))
	e.i(int64(st.coordinatorEpoch))
	e.i(st.lastOffset)
	e.i(st.txnFirst)
	n, even := int(st.n), st.even()
	e.u(uint64(n)<<1 | b2u(even))
	// From the last batch back: where each is said relative to the next.
	base, seq := st.lastOffset+1, int32(0)
	for i := n - 1; i >= 0; i-- {
		b := &st.batches[i]
		e.i(base - b.base - int64(b.count))
		if i == n-1 {
			e.i(int64(b.seq))
		} else {
			e.i(int64(seq) - int64(addSequence(b.seq, b.count)))
		}
		e.i(int64(b.count))
		if base, seq = b.base, b.seq; even {
			break
		}
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// even says that the batches are as many records each, one behind the other: then the
// last tells the others.
func (st *producerState) even() bool {
	for i := 1; i < int(st.n); i++ {
		a, b := &st.batches[i-1], &st.batches[i]
		if a.count != b.count || a.base+int64(a.count) != b.base || addSequence(a.seq, a.count) != b.seq {
			return false
		}
	}
	return st.n > 0
}

func (w *producersEdit) end() {
	if len(w.e.b) > 0 {
		w.done = append(w.done, w.e.edit(editProducers))
	}
	*w = producersEdit{done: w.done}
}

// edits returns what was added.
func (w *producersEdit) edits() []manifest.Edit {
	w.end()
	return w.done
}

// decodeProducers hands the entries of an edit to apply.
func decodeProducers(d *dec, apply func(part PartitionID, id int64, st producerState)) {
	var part, id, ms int64
	for len(d.b) > 0 && d.err == nil {
		part += d.i()
		id += d.i()
		ms += d.i()
		st := producerState{lastMs: ms, epoch: int16(d.i()), coordinatorEpoch: int32(d.i()), lastOffset: d.i(), txnFirst: d.i()}
		flags := d.u()
		n, even := flags>>1, flags&1 != 0
		if n > producerBatches || even && n == 0 || part < 0 || part > math.MaxUint32 {
			d.fail("the batches of a producer")
			return
		}
		st.n = uint8(n)
		base, seq := st.lastOffset+1, int32(0)
		for i := int(n) - 1; i >= 0; i-- {
			b := &st.batches[i]
			gap, s := int64(0), int64(0)
			if last := i == int(n)-1; last || !even {
				gap, s, b.count = d.i(), d.i(), int32(d.i())
			} else {
				b.count = st.batches[i+1].count
			}
			b.base = base - gap - int64(b.count)
			if i == int(n)-1 {
				b.seq = int32(s)
			} else {
				b.seq = addSequence(int32(int64(seq)-s), -b.count)
			}
			base, seq = b.base, b.seq
		}
		if d.err == nil {
			apply(PartitionID(part), id, st)
		}
	}
}

// epochsEdit makes edits of kind editEpochs. The zero value is ready.
type epochsEdit struct {
	e     enc
	part  PartitionID // of the entry before, as epoch
	epoch int32
	done  []manifest.Edit
}

// epochEntryBytes bounds an entry.
const epochEntryBytes = 40

// add appends a leader epoch's range in a partition.
func (w *epochsEdit) add(part PartitionID, r EpochRange) {
	if len(w.e.b) > manyEditBytes-epochEntryBytes {
		w.end()
	}
	w.e.i(int64(part) - int64(w.part))
	w.e.i(int64(r.LeaderEpoch) - int64(w.epoch))
	w.e.i(r.Start)
	w.e.i(r.End - r.Start)
	w.part, w.epoch = part, r.LeaderEpoch
}

func (w *epochsEdit) end() {
	if len(w.e.b) > 0 {
		w.done = append(w.done, w.e.edit(editEpochs))
	}
	*w = epochsEdit{done: w.done}
}

// edits returns what was added.
func (w *epochsEdit) edits() []manifest.Edit {
	w.end()
	return w.done
}

// decodeEpochs hands the entries of an edit to apply.
func decodeEpochs(d *dec, apply func(PartitionID, EpochRange)) {
	var part, epoch int64
	for len(d.b) > 0 && d.err == nil {
		part += d.i()
		epoch += d.i()
		start := d.i()
		r := EpochRange{LeaderEpoch: int32(epoch), Start: start, End: start + d.i()}
		if part < 0 || part > math.MaxUint32 {
			d.fail("a partition")
		}
		if d.err == nil {
			apply(PartitionID(part), r)
		}
	}
}
