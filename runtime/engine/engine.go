package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/runtime/types"
)

// Run is a running job.
type Run struct {
	job   *graph.Job
	deps  Deps
	opts  Options
	book  *ledger.Book
	epoch uint64
	zone  *types.Zone
	clock slot.Clock
	start time.Time

	ctx    context.Context
	cancel context.CancelFunc
	kick   chan struct{}
	hurry  chan struct{} // ends the pause between looks
	done   chan struct{}
	bg     sync.WaitGroup

	tables  map[string]*table // by name; immutable after Start
	nodes   map[graph.NodeID]*table
	sources map[string]*source // by table name; immutable after Start
	lookups map[graph.NodeID]connector.Lookup
	keyed   Keyed
	slots   []*slot.Slot

	dead     atomic.Int64
	stopping atomic.Bool
	killed   atomic.Bool
	// What runs in the background now.
	mirroring, pruning, looking atomic.Bool
	placing                     sync.Mutex // shares and slots of lanes
	finding                     sync.Mutex // who makes lanes: a partition gets one

	mu       sync.Mutex
	lanes    []*laneOf
	err      error
	finished bool
	laneErrs []error
	rates    map[string]*rate
	sampled  time.Time

	// Of the supervisor alone.
	mirrored, packed, looked, pruned, stepped time.Time
	watching                                  bool
}

// table is an output of the job.
type table struct {
	fact      *ledger.Table
	nodes     []graph.NodeID
	sink      connector.Sink // nil for an exchange
	sinkTable *connector.Table
	onError   graph.ErrorPolicy
	notNull   graph.ErrorPolicy
	late      *graph.LateFilter
	closer    *closer
	stage     *graph.Node
	standby   *standby // nil: it has one home
	files     atomic.Int64
	// stirred: something of it has changed since its closes were looked at;
	// pending: some were on their way then.
	stirred atomic.Bool
	pending bool
}

// source is a table being read.
type source struct {
	name  string
	table *connector.Table
	nodes []graph.NodeID
	src   connector.Source
	idle  time.Duration
}

// laneOf is a lane with what the engine knows of it.
type laneOf struct {
	*lane.Lane
	fact   *ledger.Lane
	source *source
	tables []*table
	slot   int
	share  float64
	// heir is held back until this lane, whose topic was created again, is
	// retired.
	heir []connector.Partition
}

// MaxDeadError ends a run with more dead rows than allowed.
type MaxDeadError struct{ Dead, Max int64 }

func (e *MaxDeadError) Error() string {
	return fmt.Sprintf("%d rows are dead, at most %d are allowed", e.Dead, e.Max)
}

// Start runs a job. When it returns, tables are claimed and lanes are on their
// way; ctx bounds the start alone.
func Start(ctx context.Context, job *graph.Job, deps Deps) (*Run, error) {
	if deps.Ledger == nil || deps.DeadLetters == nil {
		return nil, errors.New("BUG: a run needs a ledger and dead letters")
	}
	if err := job.Validate(); err != nil {
		return nil, err
	}
	opts, err := ParseOptions(job.Options)
	if err != nil {
		return nil, err
	}
	r := &Run{job: withValues(job), deps: deps.withDefaults(), opts: opts, book: deps.Ledger.Book(deps.Scope),
		kick: make(chan struct{}, 1), hurry: make(chan struct{}, 1), done: make(chan struct{}), rates: map[string]*rate{},
		tables: map[string]*table{}, nodes: map[graph.NodeID]*table{}, sources: map[string]*source{}, lookups: map[graph.NodeID]connector.Lookup{}}
	r.clock = r.deps.Clock
	r.start = r.clock.Now()
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if err := r.open(ctx); err != nil {
		if r.keyed != nil {
			err = errors.Join(err, r.keyed.Stop(ctx))
		}
		r.cancel()
		r.closeAll()
		return nil, err
	}
	for _, l := range r.lanes {
		l.Start()
	}
	r.bg.Add(1)
	go r.supervise()
	r.watchHomes()
	return r, nil
}

func (d Deps) withDefaults() Deps {
	if d.Clock == nil {
		d.Clock = slot.SystemClock{}
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Notice == nil {
		d.Notice = func(string) {}
	}
	if d.NewUUID == nil {
		d.NewUUID = randomUUID
	}
	var mu sync.Mutex
	told := d.Notice
	d.Notice = func(line string) { // lanes recover side by side
		mu.Lock()
		defer mu.Unlock()
		told(line)
	}
	return d
}

func randomUUID() (u connector.UUID) {
	// Read never fails since Go 1.24.
	_, _ = rand.Read(u[:])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

func (r *Run) notice(format string, args ...any) { r.deps.Notice(fmt.Sprintf(format, args...)) }

// open does the start, step by step.
func (r *Run) open(ctx context.Context) error {
	r.zone = types.UTC()
	if r.job.Zone != nil {
		z, err := types.LoadZone(r.job.Zone.String())
		if err != nil {
			return fmt.Errorf("session zone: %w", err)
		}
		r.zone = z
	}
	for range r.opts.Slots {
		r.slots = append(r.slots, slot.New(slot.Options{Clock: r.clock, MemoryBytes: r.opts.SlotMemoryBytes,
			OpenFiles: r.opts.SlotOpenFiles}))
	}
	// Tables know the epoch of whatever generation wrote them last.
	for g := range r.deps.Scope.Generation + 1 {
		r.epoch = max(r.epoch, r.deps.Ledger.Book(ledger.Scope{Job: r.deps.Scope.Job, Generation: g}).JobEpoch())
	}
	r.epoch++
	if err := r.book.Append(ctx, &ledger.Start{Epoch: r.epoch, TimeMillis: r.clock.Now().UnixMilli()}); err != nil {
		return fmt.Errorf("recording the start: %w", err)
	}
	r.notice("job %s: epoch %d; processes of earlier epochs can commit nothing any more", r.job.Name, r.epoch)
	if err := r.openTables(ctx); err != nil {
		return err
	}
	if err := r.keyless(); err != nil {
		return err
	}
	if err := r.openKeyed(ctx); err != nil {
		return err
	}
	if err := r.openSources(ctx); err != nil {
		return err
	}
	if err := r.openLookups(ctx); err != nil {
		return err
	}
	if err := r.findLanes(ctx, true); err != nil {
		return err
	}
	if err := r.keepUnread(ctx); err != nil {
		return err
	}
	r.expectLanes()
	return nil
}

// expectLanes tells the keyed stages which lanes there are at the start: their
// watermarks wait for all of these, and for no lane whose topic is gone.
func (r *Run) expectLanes() {
	k, ok := r.keyed.(interface{ Expect([]connector.LaneID) })
	if !ok {
		return
	}
	var ids []connector.LaneID
	for _, l := range r.lanes {
		ids = append(ids, l.fact.ID)
	}
	k.Expect(ids)
}

// clockMicros is the one reading of the clock of a batch job, 0 for any other.
func (r *Run) clockMicros() int64 {
	switch {
	case !r.job.Batch:
		return 0
	case r.deps.BatchTime.IsZero():
		return r.start.UnixMicro()
	}
	return r.deps.BatchTime.UnixMicro()
}

// closeAll closes what was opened.
func (r *Run) closeAll() {
	for _, s := range r.sources {
		if s.src != nil {
			s.src.Close()
		}
	}
	for _, l := range r.lookups {
		l.Close()
	}
	for _, t := range r.tables {
		if t.sink != nil {
			t.sink.Close()
		}
	}
}

// Done is closed when the run has ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// Err is why the run ended; nil while it runs, and when it finished or was
// stopped in order.
func (r *Run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Wait waits until the run has ended: a bounded job by itself, any other by
// Stop or an error.
func (r *Run) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop finishes what is open, seals, commits and ends the run. When ctx ends
// first, the rest is dropped as in a crash: nothing is lost by that.
func (r *Run) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	for _, t := range r.tables {
		if h, ok := t.sink.(connector.Hurrier); ok {
			h.Hurry()
		}
	}
	var wg sync.WaitGroup
	for _, l := range r.snapshot() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := l.Stop(ctx)
			switch {
			case err != nil && ctx.Err() != nil:
				l.Kill()
			case err != nil:
				r.fail(fmt.Errorf("stopping lane %s, whose open rows are not committed and will be read again: %w", l.Config().Name, err))
			}
		}()
	}
	wg.Wait()
	if r.keyed != nil {
		if err := r.keyed.Stop(ctx); err != nil {
			r.fail(fmt.Errorf("stopping the keyed stages: %w", err))
		}
	}
	r.finish()
	<-r.done
	return r.Err()
}

// Kill ends the run at once, as a crash would.
func (r *Run) Kill() {
	r.stopping.Store(true)
	r.killed.Store(true)
	for _, l := range r.snapshot() {
		l.Kill()
	}
	if k, ok := r.keyed.(interface{ Kill() }); ok {
		k.Kill()
	}
	r.finish()
	<-r.done
}

func (r *Run) snapshot() []*laneOf {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*laneOf(nil), r.lanes...)
}

// fail keeps the first error.
func (r *Run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// finish tells the supervisor that nothing is left to do.
func (r *Run) finish() {
	r.mu.Lock()
	r.finished = true
	r.mu.Unlock()
	select {
	case r.hurry <- struct{}{}:
	default:
	}
	r.changed()
}

// changed wakes the supervisor; it never blocks.
func (r *Run) changed() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// countDead counts dead rows and ends the run when there are too many.
func (r *Run) countDead(_ string, rows int64) {
	n := r.dead.Add(rows)
	if limit := r.deps.MaxDead; limit != nil && n > *limit {
		r.fail(&MaxDeadError{Dead: n, Max: *limit})
		r.changed()
	}
}

// ErrNoLane is returned for a lane name that the run does not have.
var ErrNoLane = errors.New("no such lane")

// Resume starts a lane that is quarantined, backing off or stopped.
func (r *Run) Resume(name string, o lane.ResumeOptions) error {
	for _, l := range r.snapshot() {
		if l.Config().Name != name {
			continue
		}
		r.mu.Lock()
		recreated := len(l.heir) > 0
		r.mu.Unlock()
		if recreated && o.SkipLost {
			return r.retire(l)
		}
		return l.Resume(o)
	}
	return fmt.Errorf("lane %q: %w", name, ErrNoLane)
}

// Roll seals the open files of a table soon; "": of every table.
func (r *Run) Roll(table string) {
	for _, l := range r.snapshot() {
		l.Roll(table)
	}
}
