package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/runtime/connector"
)

// claim writes the job's epoch. Runs that claim at once fence each other, and the
// one that comes last sees the other's record.
func (s *sink) claim(ctx context.Context) (err error) {
	mine := jobRecord{epoch: s.owner.JobEpoch, dir: s.owner.DataDirectory}
	if err := s.endEarlier(ctx, mine); err != nil {
		return err
	}
	st := newLane(fmt.Sprintf("%s-%x", s.prefix, s.owner.Job[:]))
	defer st.drop()
	const tries = 5
	for range tries {
		if err = s.begin(ctx, st); err != nil {
			return err
		}
		now, _, serr := s.commits.state(ctx, st.txn)
		if serr != nil {
			return serr
		}
		switch {
		case now == mine: // two tables of a run have one record
			return nil
		case now.epoch > 0 && now.dir != mine.dir && !s.owner.Adopt:
			return &connector.OwnedError{Location: "topic " + s.topic, Owner: fmt.Sprintf("the same job in data directory %s", now.dir)}
		case now.dir == mine.dir && now.epoch > mine.epoch:
			return &connector.OwnedError{Location: "topic " + s.topic, Owner: fmt.Sprintf("epoch %d of the same job, this is epoch %d", now.epoch, mine.epoch)}
		}
		if err = s.transact(ctx, st, nil, &kgo.Record{Key: s.commits.jobKey(), Value: mine.encode()}); err == nil {
			return s.commits.refresh(ctx)
		}
	}
	return err
}

// endEarlier ends what the lanes of earlier runs left open, since nothing behind
// it can be read. The ids of their producers stand in front of it: a lane writes
// its record before anything else. A later run whose lanes are taken for those of
// an earlier one initializes them again.
func (s *sink) endEarlier(ctx context.Context, mine jobRecord) error {
	if err := s.commits.refreshStable(ctx); err != nil {
		return err
	}
	now, lanes, err := s.commits.all(ctx)
	if err != nil || now == mine {
		return err
	}
	const together = 8
	errs := make(chan error, together)
	for some := range slices.Chunk(lanes, together) {
		for _, txn := range some {
			go func() {
				errs <- s.endOpen(ctx, txn)
			}()
		}
		for range some {
			err = errors.Join(err, <-errs)
		}
	}
	return err
}

// initialize is begin for a run that has not lost. Invariant 9: it looks for a
// later one after each time that it has fenced other producers, hence before it
// can publish.
func (s *sink) initialize(ctx context.Context, st *laneState) error {
	err := s.begin(ctx, st)
	if err == nil && s.commits != nil {
		if err = s.fenced(ctx, st.txn); err != nil {
			st.drop()
		}
	}
	return err
}

// begin makes a lane's producer: it fences those before it, ends what they left
// open, and reads what they have published.
func (s *sink) begin(ctx context.Context, st *laneState) error {
	st.drop()
	c, err := s.ended(ctx, st)
	if err != nil {
		return err
	}
	if s.commits != nil {
		if err = s.commits.refresh(ctx); err == nil {
			_, st.record, err = s.commits.state(ctx, st.txn)
		}
		if err != nil {
			c.Close()
			return err
		}
	}
	st.client = c
	return nil
}

// producer makes the producer of a lane's transactional id the only one.
func (s *sink) producer(ctx context.Context, st *laneState) (c *kgo.Client, err error) {
	err = s.persist(ctx, millis(s.table.Options, keyAPITimeout), func(ctx context.Context) error {
		if c, err = kgo.NewClient(s.producerOptions(st)...); err != nil {
			return fmt.Errorf("setting up a Kafka client: %w", err)
		}
		if s.commits == nil {
			return nil
		}
		if _, _, err := c.ProducerID(ctx); err != nil {
			c.Close()
			return sinkFailed(s.conn.failed(err, "", "initializing the producer with transactional id %s", st.txn))
		}
		return nil
	})
	return c, err
}

// persist repeats what goes away by itself. A topic that nobody knows was waited
// for already.
func (s *sink) persist(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := f(ctx)
		var r connector.Retryable
		if err == nil || unknownTopic(err) || !errors.As(err, &r) || !r.Retryable() {
			return err
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			return err
		case <-again.C:
		}
	}
}

// fenced reports, of what was read last, whether a later run of the job has
// claimed its records.
func (s *sink) fenced(ctx context.Context, txn string) error {
	now, _, err := s.commits.state(ctx, txn)
	switch {
	case err != nil:
		return err
	case now.epoch > 0 && now.dir != s.owner.DataDirectory:
		return fmt.Errorf("the job runs from data directory %s now: %w", now.dir, connector.ErrFenced)
	case s.owner.JobEpoch < now.epoch:
		return fmt.Errorf("job epoch %d, now %d: %w", s.owner.JobEpoch, now.epoch, connector.ErrFenced)
	}
	return nil
}
