package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// sink writes one table. It is safe for concurrent use.
type sink struct {
	fs     vfs.FS
	server *server
	table  *connector.Table
	opts   tableOptions
	// shard is the table's number in its cluster, 0 for a table without shards.
	shard   int64
	owner   connector.Owner
	staging *sealdir.Dir

	mu sync.Mutex
	// used are the blocks whose id was that of a query; tries numbers the others.
	used  map[string]bool
	tries int64
	// bound is the table as it was looked at last.
	bound *binding
	// load is the table's parts as they were looked at last.
	load load
	// slots are taken by blocks that are being sent.
	slots chan struct{}
	// busy are the artefacts somebody works on: a look waits for a send.
	busy map[string]chan struct{}
	// reasons say why an outcome is unknown.
	reasons map[string]string
	// slow is the wait that too many parts call for.
	slow pressure
	// suspicion is raised by a block whose values the server refused.
	suspicion suspicion
}

var (
	_ connector.Sink    = (*sink)(nil)
	_ connector.Settler = (*sink)(nil)
	_ connector.Hurrier = (*sink)(nil)
)

// Hurry implements connector.Hurrier.
func (s *sink) Hurry() { s.server.hurry() }

// OpenSink implements connector.SinkConnector.
func (c *Connector) OpenSink(ctx context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	opts, err := optionsOf(t.Options)
	if err != nil {
		return nil, err
	}
	st, err := sealdir.Open(c.fs, c.staging, "clickhouse", t.Name, o)
	if err != nil {
		return nil, err
	}
	srv, err := connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	d, err := srv.describe(ctx)
	if err == nil && d.engine == distributedEngine {
		return c.openSharded(ctx, t, o, srv, d, st)
	}
	s := c.newSink(t, o, srv, st)
	if err := s.prepare(ctx); err != nil {
		srv.conn.Close()
		return nil, err
	}
	return s, nil
}

// newSink is a sink of one table of one server, or of the replicas of one.
func (c *Connector) newSink(t *connector.Table, o connector.Owner, srv *server, st *sealdir.Dir) *sink {
	return &sink{fs: c.fs, server: srv, table: t, opts: srv.opts, owner: o, staging: st,
		slots: make(chan struct{}, maxInserts), busy: map[string]chan struct{}{}, used: map[string]bool{}, reasons: map[string]string{}}
}

// prepare makes or widens the table where the options say so, and binds it.
func (s *sink) prepare(ctx context.Context) error {
	d, err := s.server.describe(ctx)
	if errors.Is(err, errNoTable) && s.opts.create {
		if err := s.server.createTable(ctx, s.table); err != nil {
			return fmt.Errorf("creating table %s: %w", s.server.name(), err)
		}
		d, err = s.server.describe(ctx)
	}
	if errors.Is(err, errNoTable) {
		return &connector.OptionError{Key: keyTable, OnValue: true, Message: "table " + s.server.name() + " does not exist",
			Hint: "create it, or set '" + keyCreate + "' = 'true'"}
	}
	if err != nil {
		return err
	}
	if s.opts.widen {
		widened, err := s.server.widen(ctx, s.table, d)
		if err != nil {
			return fmt.Errorf("widening table %s: %w", s.server.name(), err)
		}
		if widened {
			if d, err = s.server.describe(ctx); err != nil {
				return err
			}
		}
	}
	b, err := bind(s.table, d, s.server)
	if err != nil {
		return err
	}
	if err := checkDeclaredPartition(s.table, d, b); err != nil {
		return err
	}
	s.mu.Lock()
	s.bound = b
	s.mu.Unlock()
	if b.method == methodReplace {
		if err := s.claim(ctx); err != nil {
			return err
		}
	}
	return s.look(ctx)
}

// checkDeclaredPartition compares PARTITIONED BY, where it is given, with the
// table's own key: it must not be silently another.
func checkDeclaredPartition(t *connector.Table, d *definition, b *binding) error {
	if len(t.PartitionKeys) == 0 {
		return nil
	}
	same := len(t.PartitionKeys) == len(b.keys)
	for i := range t.PartitionKeys {
		same = same && b.keys[i].fn == keyValue && b.names[b.keyColumn(i)] == t.Columns[t.PartitionKeys[i]].Name
	}
	if !same {
		return fmt.Errorf("PARTITIONED BY names other columns than the table's own partition key, which is %q; leave it out: the table's key decides", d.partitionKey)
	}
	return nil
}

// keyColumn is the place of key i's column.
func (b *binding) keyColumn(i int) int {
	for at, c := range b.columns {
		if c == b.keys[i].col {
			return at
		}
	}
	return 0
}

// binding is the table as it was looked at last.
func (s *sink) binding() *binding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound
}

// location is the table's name for people.
func (s *sink) location() string {
	name := s.opts.database + "." + s.opts.table
	if s.shard != 0 {
		name += fmt.Sprintf(" of shard %d", s.shard)
	}
	return name
}

// ExplainSink implements connector.SinkExplainer.
func (s *sink) ExplainSink() []string {
	b := s.binding()
	return []string{fmt.Sprintf("ClickHouse %s, table %s: commit method %s, %s", s.server.version, s.location(), b.method, b.why)}
}

// ExplainUnknown implements connector.UnknownExplainer.
func (s *sink) ExplainUnknown(a connector.Artifact) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reasons[a.Header.ID.String()]
}

// MaxEpoch implements connector.Sink.
func (s *sink) MaxEpoch(_ context.Context, lane connector.LaneID) (uint64, error) {
	return s.staging.MaxEpoch(connector.ArtifactID{Lane: lane})
}

// OpenWriter implements connector.Sink. The table's definition is read again: it
// may have changed since the attempt before.
func (s *sink) OpenWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	if a.ID.Job != s.owner.Job {
		return nil, fmt.Errorf("job %s opens a writer of a table claimed by job %s", a.ID.Job, s.owner.Job)
	}
	if err := s.staging.Owned(); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if replaces := s.binding().method == methodReplace; replaces != a.Replace {
		if replaces {
			return nil, fmt.Errorf("'%s' = '%s' publishes what keyed stages write; this result comes from a lane", keyMethod, methodReplace)
		}
		return nil, errNotReplacing
	}
	dir, err := s.staging.Fence(a.ID)
	if err != nil {
		return nil, err
	}
	return s.newWriter(a, dir), nil
}

// newWriter is a writer of an attempt whose directory is there.
func (s *sink) newWriter(a connector.Attempt, dir string) *writer {
	w := &writer{sink: s, bound: s.binding(), attempt: a, dir: dir, budget: a.MemoryBytes,
		ids: map[string]connector.BucketID{}, open: map[connector.BucketID]*openBlock{}}
	if w.budget <= 0 {
		w.budget = defaultMemoryBytes
	}
	return w
}

// Roll implements connector.Sink.
func (s *sink) Roll() connector.RollPolicy {
	return connector.RollPolicy{Bytes: s.opts.flushBytes, Age: s.opts.flushAge}
}

// Settled implements connector.Settler.
func (s *sink) Settled(_ context.Context, id connector.ArtifactID) error { return s.staging.Settle(id) }

// Close implements connector.Sink.
func (s *sink) Close() error { return s.server.conn.Close() }

// hold waits until nobody else works on an artefact. Two answers about one block
// must not cross.
func (s *sink) hold(ctx context.Context, id string) (release func(), err error) {
	for {
		s.mu.Lock()
		other := s.busy[id]
		if other == nil {
			done := make(chan struct{})
			s.busy[id] = done
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.busy, id)
				s.mu.Unlock()
				close(done)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
