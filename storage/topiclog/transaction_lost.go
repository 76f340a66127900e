package topiclog

import (
	"fmt"
	"slices"
)

// When damage takes the marker that ends a transaction, the transaction would stay
// open for ever: readers of committed records would wait, and the producer's next
// marker would end both at once. If the log goes on with a later epoch of the
// producer, recovery sees that an end is missing (dropEndless). If it does not, the
// coordinator knows whether the transaction is over, and mostly how it ended.

// finishEndless ends, at opening, what is open in damaged partitions although its
// coordinator says that it is over, and reports all transactions whose end is lost.
func (s *Store) finishEndless() {
	lost := map[PartitionID]int64{} // the last offset that is lost
	for _, d := range s.recovery.Damage {
		if d.Topic != "" {
			lost[d.Partition] = max(lost[d.Partition], d.To)
		}
	}
	s.mu.RLock()
	parts := slices.Clone(s.parts)
	s.mu.RUnlock()
	for _, p := range parts {
		if p == nil {
			continue
		}
		p.shard.mu.Lock()
		last := lost[p.id]
		if n := len(p.damage); n > 0 {
			last = max(last, p.damage[n-1].To)
		}
		var endless []AbortedTransaction
		var open []openTransaction
		epochs := map[int64]int16{}
		if ps := p.producers; ps != nil {
			endless, ps.endless = ps.endless, nil
			for _, o := range ps.open {
				if o.first < last {
					open = append(open, o)
					epochs[o.producer] = ps.states[o.producer].epoch
				}
			}
		}
		p.shard.mu.Unlock()
		for _, a := range endless {
			s.reportEndless(p, a.ProducerID, a.FirstOffset, a.LastOffset-1, "aborted")
		}
		for _, o := range open {
			who, commit, over := s.outcome(p.id, ProducerIdentity{o.producer, epochs[o.producer]})
			if !over {
				continue
			}
			// Damage of the disk must not keep the store from opening.
			done := make(chan error, 1)
			s.appendMarker(p, who, commit, 0, func(_ AppendResult, err error) { done <- err })
			if err := <-done; err != nil {
				s.opts.Logger.Error("ending a transaction failed", "topic", p.topic.name, "partition", p.index, "producer", who.ID, "error", err)
				continue
			}
			how := "aborted"
			if commit {
				how = "committed"
			}
			s.reportEndless(p, o.producer, o.first, last, how)
		}
	}
}

func (s *Store) reportEndless(p *partition, producer, from, to int64, how string) {
	d := Damage{Kind: DamageRotten, Topic: p.topic.name, Index: p.index, Partition: p.id, From: from, To: to,
		Detail: fmt.Sprintf("the end of the transaction of producer %d is lost; what is left of it counts as %s", producer, how)}
	s.recovery.Damage = append(s.recovery.Damage, d)
	s.opts.Logger.Warn("damage found", "damage", d.String())
}

// outcome says what is known of a transaction that a partition has open: whether it
// is over, how it ended, and as whom to end it. Without anything known it was
// aborted: aborted records must never be read.
func (s *Store) outcome(id PartitionID, who ProducerIdentity) (as ProducerIdentity, commit, over bool) {
	s.txns.mu.Lock()
	defer s.txns.mu.Unlock()
	for _, t := range s.txns.byID {
		st := t.state
		if st == nil || st.who.ID != who.ID {
			continue
		}
		switch {
		case st.state.prepared():
			return who, false, false // its end will be written again
		case st.state == TransactionOngoing && st.parts[id] && st.who.Epoch == who.Epoch:
			return who, false, false
		case st.state == TransactionCompleteCommit && st.who.Epoch == who.Epoch+1:
			// Each end raises the epoch: this is the one.
			return st.who, true, true
		}
		return ProducerIdentity{who.ID, max(st.who.Epoch, who.Epoch)}, false, true
	}
	return who, false, true
}
