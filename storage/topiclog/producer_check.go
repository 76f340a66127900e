package topiclog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/storage/record"
)

// stagedKey names a producer in the group that is being laid out.
type stagedKey struct {
	part     PartitionID
	producer int64
}

// admit checks the batches of a request against what is known of their producers
// and stages what they change, for those that follow in the same group. base is
// the offset that they get. known says that the request was appended before:
// then it has its first offset in r.base.
//
// With many partitions there is seldom a second batch of one in a group: the first is
// checked against the published state, without a copy of it, and what it changes is staged
// only when a second one comes.
func (sh *shard) admit(r *request, base int64) (known bool, err error) {
	p := r.part
	if p.stagedIn == sh.staging && p.stagedBy != nil {
		first := p.stagedBy
		p.stagedBy = nil
		if _, err := sh.stage(first, first.base); err != nil {
			return false, err // its producer was forgotten meanwhile, by age
		}
	}
	if p.stagedIn == sh.staging || r.marker || r.count != 1 {
		p.stagedIn, p.stagedBy = sh.staging, nil
		return sh.stage(r, base)
	}
	h := *r.head
	h.BaseOffset = base
	sh.mu.Lock()
	base, known, err = p.tryProducer(&h, r.freshEpoch)
	sh.mu.Unlock()
	switch {
	case err != nil:
		return false, fmt.Errorf("appending to topic %s partition %d: %w", p.topic.name, p.index, err)
	case known:
		r.base = base
	default:
		p.stagedIn, p.stagedBy = sh.staging, r
	}
	return known, nil
}

// unstageAll forgets what the group does to producers.
func (sh *shard) unstageAll() {
	clear(sh.staged)
	sh.staging++
}

// tryProducer checks a batch against what is published of its producer. known says that
// it was appended before, at base; an error, that it is not the next one. The shard's
// mutex is held.
func (p *partition) tryProducer(h *record.Header, fresh bool) (base int64, known bool, err error) {
	var x *producer
	if p.producers != nil {
		x = p.producers.find(h.ProducerID)
	}
	if x == nil {
		none := newProducerState()
		return 0, false, none.check(h, fresh)
	}
	if b, dup := x.duplicate(h); dup {
		return b.base, true, nil
	}
	return 0, false, x.check(h, fresh)
}

// stage is admit for a request whose partition has others in the group, or that has
// more than one batch. These are of one producer, and staged when all are admitted.
func (sh *shard) stage(r *request, base int64) (known bool, err error) {
	var key stagedKey
	var st producerState
	first := true
	for rest := r.batches; len(rest) > 0; first = false {
		var h record.Header
		if r.count == 1 {
			h = *r.head
		} else if h, err = record.ParseHeader(rest); err != nil {
			return false, err // cannot be: it was parsed when it was handed in
		}
		size := h.Size()
		h.BaseOffset = base
		base += int64(h.LastOffsetDelta) + 1
		if first {
			key = stagedKey{r.part.id, h.ProducerID}
			st = sh.stateOf(r.part, key)
		}
		if first && size == len(rest) && !r.marker {
			if b, dup := st.duplicate(&h); dup {
				r.base = b.base
				return true, nil
			}
		}
		open := st.txnFirst >= 0
		if err := r.admit(&st, &h); err != nil {
			return false, fmt.Errorf("appending to topic %s partition %d: %w", r.part.topic.name, r.part.index, err)
		}
		if r.marker && !open {
			r.base = -1
			return true, nil // ended already
		}
		rest = rest[size:]
	}
	sh.staged[key] = st
	return false, nil
}

// stateOf is the state of a producer behind what the group has of it.
func (sh *shard) stateOf(p *partition, key stagedKey) producerState {
	if st, ok := sh.staged[key]; ok {
		return st
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return p.producerState(key.producer)
}

// admit checks one batch and applies it to the state.
func (r *request) admit(st *producerState, h *record.Header) error {
	if !r.marker {
		if err := st.check(h, r.freshEpoch); err != nil {
			return err
		}
		st.apply(h, 0)
		return nil
	}
	switch {
	case h.ProducerEpoch < st.epoch:
		return fmt.Errorf("%w: the marker of producer %d has epoch %d, the partition has seen %d", ErrProducerEpoch, h.ProducerID, h.ProducerEpoch, st.epoch)
	case r.coordinatorEpoch < st.coordinatorEpoch:
		return fmt.Errorf("%w: %d, the partition has seen %d", ErrCoordinatorEpoch, r.coordinatorEpoch, st.coordinatorEpoch)
	}
	st.applyMarker(h, r.coordinatorEpoch, 0)
	return nil
}

// ProducerInfo describes a producer of a partition.
type ProducerInfo struct {
	ProducerID int64
	Epoch      int16
	// LastSequence is that of its last record, -1 if it has none in its epoch.
	LastSequence int32
	// LastAppend is when its last batch or marker was appended.
	LastAppend time.Time
	// CoordinatorEpoch is that of the last marker, -1 without one.
	CoordinatorEpoch int32
	// TransactionStart is the first offset of its open transaction, -1 without
	// one.
	TransactionStart int64
}

// Producers describes the producers that a partition knows, by their ids.
func (s *Store) Producers(id PartitionID) ([]ProducerInfo, error) {
	p, err := s.partition(id)
	if err != nil {
		return nil, err
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if p.producers == nil {
		return nil, nil
	}
	var out []ProducerInfo
	for _, pid := range slices.Sorted(maps.Keys(p.producers.states)) {
		x := p.producers.states[pid]
		info := ProducerInfo{ProducerID: pid, Epoch: x.epoch, LastSequence: record.NoSequence, LastAppend: timeOf(x.lastMs),
			CoordinatorEpoch: x.coordinatorEpoch, TransactionStart: x.txnFirst}
		if x.n > 0 {
			info.LastSequence = x.batches[x.n-1].lastSeq()
		}
		out = append(out, info)
	}
	return out, nil
}

// ExpireProducers forgets producers that appended nothing for the time of
// Options.ProducerExpiration and have no open transaction, and returns how many.
// The store does so by itself.
func (s *Store) ExpireProducers() int {
	n := 0
	for _, sh := range s.shards {
		n += sh.expireProducers(s.opts.ProducerExpiration)
	}
	return n
}

func (sh *shard) expireProducers(age time.Duration) int {
	now := sh.s.nowMs()
	sh.s.mu.RLock()
	parts := slices.Clone(sh.s.parts)
	sh.s.mu.RUnlock()
	n := 0
	for _, p := range parts {
		if p == nil || p.shard != sh {
			continue
		}
		sh.mu.Lock()
		if ps := p.producers; ps != nil {
			for id, x := range ps.states {
				if x.txnFirst < 0 && now-x.lastMs >= age.Milliseconds() {
					ps.forget(id)
					n++
				}
			}
			if len(ps.states) == 0 && len(ps.aborted) == 0 && !ps.listed {
				p.producers = nil
			}
		}
		sh.mu.Unlock()
	}
	sh.mu.Lock()
	sh.producers -= n
	sh.mu.Unlock()
	return n
}

// boundProducers forgets the idlest producers when there are too many. The
// writer calls it between groups.
func (sh *shard) boundProducers(now time.Time) {
	age := sh.s.opts.ProducerExpiration
	for now.Sub(sh.bounded) > time.Second {
		sh.mu.Lock()
		over := sh.producers > sh.s.opts.MaxProducers/len(sh.s.shards)
		sh.mu.Unlock()
		if !over {
			return
		}
		if age /= 2; age < time.Second {
			sh.bounded = now
			sh.s.opts.Logger.Warn("more producers at once than the bound", "shard", sh.number, "bound", sh.s.opts.MaxProducers)
			return
		}
		sh.expireProducers(age)
	}
}

// producerIDBlock is how many producer ids are taken with one commit. What is
// left of it when the process ends is never given.
const producerIDBlock = 1000

// AllocateProducerID returns a producer id that was never returned before, also
// not before a crash.
func (s *Store) AllocateProducerID(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s.closed.Load() {
		return 0, ErrClosed
	}
	s.producerIDs.mu.Lock()
	defer s.producerIDs.mu.Unlock()
	if s.producerIDs.next == s.producerIDs.end {
		end := s.producerIDs.end + producerIDBlock
		err := s.meta.commit(func() { s.producerIDs.durable.Store(end) }, producerIDsEdit(end))
		if err != nil {
			return 0, fmt.Errorf("allocating producer ids: %w", err)
		}
		s.producerIDs.end = end
	}
	id := s.producerIDs.next
	s.producerIDs.next++
	return id, nil
}
