package lane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
)

// Lane runs one lane through its attempts. It is safe for concurrent use.
type Lane struct {
	cfg   Config
	opts  Options
	scope ledger.Scope
	clock slot.Clock
	start time.Time // of the lane's clock

	columns      []int // of the source table, united over the source nodes
	decodePolicy connector.OnError
	decodeError  func(code string) bool
	ends         []int64

	timing   sync.Mutex // when drives last ran
	stopping atomic.Bool
	fullAt   atomic.Int64 // what a writer held when it was last full

	mu       sync.Mutex
	rnd      *rand.Rand
	state    State
	err      error
	failures int
	shrink   int
	retryAt  time.Time
	retry    slot.Timer
	att      *attempt
	wants    []*drive // parked drives whose output wants to rejoin
	skipLost bool
	rebuild  bool
	killed   bool
	paused   chan struct{} // closed when a paused lane's attempt has ended; nil: not paused
	done     chan struct{}
}

// attempt is one life of the lane: one epoch.
type attempt struct {
	ctx     context.Context
	cancel  context.CancelFunc
	epoch   uint64
	shrink  int
	outputs []*output
	drives  []*drive // guarded by Lane.mu; [0] is the main one
	starts  int      // drives being started
	err     error
}

// New makes a lane; it does nothing before Start.
func New(cfg Config) (*Lane, error) {
	if len(cfg.Partitions) == 0 || len(cfg.Outputs) == 0 || len(cfg.Sources) == 0 {
		return nil, errors.New("BUG: a lane without partitions, sources or outputs")
	}
	l := &Lane{cfg: cfg, opts: cfg.Options.WithDefaults(), scope: cfg.Book.Scope(), clock: cfg.Slot.Clock(),
		state: Stopped, shrink: 1, done: make(chan struct{}),
		rnd: rand.New(rand.NewPCG(cfg.Options.Seed, uint64(cfg.Fact.ID.Set)))}
	l.start = l.clock.Now()
	if l.cfg.Notice == nil {
		l.cfg.Notice = func(string) {}
	}
	l.decodeError = func(string) bool { return false }
	if p, ok := cfg.Source.(connector.DecodePolicy); ok {
		l.decodePolicy, l.decodeError = p.DecodeErrors()
	}
	for _, id := range cfg.Sources {
		src := cfg.Job.Nodes[id].Op.(*graph.Source)
		l.columns = append(l.columns, src.Columns...)
	}
	slices.Sort(l.columns)
	l.columns = slices.Compact(l.columns)
	if l.columns == nil {
		l.columns = []int{}
	}
	for i := range cfg.Outputs {
		if o := &cfg.Outputs[i]; o.Exchange != nil {
			if _, err := newNeed(cfg.Job, o.Nodes[0], o.Stage); err != nil {
				return nil, fmt.Errorf("lane %s: %w", cfg.Name, err)
			}
		}
	}
	d, err := l.newDrive(&attempt{ctx: context.Background()}, nil)
	if err != nil {
		return nil, fmt.Errorf("lane %s: %w", cfg.Name, err)
	}
	d.cancel()
	return l, nil
}

func (l *Lane) now() time.Time    { return l.clock.Now() }
func (l *Lane) millis() int64     { return l.clock.Now().Sub(l.start).Milliseconds() }
func (l *Lane) wallMillis() int64 { return l.clock.Now().UnixMilli() }

func (l *Lane) notice(format string, args ...any) {
	l.cfg.Notice("lane " + l.cfg.Name + ": " + fmt.Sprintf(format, args...))
}

func (l *Lane) progress() {
	if l.cfg.Changed != nil {
		l.cfg.Changed()
	}
}

// Start begins the first attempt, on a goroutine of its own.
func (l *Lane) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.att == nil && !l.killed && l.paused == nil {
		l.begin()
	}
}

// begin is called with mu held and no attempt.
func (l *Lane) begin() {
	a := &attempt{shrink: l.shrink, starts: 1}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	l.att, l.state, l.err = a, Starting, nil
	go l.launch(a)
}

func (l *Lane) launch(a *attempt) {
	d, err := l.open(a)
	l.mu.Lock()
	a.starts--
	if err == nil && a.ctx.Err() != nil {
		err = a.ctx.Err()
		d.discard()
	}
	if err != nil {
		a.fail(err)
		l.settle(a)
		l.mu.Unlock()
		l.progress()
		return
	}
	l.state = Running
	a.drives = append(a.drives, d)
	l.mu.Unlock()
	l.progress()
	d.begin()
}

// fail keeps the first error of an attempt and ends it; a failing record lets
// the other drives finish.
func (a *attempt) fail(err error) {
	var fail *FailError
	switch {
	case a.err == nil:
		a.err = err
	case errors.Is(a.err, context.Canceled):
		a.err = err
	}
	if !errors.As(err, &fail) {
		a.cancel()
	}
}

// driveEnded is called by a drive that is done or has failed.
func (l *Lane) driveEnded(d *drive, err error) {
	d.discard()
	l.mu.Lock()
	a := d.att
	a.drives = slices.DeleteFunc(a.drives, func(x *drive) bool { return x == d })
	if err != nil {
		var fail *FailError
		if errors.As(err, &fail) {
			l.stopping.Store(true)
		}
		a.fail(err)
	}
	if err != nil || l.stopping.Load() {
		for _, x := range a.drives {
			x.member.Wake()
		}
	}
	l.settle(a)
	l.mu.Unlock()
	l.progress()
}

// settle ends an attempt when nothing of it runs any more, and decides what
// comes next. mu is held.
func (l *Lane) settle(a *attempt) {
	if len(a.drives) > 0 || a.starts > 0 || l.att != a {
		return
	}
	a.cancel()
	for _, o := range a.outputs {
		o.close()
	}
	l.att = nil
	l.wants = nil
	if l.paused != nil {
		close(l.paused)
	}
	var fail *FailError
	err := a.err
	switch {
	case l.killed:
		l.end(Stopped, err)
	case err == nil && l.stopping.Load():
		l.end(Stopped, nil)
	case err == nil:
		l.end(Finished, nil)
	case errors.As(err, &fail) || l.cfg.Book.Broken() != nil:
		l.end(Failed, err)
	case l.paused != nil && !l.stopping.Load():
		l.state, l.err, l.retryAt = BackingOff, errPaused, l.now()
	case stops(err):
		l.state, l.err = Stopped, err
		l.notice("stopped: %v", err)
		if l.stopping.Load() {
			l.end(Stopped, err)
		}
	case l.stopping.Load():
		l.end(Stopped, err)
	default:
		l.again(err)
	}
}

// end is called with mu held.
func (l *Lane) end(s State, err error) {
	l.state, l.err = s, err
	select {
	case <-l.done:
	default:
		close(l.done)
	}
}

// again schedules another attempt. mu is held.
func (l *Lane) again(err error) {
	l.err = err
	if errors.Is(err, errTooBig) && l.shrink < l.opts.BatchRows {
		l.shrink *= 8
		l.begin()
		return
	}
	l.failures++
	wait := l.jitter(l.failures - 1)
	l.state = BackingOff
	if l.failures >= l.opts.QuarantineAfter {
		l.state, wait = Quarantined, l.opts.QuarantineFor
	}
	l.retryAt = l.now().Add(wait)
	l.notice("%s: %v", l.state, err)
	if l.retry != nil {
		l.retry.Stop()
	}
	l.retry = l.clock.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.att == nil && (l.state == BackingOff || l.state == Quarantined) && !l.stopping.Load() && !l.killed && l.paused == nil {
			l.begin()
		}
	})
}

// jitter is the back-off before try n, between half of it and all of it. mu is
// held.
func (l *Lane) jitter(n int) time.Duration {
	d := l.opts.RestartMin << min(n, 20)
	if d > l.opts.RestartMax || d <= 0 {
		d = l.opts.RestartMax
	}
	return d/2 + time.Duration(l.rnd.Int64N(int64(d/2)+1))
}

func (l *Lane) backoff(n int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jitter(n)
}

func (l *Lane) sleep(ctx context.Context, d time.Duration) error {
	ready := make(chan struct{})
	t := l.clock.AfterFunc(d, func() { close(ready) })
	defer t.Stop()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// healthy resets the count of failed attempts: something was committed.
func (l *Lane) healthy() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = 0
}

func (o *output) close() {
	if o.sink != nil && o.sink.writer != nil {
		o.sink.writer.Close()
	}
	if o.exch != nil && o.exch.inlet != nil {
		o.exch.inlet.Close()
	}
}

// Quiesce waits until no goroutine of the lane's drives runs: everything that
// was due when it was called has been done. For tests that move a clock.
func (l *Lane) Quiesce() {
	l.mu.Lock()
	var members []*slot.Member
	if l.att != nil {
		for _, d := range l.att.drives {
			members = append(members, d.member)
		}
	}
	l.mu.Unlock()
	for _, m := range members {
		<-m.Idle()
	}
}
