package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// sharded writes the tables below a Distributed one: each shard is a sink of its own,
// with its own connections, method and pressure; a bucket is a table partition of a
// shard. Blocks of all of them lie in one directory.
type sharded struct {
	server  *server
	table   *connector.Table
	staging *sealdir.Dir
	at      distribution
	slots   []int
	sinks   []*sink
}

var (
	_ connector.Sink             = (*sharded)(nil)
	_ connector.Settler          = (*sharded)(nil)
	_ connector.Hurrier          = (*sharded)(nil)
	_ connector.SinkExplainer    = (*sharded)(nil)
	_ connector.UnknownExplainer = (*sharded)(nil)
)

// Hurry implements connector.Hurrier: a shard that hangs must not hold up the end.
func (s *sharded) Hurry() {
	s.server.hurry()
	for _, one := range s.sinks {
		one.Hurry()
	}
}

// openSharded opens every shard of a Distributed table.
func (c *Connector) openSharded(ctx context.Context, t *connector.Table, o connector.Owner, srv *server, d *definition, st *sealdir.Dir) (_ connector.Sink, err error) {
	s := &sharded{server: srv, table: t, staging: st}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if srv.opts.addr.http {
		return nil, fmt.Errorf("not_yet: table %s, which is Distributed, over HTTP: its cluster names the native ports alone; use clickhouse:// in '%s'", srv.name(), keyURL)
	}
	if srv.opts.method == methodReplace {
		return nil, fmt.Errorf("not_yet: method replace for table %s, which is Distributed: partitions of several shards do not change at once", srv.name())
	}
	if s.at, err = srv.distribution(ctx, d); err != nil {
		return nil, err
	}
	if s.slots, err = s.at.slots(); err != nil {
		return nil, err
	}
	for _, sh := range s.at.shards {
		opts := srv.opts
		opts.addr.hosts, opts.database, opts.table = sh.hosts, s.at.database, s.at.table
		conn, err := connect(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("shard %d of cluster %s: %w", sh.number, s.at.cluster, err)
		}
		one := c.newSink(t, o, conn, st)
		one.shard = sh.number
		s.sinks = append(s.sinks, one)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	_, err = s.shardKey(ctx)
	return s, err
}

// prepare makes, widens and binds the table of every shard, then the Distributed one:
// nobody reads a column there that a shard lacks.
func (s *sharded) prepare(ctx context.Context) error {
	for i, one := range s.sinks {
		if err := one.prepare(ctx); err != nil {
			return fmt.Errorf("shard %d of cluster %s: %w", s.at.shards[i].number, s.at.cluster, err)
		}
	}
	d, err := s.server.describe(ctx)
	if err != nil {
		return err
	}
	if s.server.opts.widen {
		if _, err := s.server.widen(ctx, s.table, d); err != nil {
			return fmt.Errorf("widening table %s: %w", s.server.name(), err)
		}
	}
	now, err := s.server.distribution(ctx, d)
	if err == nil && !now.same(&s.at) {
		err = errCluster
	}
	return err
}

// shardKey is the sharding expression for one writer, proved on the server.
func (s *sharded) shardKey(ctx context.Context) (*shardKey, error) {
	text := s.at.key
	if text == "" {
		if len(s.sinks) > 1 {
			return nil, fmt.Errorf("table %s has no sharding key, and its cluster %s has %d shards: name the table below it of one of them", s.server.name(), s.at.cluster, len(s.sinks))
		}
		text = "rand()"
	}
	k, err := newShardKey(text, s.sinks[0].binding())
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", s.server.name(), err)
	}
	return k, k.prove(ctx, s.server)
}

// of is the sink of an artefact's shard.
func (s *sharded) of(a connector.Artifact) (*sink, error) {
	p, err := decodePayload(a.Payload)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.at.shards, func(sh shardOf) bool { return sh.number == p.shard })
	if i < 0 {
		return nil, fmt.Errorf("%s is a block of shard %d, which cluster %s does not have any more: look whether its rows are in the table, and bring the shard back", a.Header.ID, p.shard, s.at.cluster)
	}
	return s.sinks[i], nil
}

// each does something with the artefacts of each shard, in their order, side by side.
func (s *sharded) each(as []connector.Artifact, do func(one *sink, as []connector.Artifact, at []int)) []error {
	errs := make([]error, len(as))
	places := map[*sink][]int{}
	for i, a := range as {
		one, err := s.of(a)
		if err != nil {
			errs[i] = err
			continue
		}
		places[one] = append(places[one], i)
	}
	var wait sync.WaitGroup
	for one, at := range places {
		some := make([]connector.Artifact, len(at))
		for k, i := range at {
			some[k] = as[i]
		}
		wait.Go(func() { do(one, some, at) })
	}
	wait.Wait()
	return errs
}

// Publish implements connector.Committer.
func (s *sharded) Publish(ctx context.Context, as []connector.Artifact) []error {
	out := make([]error, len(as))
	errs := s.each(as, func(one *sink, as []connector.Artifact, at []int) {
		for k, err := range one.Publish(ctx, as) {
			out[at[k]] = err
		}
	})
	for i, err := range errs {
		if err != nil {
			out[i] = err
		}
	}
	return out
}

// Resolve implements connector.Committer.
func (s *sharded) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	var mu sync.Mutex
	var failed error
	errs := s.each(as, func(one *sink, as []connector.Artifact, at []int) {
		found, err := one.Resolve(ctx, as)
		for k, i := range at {
			out[i] = found[k]
		}
		mu.Lock()
		defer mu.Unlock()
		failed = errors.Join(failed, err)
	})
	return out, errors.Join(append(errs, failed)...)
}

// Discard implements connector.Committer.
func (s *sharded) Discard(ctx context.Context, as []connector.Artifact) error {
	for _, a := range as {
		one, err := s.of(a)
		if err == nil {
			err = one.Discard(ctx, []connector.Artifact{a})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ExplainSink implements connector.SinkExplainer.
func (s *sharded) ExplainSink() []string {
	out := []string{fmt.Sprintf("table %s.%s is Distributed by %s over the %d shards of cluster %s; their tables are written", s.server.opts.database, s.server.opts.table, s.at.key, len(s.sinks), s.at.cluster)}
	for i, one := range s.sinks {
		for _, line := range one.ExplainSink() {
			out = append(out, fmt.Sprintf("shard %d: %s", s.at.shards[i].number, line))
		}
	}
	return out
}

// ExplainUnknown implements connector.UnknownExplainer.
func (s *sharded) ExplainUnknown(a connector.Artifact) string {
	one, err := s.of(a)
	if err != nil {
		return err.Error()
	}
	return one.ExplainUnknown(a)
}

// MaxEpoch implements connector.Sink.
func (s *sharded) MaxEpoch(ctx context.Context, lane connector.LaneID) (uint64, error) {
	return s.sinks[0].MaxEpoch(ctx, lane)
}

// OpenWriter implements connector.Sink.
func (s *sharded) OpenWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	one := s.sinks[0]
	if a.ID.Job != one.owner.Job {
		return nil, fmt.Errorf("job %s opens a writer of a table claimed by job %s", a.ID.Job, one.owner.Job)
	}
	if err := s.staging.Owned(); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	key, err := s.shardKey(ctx)
	if err != nil {
		return nil, err
	}
	if a.Replace {
		return nil, errNotReplacing
	}
	dir, err := s.staging.Fence(a.ID)
	if err != nil {
		return nil, err
	}
	w := &shardedWriter{slots: s.slots, key: key, ids: map[shardBucket]connector.BucketID{}}
	for _, one := range s.sinks {
		w.shards = append(w.shards, one.newWriter(a, dir))
	}
	w.sels = make([]batch.Sel, len(w.shards))
	return w, nil
}

// Roll implements connector.Sink.
func (s *sharded) Roll() connector.RollPolicy { return s.sinks[0].Roll() }

// Settled implements connector.Settler.
func (s *sharded) Settled(_ context.Context, id connector.ArtifactID) error {
	return s.staging.Settle(id)
}

// Close implements connector.Sink.
func (s *sharded) Close() error {
	err := s.server.conn.Close()
	for _, one := range s.sinks {
		err = errors.Join(err, one.Close())
	}
	return err
}
