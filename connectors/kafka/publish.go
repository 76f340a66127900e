package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/runtime/connector"
)

// abortTimeout bounds what is done for other readers' sake: a transaction that is
// not aborted is ended by the next producer, or by the broker.
const abortTimeout = 2 * time.Second

// transactLane is a transaction that ends with the lane's record.
func (s *sink) transactLane(ctx context.Context, st *laneState, rows []kgo.Record, r laneRecord) error {
	err := s.transact(ctx, st, rows, &kgo.Record{Key: []byte(laneKeyPrefix + st.txn), Value: r.encode()})
	if err == nil {
		st.record = r
	}
	return err
}

// transact writes rows and a record of the topic of commits, all or nothing. An
// error wraps connector.ErrRefused unless the commit was sent; after any the
// lane has no producer.
func (s *sink) transact(ctx context.Context, st *laneState, rows []kgo.Record, commit *kgo.Record) error {
	ctx, cancel := context.WithTimeout(ctx, millis(s.table.Options, keyTxnTimeout))
	defer cancel()
	ctx, hangs := st.ending.next(ctx)
	if ctx.Err() != nil {
		if h := hangs(); h != nil {
			st.drop()
			return refused(h)
		}
	}
	if err := st.client.BeginTransaction(); err != nil {
		st.drop()
		return refused(sinkFailed(s.conn.failed(err, "", "beginning a transaction")))
	}
	commit.Topic, commit.Partition = commitsTopic, s.commits.partition
	err := produce(ctx, st.client, rows, commit)
	if err != nil {
		err = s.whyUnwritten(s.conn.failed(err, s.topic, "writing to topic %s", s.topic))
	} else if len(rows) > 0 {
		// The topic that has the id now had it when the rows were written.
		_, err = s.same(ctx)
	}
	if h := hangs(); h != nil {
		// Neither a commit nor an abort is to come before what hangs is ended.
		st.drop()
		return refused(h)
	}
	if err != nil {
		st.abort(err)
		return refused(err)
	}
	if err := st.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		// Invariant 3: it may have been committed.
		st.drop()
		return sinkFailed(s.conn.failed(err, s.topic, "committing a transaction of topic %s", s.topic))
	}
	st.ending.committed(rows, commit)
	return nil
}

// produce writes records in order and waits for all of them; the last may be nil.
func produce(ctx context.Context, c *kgo.Client, rows []kgo.Record, last *kgo.Record) error {
	var mu sync.Mutex
	var first error
	done := func(_ *kgo.Record, err error) {
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = err
		}
	}
	for i := range rows {
		c.Produce(ctx, &rows[i], done)
	}
	if last != nil {
		c.Produce(ctx, last, done)
	}
	err := c.Flush(ctx)
	mu.Lock()
	defer mu.Unlock()
	if first != nil {
		return first
	}
	return err
}

// whyUnwritten says what an error of produce means. The client goes on trying for as long
// as it may, also where the topic is gone.
func (s *sink) whyUnwritten(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
		defer cancel()
		switch d, asked := askTopic(ctx, s.conn, s.topic); {
		case asked == nil && d.id != s.id:
			return &replacedError{s.topic}
		case unknownTopic(asked):
			return sinkFailed(asked)
		case asked == nil:
			failure := sinkFailed(err)
			failure.hint = d.unhealthy()
			return failure
		}
	}
	return sinkFailed(err)
}

// abort ends the transaction, if that is quick, and gives the producer up.
func (st *laneState) abort(cause error) {
	if !outrun(cause) {
		ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
		defer cancel()
		if st.client.AbortBufferedRecords(ctx) == nil {
			// An error leaves it open: see abortTimeout.
			_ = st.client.EndTransaction(ctx, kgo.TryAbort)
		}
	}
	st.drop()
}

// each calls f for the artefacts of each lane in turn, with the lane locked;
// indexes are those in as. Artefacts that f is not called for have failed.
func (s *sink) each(ctx context.Context, as []connector.Artifact, fail func(i int, err error), f func(st *laneState, idx []int, ps []*payload)) {
	var order []string
	byTxn := map[string][]int{}
	ps := make([]*payload, len(as))
	for i := range as {
		p, err := decodePayload(as[i].Payload)
		if err != nil {
			fail(i, fmt.Errorf("artefact %s: %w", as[i].Header.ID, err))
			continue
		}
		if byTxn[p.txn] == nil {
			order = append(order, p.txn)
		}
		byTxn[p.txn] = append(byTxn[p.txn], i)
		ps[i] = p
	}
	for _, txn := range order {
		idx := byTxn[txn]
		st := s.lane(txn)
		if err := st.lock(ctx); err != nil {
			for _, i := range idx {
				fail(i, err)
			}
			continue
		}
		of := make([]*payload, len(idx))
		for n, i := range idx {
			of[n] = ps[i]
		}
		f(st, idx, of)
		st.unlock()
	}
}

// Publish implements connector.Committer: a transaction an artefact.
func (s *sink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, len(as))
	s.each(ctx, as, func(i int, err error) { errs[i] = err }, func(st *laneState, idx []int, ps []*payload) {
		for n, i := range idx {
			if err := s.publish(ctx, st, &as[i].Header, ps[n]); err != nil {
				errs[i] = fmt.Errorf("artefact %s: %w", as[i].Header.ID, err)
				for _, later := range idx[n+1:] {
					// They keep their order: none is tried before this one is known.
					errs[later] = fmt.Errorf("artefact %s comes after one that failed: %w", as[later].Header.ID, err)
				}
				return
			}
		}
	})
	return errs
}

func (s *sink) publish(ctx context.Context, st *laneState, h *connector.Header, p *payload) error {
	at := pointOf(h.ID)
	if s.commits != nil && p.commits != s.commits.id {
		return &commitsError{"is another one than when the rows were sealed"}
	}
	if st.client == nil {
		if err := s.initialize(ctx, st); err != nil {
			return err
		}
	}
	if st.record.has(at) {
		return nil
	}
	rows, err := s.records(st, h.ID, p)
	if err != nil {
		return refused(err)
	}
	if s.commits == nil {
		ctx, cancel := context.WithTimeout(ctx, millis(s.table.Options, keyTxnTimeout))
		defer cancel()
		if err := produce(ctx, st.client, rows, nil); err != nil {
			st.drop()
			return s.whyUnwritten(s.conn.failed(err, s.topic, "writing to topic %s", s.topic))
		}
		st.record = st.record.with(at, st.settled)
		delete(st.sealed, at)
		return nil
	}
	r := st.record.with(at, st.settled)
	if err := s.transactLane(ctx, st, rows, r); err != nil {
		return s.whyFailed(ctx, st, err)
	}
	delete(st.sealed, at)
	return nil
}

// whyFailed tells a later run of the job, which is for good, from other reasons.
func (s *sink) whyFailed(ctx context.Context, st *laneState, err error) error {
	if !outrun(err) {
		return err
	}
	// Its own transaction may still be open, so it does not wait for those.
	if rerr := s.commits.refreshStable(ctx); rerr != nil {
		return err
	}
	if ferr := s.fenced(ctx, st.txn); ferr != nil {
		return ferr
	}
	return err
}

// records are an artefact's rows as records.
func (s *sink) records(st *laneState, id connector.ArtifactID, p *payload) ([]kgo.Record, error) {
	at := pointOf(id)
	data := p.records
	switch {
	case p.topic != s.id:
		return nil, &replacedError{s.topic}
	case st.discarded[at]:
		return nil, errors.New("it was discarded")
	case data == nil:
		if data = st.sealed[at]; data == nil {
			return nil, errors.New("it is not sealed any more")
		}
	}
	rows := make([]kgo.Record, 0, p.rows)
	err := eachRecord(data, func(millis int64, key, value []byte) {
		place := st.turn
		switch s.partitioner {
		case keyvalue.RoundRobin:
			place += int32(len(rows))
		case keyvalue.Fixed:
			place = keyvalue.FixedPlace(id)
		}
		rows = append(rows, kgo.Record{Topic: s.topic, Key: key, Value: value, Timestamp: time.UnixMilli(millis), Partition: place & 0x7fffffff})
	})
	st.turn++
	if s.partitioner == keyvalue.RoundRobin {
		st.turn += int32(len(rows))
	}
	st.turn &= 0x7fffffff
	return rows, err
}

// Resolve implements connector.Committer: it ends what is open under the lane's
// transactional id, and then looks.
func (s *sink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	var first error
	fail := func(_ int, err error) {
		if first == nil {
			first = err
		}
	}
	s.each(ctx, as, fail, func(st *laneState, idx []int, ps []*payload) {
		if err := s.look(ctx, st); err != nil {
			fail(0, fmt.Errorf("looking for artefact %s: %w", as[idx[0]].Header.ID, err))
			return
		}
		for n, i := range idx {
			out[i] = s.outcome(st, pointOf(as[i].Header.ID), ps[n])
		}
	})
	return out, first
}

// look brings a lane's state up to date. A run that has lost finds out before it
// fences the producers of the one that has won.
func (s *sink) look(ctx context.Context, st *laneState) error {
	if s.commits == nil {
		return nil
	}
	if err := s.commits.refreshStable(ctx); err != nil {
		return err
	}
	if err := s.fenced(ctx, st.txn); err != nil {
		return err
	}
	return s.initialize(ctx, st)
}

func (s *sink) outcome(st *laneState, at point, p *payload) connector.Outcome {
	switch {
	case s.commits != nil && p.commits != s.commits.id:
		return connector.Unknown
	case st.record.has(at):
		return connector.Published
	case st.discarded[at], p.topic != s.id:
		return connector.Absent
	case p.records != nil || st.sealed[at] != nil:
		return connector.Sealed
	}
	return connector.Absent
}

// Discard implements connector.Committer.
func (s *sink) Discard(ctx context.Context, as []connector.Artifact) error {
	var errs []error
	s.each(ctx, as, func(_ int, err error) { errs = append(errs, err) }, func(st *laneState, idx []int, ps []*payload) {
		if err := s.look(ctx, st); err != nil {
			errs = append(errs, err)
			return
		}
		for n, i := range idx {
			at := pointOf(as[i].Header.ID)
			switch o := s.outcome(st, at, ps[n]); o {
			case connector.Published, connector.Unknown:
				errs = append(errs, fmt.Errorf("artefact %s is %s and cannot be discarded", as[i].Header.ID, o))
			default:
				delete(st.sealed, at)
				if ps[n].records != nil {
					st.discarded[at] = true
				}
			}
		}
	})
	return errors.Join(errs...)
}
