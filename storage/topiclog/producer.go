package topiclog

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/storage/record"
)

// producerBatches is how many of a producer's last batches are known again. A
// client sends at most that many without an answer.
const producerBatches = 5

// producerBatch is one of a producer's last batches.
type producerBatch struct {
	base  int64 // its first offset
	seq   int32 // of its first record
	count int32
}

func (b *producerBatch) lastSeq() int32 { return addSequence(b.seq, b.count-1) }

// addSequence adds to a sequence number, which wraps to 0 after 2^31-1.
func addSequence(seq, n int32) int32 { return int32((int64(seq) + int64(n)) & 0x7fffffff) }

// producerState is what a partition knows of a producer after some batch of its.
type producerState struct {
	// lastOffset is the last offset that the state knows of, -1 if none: what
	// lies at or before it is in the state already.
	lastOffset int64
	// lastMs is the append time of that batch or marker.
	lastMs int64
	// txnFirst is the first offset of the open transaction, -1 without one.
	txnFirst         int64
	coordinatorEpoch int32 // of the last marker, -1 if none
	epoch            int16 // -1 if none
	n                uint8 // how many of batches there are
	batches          [producerBatches]producerBatch
}

func newProducerState() producerState {
	return producerState{lastOffset: -1, txnFirst: -1, coordinatorEpoch: -1, epoch: record.NoProducerEpoch}
}

// setEpoch forgets the batches of another epoch.
func (st *producerState) setEpoch(epoch int16) {
	if st.epoch != epoch {
		st.epoch, st.n = epoch, 0
	}
}

// unended says that a batch in the log proves that the open transaction has
// ended, although its marker was not seen: it was lost to damage.
func (st *producerState) unended(h *record.Header) bool {
	return st.txnFirst >= 0 && h.ProducerEpoch > st.epoch && !h.Attributes.Control()
}

// apply takes in a batch that is in the log.
func (st *producerState) apply(h *record.Header, timeMs int64) {
	if st.unended(h) {
		st.txnFirst = -1
	}
	st.setEpoch(h.ProducerEpoch)
	if st.n == producerBatches {
		copy(st.batches[:], st.batches[1:])
		st.n--
	}
	st.batches[st.n] = producerBatch{base: h.BaseOffset, seq: h.BaseSequence, count: h.LastOffsetDelta + 1}
	st.n++
	if h.Attributes.Transactional() && st.txnFirst < 0 {
		st.txnFirst = h.BaseOffset
	}
	st.lastOffset, st.lastMs = h.LastOffset(), timeMs
}

// applyMarker takes in the end of a transaction and returns the transaction's
// first offset, -1 if none was open.
func (st *producerState) applyMarker(h *record.Header, coordinatorEpoch int32, timeMs int64) (first int64) {
	st.setEpoch(h.ProducerEpoch)
	st.coordinatorEpoch = max(st.coordinatorEpoch, coordinatorEpoch)
	first, st.txnFirst = st.txnFirst, -1
	st.lastOffset, st.lastMs = h.LastOffset(), timeMs
	return first
}

// duplicate finds a batch that was appended already.
func (st *producerState) duplicate(h *record.Header) (producerBatch, bool) {
	if h.ProducerEpoch == st.epoch {
		for _, b := range st.batches[:st.n] {
			if b.seq == h.BaseSequence && b.lastSeq() == h.LastSequence() {
				return b, true
			}
		}
	}
	return producerBatch{}, false
}

// check applies the rules for the next data batch of a producer. fresh says that
// a producer that is not known must begin with sequence 0: one that has begun a
// new epoch for its transaction.
func (st *producerState) check(h *record.Header, fresh bool) error {
	switch {
	case st.epoch == record.NoProducerEpoch:
		// Nothing is known: its records are gone by age. Any sequence goes.
		if fresh && h.BaseSequence != 0 {
			return &SequenceError{ProducerID: h.ProducerID, Epoch: h.ProducerEpoch, Sequence: h.BaseSequence, Want: 0}
		}
		return nil
	case h.ProducerEpoch < st.epoch:
		return fmt.Errorf("%w: producer %d has epoch %d, the partition has seen %d", ErrProducerEpoch, h.ProducerID, h.ProducerEpoch, st.epoch)
	}
	want := int32(0)
	if h.ProducerEpoch == st.epoch && st.n > 0 {
		want = addSequence(st.batches[st.n-1].lastSeq(), 1)
	}
	if h.BaseSequence != want {
		return &SequenceError{ProducerID: h.ProducerID, Epoch: h.ProducerEpoch, Sequence: h.BaseSequence, Want: want}
	}
	if st.txnFirst >= 0 && !h.Attributes.Transactional() {
		return fmt.Errorf("%w: producer %d has an open transaction and sent records outside it", ErrTransactionState, h.ProducerID)
	}
	return nil
}

// producer is what is known now, and what of it the manifest may say.
type producer struct {
	producerState
	// flushed, if not nil, is the state after the batches that are in segments:
	// the manifest does not have the present one yet, and the producer is in the
	// partition's fresh ones.
	flushed *producerState
}

// producers are the producers of a partition and their transactions. The shard's
// mutex guards them.
type producers struct {
	states map[int64]*producer
	// last is the producer that was looked for last: most partitions have one.
	last   *producer
	lastID int64
	// fresh are those of which the manifest does not have the present state.
	fresh []freshState
	// open are the transactions without an end, by their first offset.
	open []openTransaction
	// aborted are those that readers of committed records skip, by their last
	// offset; the last freshAborted are not in the manifest.
	aborted      []AbortedTransaction
	freshAborted int
	listed       bool // in shard.freshProducers
	// endless are transactions whose markers are lost, found by recovery.
	endless []AbortedTransaction
}

type freshState struct {
	id int64
	x  *producer
}

// find returns a producer, nil if it is not known.
func (ps *producers) find(id int64) *producer {
	if ps.last != nil && ps.lastID == id {
		return ps.last
	}
	x := ps.states[id]
	if x != nil {
		ps.last, ps.lastID = x, id
	}
	return x
}

// forget drops what is known of a producer without an open transaction.
func (ps *producers) forget(id int64) {
	delete(ps.states, id)
	ps.last = nil
	ps.fresh = slices.DeleteFunc(ps.fresh, func(f freshState) bool { return f.id == id })
}

type openTransaction struct{ producer, first int64 }

// AbortedTransaction says that the records of a producer from FirstOffset to the
// marker at LastOffset were never committed.
type AbortedTransaction struct {
	ProducerID              int64
	FirstOffset, LastOffset int64
	// stable is the last stable offset after the end: no later one in the list
	// begins before it.
	stable int64
}

func (p *partition) producersOrNew() *producers {
	if p.producers == nil {
		p.producers = &producers{states: map[int64]*producer{}}
	}
	return p.producers
}

// producerState copies what is known of a producer.
func (p *partition) producerState(id int64) producerState {
	if p.producers != nil {
		if x := p.producers.find(id); x != nil {
			return x.producerState
		}
	}
	return newProducerState()
}

// stableEnd is the last stable offset: records below it belong to no open
// transaction.
func (p *partition) stableEnd() int64 {
	if p.producers == nil || len(p.producers.open) == 0 {
		return p.end
	}
	return min(max(p.producers.open[0].first, p.start), p.end)
}

// noteProducers takes in what the batches, which are in the log now, say of their
// producers. The end of the partition must count them already.
func (p *partition) noteProducers(batches []byte, timeMs int64) {
	for len(batches) > 0 {
		b, rest, err := record.SplitUnverified(batches)
		if err != nil {
			return // cannot be: it was parsed when it was handed in
		}
		batches = rest
		if b.ProducerID != record.NoProducerID {
			p.noteProducer(&b.Header, b.Raw, timeMs)
		}
	}
}

// noteProducer takes in one batch; raw, the whole of it, is needed of markers.
func (p *partition) noteProducer(b *record.Header, raw []byte, timeMs int64) {
	ps := p.producersOrNew()
	x := ps.find(b.ProducerID)
	if x == nil {
		x = &producer{producerState: newProducerState()}
		ps.states[b.ProducerID] = x
		p.shard.producers++
	}
	if b.LastOffset() <= x.lastOffset {
		return
	}
	if x.flushed == nil {
		x.flushed = p.shard.spareState()
		*x.flushed = x.producerState
		ps.fresh = append(ps.fresh, freshState{b.ProducerID, x})
	}
	if !ps.listed {
		ps.listed = true
		p.shard.freshProducers = append(p.shard.freshProducers, p)
	}
	if !b.Attributes.Control() {
		if x.unended(b) {
			p.dropEndless(x, b.ProducerID)
		}
		begun := x.txnFirst < 0
		x.apply(b, timeMs)
		if begun && x.txnFirst >= 0 {
			ps.open = append(ps.open, openTransaction{b.ProducerID, x.txnFirst})
		}
		return
	}
	kind, coordinatorEpoch, ok := parseMarker(record.Batch{Header: *b, Raw: raw})
	if !ok {
		return
	}
	first := x.applyMarker(b, coordinatorEpoch, timeMs)
	if first < 0 {
		return
	}
	ps.close(b.ProducerID)
	a := AbortedTransaction{ProducerID: b.ProducerID, FirstOffset: first, LastOffset: b.BaseOffset, stable: min(p.stableEnd(), b.LastOffset()+1)}
	if kind == record.ControlAbort && !ps.knows(&a) {
		ps.aborted = append(ps.aborted, a)
		ps.freshAborted++
	}
}

// knows reports that the manifest has an aborted transaction already: a flush that a
// crash ended has written it down before the state of its producer.
func (ps *producers) knows(a *AbortedTransaction) bool {
	for i := len(ps.aborted) - 1; i >= 0 && ps.aborted[i].LastOffset >= a.LastOffset; i-- {
		if x := &ps.aborted[i]; x.ProducerID == a.ProducerID && x.FirstOffset == a.FirstOffset && x.LastOffset == a.LastOffset {
			return true
		}
	}
	return false
}

// dropEndless takes a transaction whose marker is lost for aborted: records that
// were aborted must never be read, and how it ended is not known. It reaches to the
// damage that took the marker: no reader gets batches from both sides of that, so
// one that looks for the marker does not miss it.
func (p *partition) dropEndless(x *producer, id int64) {
	ps := p.producers
	a := AbortedTransaction{ProducerID: id, FirstOffset: x.txnFirst, LastOffset: x.lastOffset + 1}
	if i := p.nextDamage(x.lastOffset); i >= 0 {
		a.LastOffset = i
	}
	x.txnFirst = -1
	ps.close(id)
	// By their ends; what is open now may have begun before this one.
	a.stable = min(p.stableEnd(), a.LastOffset+1)
	at := len(ps.aborted)
	for at > 0 && ps.aborted[at-1].LastOffset >= a.LastOffset {
		at--
	}
	for _, later := range ps.aborted[at:] {
		a.stable = min(a.stable, later.FirstOffset)
	}
	if !ps.knows(&a) {
		ps.aborted = slices.Insert(ps.aborted, at, a)
		ps.freshAborted++
	}
	ps.endless = append(ps.endless, a)
}

// close takes a transaction out of the open ones.
func (ps *producers) close(id int64) {
	for i := range ps.open {
		if ps.open[i].producer == id {
			ps.open = append(ps.open[:i], ps.open[i+1:]...)
			return
		}
	}
}

// parseMarker reads the end of a transaction from a control batch; ok is false
// for other kinds of control batches.
func parseMarker(b record.Batch) (kind record.ControlType, coordinatorEpoch int32, ok bool) {
	var d record.Decoder
	defer d.Close()
	it, err := d.Records(b)
	var r record.Record
	if err != nil || !it.Next(&r) {
		return 0, 0, false
	}
	kind, coordinatorEpoch, err = record.ParseControl(&r)
	return kind, coordinatorEpoch, err == nil && (kind == record.ControlAbort || kind == record.ControlCommit)
}

// setProducer takes a state from the manifest.
func (p *partition) setProducer(id int64, st producerState) {
	ps := p.producersOrNew()
	if ps.states[id] == nil {
		p.shard.producers++
	}
	ps.states[id] = &producer{producerState: st}
	ps.last = nil
	ps.close(id)
	if st.txnFirst >= 0 {
		i := len(ps.open)
		for i > 0 && ps.open[i-1].first > st.txnFirst {
			i--
		}
		ps.open = append(ps.open, openTransaction{})
		copy(ps.open[i+1:], ps.open[i:])
		ps.open[i] = openTransaction{id, st.txnFirst}
	}
}

// setAborted takes an aborted transaction from the manifest.
func (p *partition) setAborted(a AbortedTransaction) {
	ps := p.producersOrNew()
	if n := len(ps.aborted); n > 0 && ps.aborted[n-1].LastOffset >= a.LastOffset {
		return // known already
	}
	ps.aborted = append(ps.aborted, a)
}
