package topiclog

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/storage/manifest"
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
	// the manifest does not have the present one yet.
	flushed *producerState
}

// producers are the producers of a partition and their transactions. The shard's
// mutex guards them.
type producers struct {
	states map[int64]*producer
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
		if x := p.producers.states[id]; x != nil {
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
			p.noteProducer(&b, timeMs)
		}
	}
}

func (p *partition) noteProducer(b *record.Batch, timeMs int64) {
	ps := p.producersOrNew()
	x := ps.states[b.ProducerID]
	if x == nil {
		x = &producer{producerState: newProducerState()}
		ps.states[b.ProducerID] = x
		p.shard.producers++
	}
	if b.LastOffset() <= x.lastOffset {
		return
	}
	if x.flushed == nil {
		before := x.producerState
		x.flushed = &before
	}
	if !ps.listed {
		ps.listed = true
		p.shard.freshProducers = append(p.shard.freshProducers, p)
	}
	if !b.Attributes.Control() {
		if x.unended(&b.Header) {
			p.dropEndless(x, b.ProducerID)
		}
		begun := x.txnFirst < 0
		x.apply(&b.Header, timeMs)
		if begun && x.txnFirst >= 0 {
			ps.open = append(ps.open, openTransaction{b.ProducerID, x.txnFirst})
		}
		return
	}
	kind, coordinatorEpoch, ok := parseMarker(b)
	if !ok {
		return
	}
	first := x.applyMarker(&b.Header, coordinatorEpoch, timeMs)
	if first < 0 {
		return
	}
	ps.close(b.ProducerID)
	if kind == record.ControlAbort {
		ps.aborted = append(ps.aborted, AbortedTransaction{ProducerID: b.ProducerID, FirstOffset: first, LastOffset: b.BaseOffset,
			stable: min(p.stableEnd(), b.LastOffset()+1)})
		ps.freshAborted++
	}
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
	ps.aborted = slices.Insert(ps.aborted, at, a)
	ps.freshAborted++
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
func parseMarker(b *record.Batch) (kind record.ControlType, coordinatorEpoch int32, ok bool) {
	var d record.Decoder
	defer d.Close()
	it, err := d.Records(*b)
	var r record.Record
	if err != nil || !it.Next(&r) {
		return 0, 0, false
	}
	kind, coordinatorEpoch, err = record.ParseControl(&r)
	return kind, coordinatorEpoch, err == nil && (kind == record.ControlAbort || kind == record.ControlCommit)
}

// applyTo brings states, by producer, up to the end of the batches. It changes
// only those that are given.
func applyTo(states map[int64]*producerState, batches []byte, timeMs int64) {
	for len(batches) > 0 {
		b, rest, err := record.SplitUnverified(batches)
		if err != nil {
			return
		}
		batches = rest
		st := states[b.ProducerID]
		if st == nil || b.LastOffset() <= st.lastOffset {
			continue
		}
		if !b.Attributes.Control() {
			st.apply(&b.Header, timeMs)
		} else if _, coordinatorEpoch, ok := parseMarker(&b); ok {
			st.applyMarker(&b.Header, coordinatorEpoch, timeMs)
		}
	}
}

// flushedStates are the states that the manifest lacks, as of the segments.
func (ps *producers) flushedStates() map[int64]*producerState {
	out := make(map[int64]*producerState, len(ps.states))
	for id, x := range ps.states {
		if x.flushed != nil {
			st := *x.flushed
			out[id] = &st
		}
	}
	return out
}

// settleFlushed says that the manifest has these states.
func (ps *producers) settleFlushed(states map[int64]*producerState) {
	for id, st := range states {
		x := ps.states[id]
		if x == nil || x.flushed == nil {
			continue
		}
		switch {
		case st.lastOffset == x.lastOffset:
			x.flushed = nil
		case st.lastOffset > x.flushed.lastOffset:
			x.flushed = st
		}
	}
}

// trimProducers keeps the books right before the cached batches are dropped for
// lying below the partition's start: a flush will not see them.
func (p *partition) trimProducers(dropped []cached) {
	ps := p.producers
	if ps == nil {
		return
	}
	for i := range dropped {
		if !ps.listed {
			break
		}
		states := ps.flushedStates()
		applyTo(states, dropped[i].bytes(), dropped[i].timeMs)
		for id, st := range states {
			ps.states[id].flushed = st
		}
	}
	n := 0
	for n < len(ps.aborted) && ps.aborted[n].LastOffset < p.start {
		n++
	}
	if n > 0 {
		ps.aborted = append([]AbortedTransaction(nil), ps.aborted[n:]...)
		ps.freshAborted = min(ps.freshAborted, len(ps.aborted))
	}
}

// freshProducer is what a flush writes down of a partition's producers.
type freshProducer struct {
	p       *partition
	states  map[int64]*producerState
	batches []cached
	limit   int64
	aborted []AbortedTransaction
}

// takeProducers begins to write down the producers of the batches up to the
// group; mu is held.
func (sh *shard) takeProducers(through uint64) []freshProducer {
	var out []freshProducer
	for _, p := range sh.freshProducers {
		if p.dead.Load() || p.producers == nil {
			continue
		}
		ps := p.producers
		n := 0
		for n < len(p.recent) && p.recent[n].seq <= through {
			n++
		}
		f := freshProducer{p: p, states: ps.flushedStates(), batches: p.recent[:n:n], limit: p.unflushed(through)}
		for _, a := range ps.aborted[len(ps.aborted)-ps.freshAborted:] {
			if a.LastOffset < f.limit {
				f.aborted = append(f.aborted, a)
			}
		}
		out = append(out, f)
	}
	return out
}

// edits brings the states to the end of what is flushed and returns them for the
// manifest. It reads the batches, so it takes no lock.
func (f *freshProducer) edits(out []manifest.Edit) []manifest.Edit {
	for i := range f.batches {
		applyTo(f.states, f.batches[i].bytes(), f.batches[i].timeMs)
	}
	for id, st := range f.states {
		if st.lastOffset >= 0 {
			out = append(out, producerEdit(f.p.id, id, st))
		}
	}
	for i := range f.aborted {
		out = append(out, abortedEdit(f.p.id, &f.aborted[i]))
	}
	return out
}

// settle notes what the manifest has by now; the shard's mutex is held. It
// reports whether there is more to write down.
func (f *freshProducer) settle() {
	ps := f.p.producers
	if ps == nil {
		return
	}
	ps.settleFlushed(f.states)
	ps.freshAborted = 0
	for n := len(ps.aborted); n > 0 && ps.aborted[n-1].LastOffset >= f.limit; n-- {
		ps.freshAborted++
	}
}

// settleProducers forgets the partitions of which the manifest knows all; mu is
// held.
func (sh *shard) settleProducers(fs []freshProducer) {
	for i := range fs {
		fs[i].settle()
	}
	kept := sh.freshProducers[:0]
	for _, p := range sh.freshProducers {
		if p.dead.Load() || p.producers == nil {
			continue
		}
		more := p.producers.freshAborted > 0
		for _, x := range p.producers.states {
			more = more || x.flushed != nil
		}
		if p.producers.listed = more; more {
			kept = append(kept, p)
		}
	}
	clear(sh.freshProducers[len(kept):])
	sh.freshProducers = kept
}

// dumpProducers appends what segments say of the producers.
func (p *partition) dumpProducers(all *[]manifest.Edit) {
	ps := p.producers
	if ps == nil {
		return
	}
	for id, x := range ps.states {
		st := &x.producerState
		if x.flushed != nil {
			st = x.flushed
		}
		if st.lastOffset >= 0 {
			*all = append(*all, producerEdit(p.id, id, st))
		}
	}
	for i := range len(ps.aborted) - ps.freshAborted {
		*all = append(*all, abortedEdit(p.id, &ps.aborted[i]))
	}
}

// setProducer takes a state from the manifest.
func (p *partition) setProducer(id int64, st producerState) {
	ps := p.producersOrNew()
	if ps.states[id] == nil {
		p.shard.producers++
	}
	ps.states[id] = &producer{producerState: st}
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
