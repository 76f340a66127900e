package keyed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/exchange"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// Factory makes keyed stages; it is an engine.KeyedFactory.
type Factory struct {
	// Store gives the checkpoint store of a job and generation. Required.
	Store func(ledger.Scope) checkpoint.Store
	// SpillFS and SpillDir are where state beyond its budget goes: a directory of the
	// run's own, which is removed at start and end. With a nil SpillFS such state is an
	// error.
	SpillFS  vfs.FS
	SpillDir string
	// Options; the zero value works.
	Options Options
}

var _ engine.KeyedFactory = (*Factory)(nil)

// Stages are the running keyed stages of one job; it is an engine.Keyed.
type Stages struct {
	job   *graph.Job
	env   engine.KeyedEnv
	opts  Options
	store checkpoint.Store
	plan  *plan
	zone  *types.Zone

	spillFS  vfs.FS
	spillDir string

	gate   *exchange.Gate
	tasks  []*task
	stages []*stageState
	tables map[connector.UUID]*tableState
	// writers numbers the writers of a table, for artefact ids.
	writers map[connector.UUID]uint32

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	done   chan struct{}

	events mailbox[any] // checkpoint.Event or *acknowledgement
	scribe mailbox[func(context.Context) error]

	mu         sync.Mutex
	err        error
	finished   bool
	completed  uint64
	completeAt time.Time
	changed    chan struct{} // closed with each completed checkpoint
	injected   atomic.Uint64
	// stirred: a task has emitted by the clock since the last barrier.
	stirred atomic.Bool

	corrections *corrections

	// The driver's.
	coord   *checkpoint.Coordinator
	acks    map[int]*acknowledgement
	cursors []ledger.Cursor // at the barrier under way
	known   map[connector.ArtifactID]sealedArtifact
	held    []connector.ArtifactID // of overwritten tables, until the end
	totals  map[connector.UUID]*emitted
	timer   slot.Timer
	began   time.Time

	// The scribe's: by manifest, the least manifest number of its artefacts.
	floors  map[uint64]uint64
	current *checkpoint.Manifest
}

type stageState struct {
	plan  *stagePlan
	tasks []*task
	gate  int
}

// sealedArtifact is an artefact that is not committed yet.
type sealedArtifact struct {
	connector.Artifact
	at int64
}

var _ engine.Keyed = (*Stages)(nil)

// mailbox is a queue that never blocks its writers; what goes in is bounded by
// the number of tasks and artefacts.
type mailbox[T any] struct {
	mu    sync.Mutex
	queue []T
	ready chan struct{}
}

func newMailbox[T any]() mailbox[T] { return mailbox[T]{ready: make(chan struct{}, 1)} }

func (m *mailbox[T]) put(x T) {
	m.mu.Lock()
	m.queue = append(m.queue, x)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take waits for the next; ok is false when ctx ended first.
func (m *mailbox[T]) take(ctx context.Context) (x T, ok bool) {
	for {
		m.mu.Lock()
		if len(m.queue) > 0 {
			var none T // the queue's memory outlives what was in it
			x, m.queue[0] = m.queue[0], none
			m.queue = m.queue[1:]
			m.mu.Unlock()
			return x, true
		}
		m.mu.Unlock()
		select {
		case <-m.ready:
		case <-ctx.Done():
			return x, false
		}
	}
}

func (r *Stages) now() time.Time { return r.env.Clock.Now() }

func (r *Stages) notice(format string, args ...any) { r.env.Notice(fmt.Sprintf(format, args...)) }

func (r *Stages) post(e checkpoint.Event) { r.events.put(e) }

func (r *Stages) acknowledge(a *acknowledgement) { r.events.put(a) }

// fail ends the stages with an error, the first one.
func (r *Stages) fail(err error) {
	r.mu.Lock()
	if r.err == nil && !r.finished {
		r.err = err
	}
	err = r.err
	r.mu.Unlock()
	if err != nil {
		r.gate.Shut(err)
	}
	r.cancel()
}

// start runs everything.
func (r *Stages) start() {
	r.began = r.now()
	for _, t := range r.tasks {
		for node, ws := range t.pending() {
			r.corrections.hear(node, ws, 0)
		}
	}
	r.gate.Start()
	for _, t := range r.tasks {
		r.group.Add(1)
		go func() {
			defer r.group.Done()
			if err := t.run(r.ctx); err != nil && r.ctx.Err() == nil {
				r.fail(err)
			}
		}()
	}
	for _, t := range r.tables {
		r.group.Add(1)
		go func() {
			defer r.group.Done()
			if err := t.run(r.ctx); err != nil && r.ctx.Err() == nil {
				r.fail(err)
			}
		}()
	}
	r.group.Add(2)
	go func() {
		defer r.group.Done()
		for {
			f, ok := r.scribe.take(r.ctx)
			if !ok {
				return
			}
			if err := f(r.ctx); err != nil {
				if r.ctx.Err() == nil {
					r.fail(err)
				}
				return
			}
		}
	}()
	go func() {
		defer r.group.Done()
		r.drive()
	}()
	go func() {
		r.group.Wait()
		for _, t := range r.tasks {
			t.inbox.Close()
		}
		r.letGo()
		r.mu.Lock()
		orderly := r.err == nil && r.finished
		r.mu.Unlock()
		if !orderly {
			r.gate.Shut(ErrStopped)
		}
		close(r.done)
	}()
}

// Exchange implements engine.Keyed.
func (r *Stages) Exchange(node graph.NodeID) (lane.Exchange, error) {
	e, ok := r.gate.Entrance(node)
	if !ok {
		return nil, fmt.Errorf("node %d is no exchange that lanes feed", node)
	}
	return e, nil
}

// Expect names all lanes of the start; see exchange.Gate.Expect.
func (r *Stages) Expect(lanes []connector.LaneID) { r.gate.Expect(lanes) }

// Done implements engine.Keyed.
func (r *Stages) Done() <-chan struct{} { return r.done }

// Err implements engine.Keyed.
func (r *Stages) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stop implements engine.Keyed. When ctx ends first, the rest is dropped as in a
// crash: the next start publishes what the last manifest lists.
func (r *Stages) Stop(ctx context.Context) error {
	r.gate.Shut(ErrStopped)
	r.post(checkpoint.Stop{})
	select {
	case <-r.done:
		return r.Err()
	case <-ctx.Done():
		r.cancel()
		<-r.done
		return errors.Join(ctx.Err(), r.Err())
	}
}

// Kill ends the stages at once, as a crash would.
func (r *Stages) Kill() {
	r.gate.Shut(ErrStopped)
	r.cancel()
	<-r.done
}

// Checkpoint takes a checkpoint now and waits until it is complete; its results
// may still be on their way to be published.
func (r *Stages) Checkpoint(ctx context.Context) error {
	after := r.injected.Load()
	r.post(checkpoint.Trigger{})
	for {
		r.mu.Lock()
		done, changed := r.completed > after, r.changed
		r.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-r.done:
			if err := r.Err(); err != nil {
				return err
			}
			return ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Completed is the last completed checkpoint.
func (r *Stages) Completed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.completed
}

// Status implements engine.Keyed.
func (r *Stages) Status() []engine.StageStatus {
	r.mu.Lock()
	completed, at := r.completed, r.completeAt
	r.mu.Unlock()
	out := make([]engine.StageStatus, len(r.stages))
	for i, s := range r.stages {
		st := engine.StageStatus{Name: s.plan.name, Watermark: batch.MaxWatermark, Checkpoint: completed}
		if completed > 0 {
			st.CheckpointAge = r.now().Sub(at)
		}
		for _, t := range s.tasks {
			st.Watermark = min(st.Watermark, t.fired.Load())
			st.StateBytes += t.bytes.Load()
			if t.spill != nil {
				st.SpilledBytes += t.spill.Bytes()
			}
			st.Emitted += t.out.Load()
			st.Expired += t.expired.Load()
		}
		if s.gate >= 0 {
			st.Holds = r.gate.Holds(s.gate)
		}
		out[i] = st
	}
	return out
}

// logger never is nil.
func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
