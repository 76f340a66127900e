package logtopic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/topiclog"
)

// each calls f for the artefacts of each writer in turn, with the writer's state
// locked; indexes are those in as. Artefacts that f is not called for have err.
func (s *sink) each(ctx context.Context, as []connector.Artifact, fail func(i int, err error), f func(st *laneState, idx []int, ps []*payload)) {
	var keys []laneKey
	byKey := map[laneKey][]int{}
	for i := range as {
		k := laneKeyOf(as[i].Header.ID)
		if byKey[k] == nil {
			keys = append(keys, k)
		}
		byKey[k] = append(byKey[k], i)
	}
	for _, k := range keys {
		var idx []int
		var ps []*payload
		for _, i := range byKey[k] {
			p, err := decodePayload(as[i].Payload)
			if err != nil {
				fail(i, fmt.Errorf("artefact %s: %w", as[i].Header.ID, err))
				continue
			}
			idx, ps = append(idx, i), append(ps, p)
		}
		if len(idx) == 0 {
			continue
		}
		st := s.lanes.lane(s.topic.ID, k)
		if err := st.lock(ctx); err != nil {
			for _, i := range idx {
				fail(i, err)
			}
			continue
		}
		f(st, idx, ps)
		st.unlock()
	}
}

// Publish implements connector.Committer: one append an artefact, all under way
// together. Those of one partition keep their order.
func (s *sink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, len(as))
	s.each(ctx, as, func(i int, err error) { errs[i] = err }, func(st *laneState, idx []int, ps []*payload) {
		// Invariant 9: asked with the state locked, so that whoever claims the
		// topic afterwards finds this append or keeps it from beginning.
		if err := s.lanes.fenced(s.topic.ID, s.owner); err != nil {
			for _, i := range idx {
				errs[i] = err
			}
			return
		}
		s.publish(ctx, st, as, idx, ps, errs)
	})
	return errs
}

type appended struct {
	n   int // index into idx
	res topiclog.AppendResult
	err error
}

func (s *sink) publish(ctx context.Context, st *laneState, as []connector.Artifact, idx []int, ps []*payload, errs []error) {
	done := make(chan appended, len(idx))
	pending := 0
	begun := map[point]bool{} // an artefact may be named twice
	for n, i := range idx {
		h, p := &as[i].Header, ps[n]
		if begun[pointOf(h.ID)] {
			errs[i] = fmt.Errorf("artefact %s is named twice", h.ID)
			continue
		}
		batches, ok, err := s.toAppend(ctx, st, h, p)
		if err != nil || !ok {
			errs[i] = err
			continue
		}
		pending++
		begun[pointOf(h.ID)] = true
		s.store.AppendAsync(topiclog.AppendRequest{Partition: p.partition, Batches: batches, Trusted: true,
			NoteKey: st.key, Note: encodeNote(h)}, func(res topiclog.AppendResult, err error) { done <- appended{n, res, err} })
	}
	results := make([]appended, 0, pending)
	for range pending {
		results = append(results, <-done)
	}
	slices.SortFunc(results, func(a, b appended) int { return int(a.res.LastOffset - b.res.LastOffset) })
	for _, r := range results {
		i := idx[r.n]
		errs[i] = s.appended(ctx, st, &as[i].Header, ps[r.n], r)
	}
}

// toAppend decides about one artefact; false without an error: it is published.
func (s *sink) toAppend(ctx context.Context, st *laneState, h *connector.Header, p *payload) (batches []byte, ok bool, err error) {
	at := pointOf(h.ID)
	found, err := s.look(ctx, st, p, at)
	switch {
	case errors.Is(err, topiclog.ErrPartitionNotFound):
		return nil, false, refused(fmt.Errorf("topic %s partition %d: %w", s.topic.Name, p.index, err))
	case err != nil:
		return nil, false, err
	case found:
		return nil, false, nil
	case st.doubtful[at] != nil:
		return nil, false, fmt.Errorf("an append to topic %s ended without an answer: %w", s.topic.Name, st.doubtful[at])
	case st.discarded[at]:
		return nil, false, refused(fmt.Errorf("artefact %s was discarded", h.ID))
	case p.batches != nil:
		return p.batches, true, nil
	}
	sealed := st.sealed[at]
	if sealed == nil {
		return nil, false, refused(fmt.Errorf("artefact %s is not sealed any more", h.ID))
	}
	return sealed.batches, true, nil
}

func refused(err error) error { return errors.Join(err, connector.ErrRefused) }

// look reports whether the log has an artefact's note, durably.
func (s *sink) look(ctx context.Context, st *laneState, p *payload, at point) (bool, error) {
	notes, err := st.notesOf(s.store, p.partition)
	if err != nil {
		return false, err
	}
	last, ok := notes.at[at]
	if !ok {
		return false, nil
	}
	return true, s.waitDurable(ctx, p.partition, last)
}

// appended takes the answer to an append.
func (s *sink) appended(ctx context.Context, st *laneState, h *connector.Header, p *payload, r appended) error {
	at := pointOf(h.ID)
	if r.err == nil {
		delete(st.sealed, at)
		st.notes[p.partition].add(at, r.res.LastOffset)
		return s.waitDurable(ctx, p.partition, r.res.LastOffset)
	}
	err := fmt.Errorf("appending to topic %s partition %d: %w", s.topic.Name, p.index, r.err)
	switch {
	case errors.Is(err, topiclog.ErrTooLarge), errors.Is(err, topiclog.ErrInvalidBatch),
		errors.Is(err, topiclog.ErrPartitionNotFound), errors.Is(err, topiclog.ErrTopicClosing):
		return refused(err)
	case errors.Is(err, topiclog.ErrDiskFull), errors.Is(err, topiclog.ErrClosed):
		return err // nothing was written: it can be tried again
	}
	// Invariant 3: what a failed fsync left behind is known when the log is
	// opened again, not before.
	st.doubtful[at] = r.err
	return err
}

// waitDurable waits until an offset of an `os` topic has been synced. Topics
// with fsync durability are durable when the append is acknowledged.
func (s *sink) waitDurable(ctx context.Context, id topiclog.PartitionID, last int64) error {
	state, err := s.store.State(id)
	if err != nil || state.DurableEnd > last {
		return err
	}
	woken := make(chan struct{}, 1)
	w := s.store.Watch(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	defer w.Close()
	if err := w.Add(id); err != nil {
		return err
	}
	// A shard that can sync no more does not wake anybody.
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		w.Ready(nil)
		if state, err = s.store.State(id); err != nil || state.DurableEnd > last {
			return err
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return fmt.Errorf("waiting until topic %s is synced: %w", s.topic.Name, ctx.Err())
		case <-look.C:
			for _, sh := range s.store.Status().Shards {
				if sh.Fenced != nil && s.ownedBy(id, sh.Shard) {
					return fmt.Errorf("waiting until topic %s is synced: %w", s.topic.Name, sh.Fenced)
				}
			}
		}
	}
}

func (s *sink) ownedBy(id topiclog.PartitionID, shard int) bool {
	t, err := s.store.TopicByID(s.topic.ID)
	return err == nil && slices.ContainsFunc(t.Partitions, func(p topiclog.Partition) bool { return p.ID == id && p.Shard == shard })
}

// Resolve implements connector.Committer.
func (s *sink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	var firstErr error
	fail := func(_ int, err error) {
		if firstErr == nil {
			firstErr = err
		}
	}
	s.each(ctx, as, fail, func(st *laneState, idx []int, ps []*payload) {
		for n, i := range idx {
			o, err := s.resolve(ctx, st, pointOf(as[i].Header.ID), ps[n])
			if err != nil {
				fail(i, fmt.Errorf("looking for artefact %s: %w", as[i].Header.ID, err))
			}
			out[i] = o
		}
	})
	return out, firstErr
}

func (s *sink) resolve(ctx context.Context, st *laneState, at point, p *payload) (connector.Outcome, error) {
	found, err := s.look(ctx, st, p, at)
	switch {
	case errors.Is(err, topiclog.ErrPartitionNotFound):
		return connector.Absent, nil // gone with its topic, and never to come
	case err != nil:
		return connector.Unknown, err
	case found:
		return connector.Published, nil
	case st.doubtful[at] != nil:
		return connector.Unknown, nil
	case st.discarded[at]:
		return connector.Absent, nil
	case p.batches != nil || st.sealed[at] != nil:
		return connector.Sealed, nil
	}
	return connector.Absent, nil
}

// Discard implements connector.Committer.
func (s *sink) Discard(ctx context.Context, as []connector.Artifact) error {
	var errs []error
	s.each(ctx, as, func(_ int, err error) { errs = append(errs, err) }, func(st *laneState, idx []int, ps []*payload) {
		for n, i := range idx {
			at := pointOf(as[i].Header.ID)
			o, err := s.resolve(ctx, st, at, ps[n])
			switch {
			case err != nil:
				errs = append(errs, err)
			case o == connector.Published || o == connector.Unknown:
				errs = append(errs, fmt.Errorf("artefact %s is %s and cannot be discarded", as[i].Header.ID, o))
			default:
				delete(st.sealed, at)
				if ps[n].batches != nil {
					st.discarded[at] = true
				}
			}
		}
	})
	return errors.Join(errs...)
}

// Settled implements connector.Settler.
func (s *sink) Settled(ctx context.Context, id connector.ArtifactID) error {
	st := s.lanes.lane(s.topic.ID, laneKeyOf(id))
	if err := st.lock(ctx); err != nil {
		return err
	}
	defer st.unlock()
	at := pointOf(id)
	if !st.settled.before(at) {
		return nil
	}
	st.settled = at
	for p := range st.sealed {
		if p.before(at) {
			delete(st.sealed, p)
		}
	}
	for p := range st.discarded {
		if p.before(at) {
			delete(st.discarded, p)
		}
	}
	for p := range st.doubtful {
		if p.before(at) {
			delete(st.doubtful, p)
		}
	}
	topic, err := s.store.TopicByID(s.topic.ID)
	if err != nil {
		return fmt.Errorf("trimming the notes of topic %s: %w", s.topic.Name, err)
	}
	for _, p := range topic.Partitions {
		notes, err := st.notesOf(s.store, p.ID)
		if err != nil {
			return err
		}
		if below := notes.trim(at); below > 0 {
			if err := s.store.TrimNotes(ctx, p.ID, st.key, below); err != nil {
				return fmt.Errorf("trimming the notes of topic %s partition %d: %w", s.topic.Name, p.Index, err)
			}
		}
	}
	return nil
}
