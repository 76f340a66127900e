package lanetest

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

// ErrCrashed is what every operation of a crashed process gives.
var ErrCrashed = errors.New("the process has crashed")

// World is what outlives processes.
type World struct {
	Store *ledger.MemStore

	mu     sync.Mutex
	tables map[string]*table
	dead   []lane.DeadEntry
}

// NewWorld returns an empty world.
func NewWorld() *World {
	return &World{Store: ledger.NewMemStore(), tables: map[string]*table{}}
}

// Process is one life of a program in a world.
type Process struct {
	w *World

	mu      sync.Mutex
	ops     int
	names   []string
	crashAt int
	after   bool
	crashed chan struct{}
	fault   Fault
	unknown bool
	blocked map[string]<-chan struct{} // by "table operation"
	away    map[string]bool            // tables whose system is
}

// Fault decides about an operation before it has an effect. With an error it
// fails; apply says whether it has its effect all the same (a reply that was
// lost). Block, when not nil, is waited for first.
type Fault func(op string) (err error, apply bool, block <-chan struct{})

// Process starts a life.
func (w *World) Process() *Process { return &Process{w: w, crashed: make(chan struct{})} }

// CrashAt makes the process crash at its n-th operation from 1, before or
// after the operation has its effect.
func (p *Process) CrashAt(n int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crashAt, p.after = n, after
}

// SetFault makes operations fail.
func (p *Process) SetFault(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// SetUnknown makes every Resolve answer that it cannot be known.
func (p *Process) SetUnknown(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unknown = on
}

// SetTableFault makes an operation of one table hang until a channel is
// closed.
func (p *Process) SetTableFault(table, op string, until <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blocked == nil {
		p.blocked = map[string]<-chan struct{}{}
	}
	p.blocked[table+" "+op] = until
}

// SetAway takes a table's system away, or brings it back.
func (p *Process) SetAway(table string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away == nil {
		p.away = map[string]bool{}
	}
	p.away[table] = on
}

// AwayError is what a table gives whose system is away.
type AwayError struct{ Table string }

func (e *AwayError) Error() string { return "the system of table " + e.Table + " is away" }

// Away implements connector.Away.
func (e *AwayError) Away() bool { return true }

// there is nil when a table's system is.
func (p *Process) there(table string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away[table] {
		return &AwayError{table}
	}
	return nil
}

// hang waits as SetTableFault says.
func (p *Process) hang(table, op string) {
	p.mu.Lock()
	until := p.blocked[table+" "+op]
	p.mu.Unlock()
	if until == nil {
		return
	}
	select {
	case <-until:
	case <-p.crashed:
	}
}

// Crash makes the process crash now.
func (p *Process) Crash() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crash()
}

func (p *Process) crash() {
	select {
	case <-p.crashed:
	default:
		close(p.crashed)
	}
}

// Crashed reports whether it has.
func (p *Process) Crashed() bool {
	select {
	case <-p.crashed:
		return true
	default:
		return false
	}
}

// Dying is closed when the process crashes.
func (p *Process) Dying() <-chan struct{} { return p.crashed }

// Operations are the names of the operations so far.
func (p *Process) Operations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.names...)
}

// op runs an operation's effect on the world, unless the process crashes.
// Effects are serialised: they are what a crash falls between.
func (p *Process) op(name string, effect func() error) error {
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	var ferr error
	apply := true
	if fault != nil {
		var block <-chan struct{}
		ferr, apply, block = fault(name)
		if ferr == nil {
			apply = true
		}
		if block != nil {
			select {
			case <-block:
			case <-p.crashed:
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.crashed:
		return ErrCrashed
	default:
	}
	p.ops++
	p.names = append(p.names, name)
	if p.ops == p.crashAt {
		if p.after && effect != nil && apply {
			_ = effect()
		}
		p.crash()
		return ErrCrashed
	}
	if effect != nil && apply {
		if err := effect(); err != nil {
			return err
		}
	}
	return ferr
}

// Store is the ledger's store as the process sees it.
func (p *Process) Store() ledger.Store { return store{p} }

type store struct{ p *Process }

func (s store) Append(ctx context.Context, records []ledger.Record) error {
	return s.p.op("ledger", func() error { return s.p.w.Store.Append(context.WithoutCancel(ctx), records) })
}

func (s store) Load(ctx context.Context, f func(ledger.Record) error) error {
	return s.p.w.Store.Load(ctx, f)
}

// DeadLetters are the world's dead letters as the process sees them.
func (p *Process) DeadLetters() lane.DeadLetters { return dead{p} }

type dead struct{ p *Process }

func (d dead) Write(_ context.Context, entries []lane.DeadEntry) error {
	return d.p.op("dead", func() error {
		d.p.w.mu.Lock()
		defer d.p.w.mu.Unlock()
		d.p.w.dead = append(d.p.w.dead, entries...)
		return nil
	})
}

func (d dead) Durable(_ context.Context, table, topic connector.UUID, from map[int32]int64) ([]lane.DeadRecord, error) {
	d.p.w.mu.Lock()
	defer d.p.w.mu.Unlock()
	return lane.MergeDead(d.p.w.dead, table, topic, from), nil
}

// Dead are all dead letters, in the order they were written.
func (w *World) Dead() []lane.DeadEntry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]lane.DeadEntry(nil), w.dead...)
}
