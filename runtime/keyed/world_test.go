package keyed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

var errCrashed = errors.New("the process has crashed")

// world is what outlives processes: ledger, checkpoints, tables, dead letters.
type world struct {
	ledger      *ledger.MemStore
	checkpoints *checkpoint.MemStore

	mu     sync.Mutex
	tables map[string]*memTable
	dead   map[string]lane.DeadEntry // by coordinates: written twice is once
}

type memTable struct {
	fence     map[uint32]uint64 // by subtask: highest epoch
	staged    map[connector.ArtifactID][]string
	published map[connector.ArtifactID][]string
	order     []connector.ArtifactID // of publishing
	parts     map[connector.ArtifactID]string
	announced []string
	// Of a table that is replaced: its partitions' versions, and what was done.
	versions map[string]uint64
	replaced []string
	contents map[string][]int // the rows of each replacement, by partition
}

func newWorld() *world {
	return &world{ledger: ledger.NewMemStore(), checkpoints: checkpoint.NewMemStore(), tables: map[string]*memTable{}, dead: map[string]lane.DeadEntry{}}
}

func (w *world) table(name string) *memTable {
	if w.tables[name] == nil {
		w.tables[name] = &memTable{fence: map[uint32]uint64{}, staged: map[connector.ArtifactID][]string{},
			published: map[connector.ArtifactID][]string{}, parts: map[connector.ArtifactID]string{}, versions: map[string]uint64{}, contents: map[string][]int{}}
	}
	return w.tables[name]
}

// rows are the rows of a table that readers see, sorted.
func (w *world) rows(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, rows := range w.table(name).published {
		out = append(out, rows...)
	}
	slices.Sort(out)
	return out
}

// process is one life; at its crashAt-th operation it dies, before or after the
// operation has its effect.
type process struct {
	w       *world
	mu      sync.Mutex
	ops     int
	names   []string
	crashAt int
	after   bool
	dead    bool
	dying   chan struct{}
	fault   func(op string) (err error, apply bool)
}

func (w *world) process(crashAt int, after bool) *process {
	return &process{w: w, crashAt: crashAt, after: after, dying: make(chan struct{})}
}

// op runs an effect on the world. Effects are serialised.
func (p *process) op(name string, effect func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errCrashed
	}
	p.ops++
	p.names = append(p.names, name)
	apply, ferr := true, error(nil)
	if p.fault != nil {
		if ferr, apply = p.fault(name); ferr == nil {
			apply = true
		}
	}
	do := func() error {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		return effect()
	}
	if p.ops == p.crashAt {
		if p.after && apply {
			_ = do()
		}
		p.dead = true
		close(p.dying)
		return errCrashed
	}
	if apply {
		if err := do(); err != nil {
			return err
		}
	}
	return ferr
}

type memLedger struct{ p *process }

func (s memLedger) Append(ctx context.Context, records []ledger.Record) error {
	return s.p.op("ledger", func() error { return s.p.w.ledger.Append(context.WithoutCancel(ctx), records) })
}

func (s memLedger) Load(ctx context.Context, f func(ledger.Record) error) error {
	return s.p.w.ledger.Load(ctx, f)
}

type memCheckpoints struct {
	p *process
	*checkpoint.MemHandle
}

func (s memCheckpoints) Write(ctx context.Context, n uint64, files []checkpoint.File) error {
	return s.p.op("manifest", func() error { return s.MemHandle.Write(ctx, n, files) })
}

func (s memCheckpoints) Remove(ctx context.Context, n uint64) error {
	return s.p.op("remove", func() error { return s.MemHandle.Remove(ctx, n) })
}

type memDead struct{ p *process }

func (d memDead) Write(_ context.Context, entries []lane.DeadEntry) error {
	return d.p.op("dead", func() error {
		for _, e := range entries {
			d.p.w.dead[fmt.Sprint(e.Table, e.TopicID, e.Partition, e.Offset, e.Rows)] = e
		}
		return nil
	})
}

func (d memDead) Durable(_ context.Context, table, topic connector.UUID, from map[int32]int64) ([]lane.DeadRecord, error) {
	d.p.w.mu.Lock()
	defer d.p.w.mu.Unlock()
	var all []lane.DeadEntry
	for _, e := range d.p.w.dead {
		all = append(all, e)
	}
	return lane.MergeDead(all, table, topic, from), nil
}

// sinkOptions shape a memSink.
type sinkOptions struct {
	maxRows     int    // of a writer, 0: any
	partitionBy string // a column
	policy      connector.CommitPolicy
	roll        int64
}

// memSink writes a table of the world.
type memSink struct {
	p    *process
	name string
	o    sinkOptions
}

func (s *memSink) Roll() connector.RollPolicy           { return connector.RollPolicy{Bytes: s.o.roll} }
func (s *memSink) Close() error                         { return nil }
func (s *memSink) CommitPolicy() connector.CommitPolicy { return s.o.policy }
func (s *memSink) CommitPartition(_ context.Context, tp string) error {
	return s.p.op("announce", func() error {
		t := s.p.w.table(s.name)
		n := 0
		for id, part := range t.parts {
			if part == tp {
				n += len(t.published[id])
			}
		}
		t.announced = append(t.announced, fmt.Sprintf("%s: %d rows", tp, n))
		return nil
	})
}
func (s *memSink) MaxEpoch(context.Context, connector.LaneID) (uint64, error) { return 0, nil }

func (s *memSink) OpenWriter(_ context.Context, a connector.Attempt) (connector.Writer, error) {
	w := &memWriter{s: s, id: a.ID, ids: map[string]connector.BucketID{}, open: map[connector.BucketID][]string{}}
	return w, s.p.op("open", func() error {
		t := s.p.w.table(s.name)
		if t.fence[a.ID.Subtask] >= a.ID.Epoch {
			return connector.ErrFenced
		}
		t.fence[a.ID.Subtask] = a.ID.Epoch
		return nil
	})
}

func (s *memSink) Publish(_ context.Context, as []connector.Artifact) []error {
	errs := make([]error, len(as))
	for i, a := range as {
		errs[i] = s.p.op("publish", func() error {
			t := s.p.w.table(s.name)
			id := a.Header.ID
			if _, ok := t.published[id]; ok {
				return nil
			}
			rows, ok := t.staged[id]
			if !ok {
				return fmt.Errorf("nothing is staged as %s", id)
			}
			delete(t.staged, id)
			t.published[id] = rows
			t.parts[id] = a.Header.TablePartition
			t.order = append(t.order, id)
			return nil
		})
	}
	return errs
}

func (s *memSink) Resolve(_ context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	err := s.p.op("resolve", func() error {
		t := s.p.w.table(s.name)
		for i, a := range as {
			_, published := t.published[a.Header.ID]
			_, staged := t.staged[a.Header.ID]
			switch {
			case published:
				out[i] = connector.Published
			case staged:
				out[i] = connector.Sealed
			default:
				out[i] = connector.Absent
			}
		}
		return nil
	})
	return out, err
}

func (s *memSink) Discard(_ context.Context, as []connector.Artifact) error {
	return s.p.op("discard", func() error {
		for _, a := range as {
			delete(s.p.w.table(s.name).staged, a.Header.ID)
		}
		return nil
	})
}

type memWriter struct {
	s     *memSink
	id    connector.ArtifactID
	ids   map[string]connector.BucketID
	names []string
	open  map[connector.BucketID][]string
	held  int
}

func (w *memWriter) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	col := slices.IndexFunc(w.fields(b), func(n string) bool { return n == w.s.o.partitionBy })
	for _, row := range sel {
		name := ""
		if col >= 0 {
			name = w.s.o.partitionBy + "=" + b.Cols[col].Text(int(row))
		}
		id, ok := w.ids[name]
		if !ok {
			id = connector.BucketID(len(w.names))
			w.ids[name], w.names = id, append(w.names, name)
		}
		out = append(out, id)
	}
	return out, nil
}

func (w *memWriter) fields(b *batch.Batch) []string {
	var out []string
	for _, f := range b.Schema.Fields {
		out = append(out, f.Name)
	}
	return out
}

func rowText(b *batch.Batch, row int) string {
	cells := make([]string, len(b.Cols))
	for c := range b.Cols {
		cells[c] = b.Cols[c].Text(row)
	}
	return strings.Join(cells, "|")
}

func (w *memWriter) Write(b *batch.Batch, sel batch.Sel, id connector.BucketID) error {
	if w.s.o.maxRows > 0 && w.held+len(sel) > w.s.o.maxRows {
		return connector.ErrFull
	}
	for _, row := range sel {
		line := rowText(b, int(row))
		if b.Kinds != nil && b.Kinds[row] != batch.Insert {
			line = b.Kinds[row].String() + " " + line
		}
		w.open[id] = append(w.open[id], line)
	}
	w.held += len(sel)
	return nil
}

func (w *memWriter) Open() []connector.Bucket {
	var out []connector.Bucket
	for id, rows := range w.open {
		out = append(out, connector.Bucket{ID: id, TablePartition: w.names[id], Rows: int64(len(rows)), Bytes: int64(10 * len(rows))})
	}
	return out
}

func (w *memWriter) HeldBytes() int64 { return int64(10 * w.held) }

func (w *memWriter) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	var out []connector.Artifact
	for _, r := range req {
		rows := w.open[r.Bucket]
		if int64(len(rows)) != r.Header.Rows {
			return nil, fmt.Errorf("a header of %d rows for a bucket of %d", r.Header.Rows, len(rows))
		}
		err := w.s.p.op("seal", func() error {
			t := w.s.p.w.table(w.s.name)
			if t.fence[w.id.Subtask] != w.id.Epoch {
				return connector.ErrFenced
			}
			if _, dup := t.staged[r.Header.ID]; dup {
				return fmt.Errorf("id %s twice", r.Header.ID)
			}
			t.staged[r.Header.ID] = rows
			return nil
		})
		if err != nil {
			return nil, err
		}
		delete(w.open, r.Bucket)
		w.held -= len(rows)
		out = append(out, connector.Artifact{Header: r.Header, Bytes: int64(10 * len(rows)), Location: w.s.name + "/" + r.Header.ID.String()})
	}
	return out, nil
}

func (w *memWriter) Close() error { return nil }
