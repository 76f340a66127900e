package checkpoint

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/connector"
)

// Config of a Coordinator.
type Config struct {
	// Tasks is the number of tasks, numbered from 0; all of them acknowledge.
	Tasks int
	// Next is the number of the first checkpoint to be made.
	Next uint64
	// IntervalMillis between two checkpoints' beginnings; 0: only on demand.
	IntervalMillis int64
	// MinPauseMillis is the least time between the end of a checkpoint and the
	// beginning of the next; the last one does not wait for it.
	MinPauseMillis int64
	// TimeoutMillis is how long a checkpoint may take until it is in the ledger;
	// 0: any time. One that takes longer ends the stages.
	TimeoutMillis int64
	// Retained is how many manifests stay; 0 is DefaultRetained.
	Retained int
	// MaxUnpublished is how many checkpoints may wait for their publishing
	// before no further one begins; 0 is DefaultMaxUnpublished.
	MaxUnpublished int
	// Kept are the manifests that the store has, ascending.
	Kept []uint64
	// AtEnd is how many tables are published whole when all input has ended.
	AtEnd int
}

// Defaults of Config.
const (
	DefaultRetained       = 5
	DefaultMaxUnpublished = 4
)

// Event is something that has happened.
type Event interface{ event() }

// The events.
type (
	// Tick says what time it is, in ms on a clock that never goes back.
	Tick struct{ NowMillis int64 }
	// Trigger asks for a checkpoint as soon as there can be one.
	Trigger struct{}
	// Acked: a task has saved its state and sealed its results for n.
	Acked struct {
		Task   int
		N      uint64
		Sealed []connector.ArtifactID
	}
	// Written: manifest n is durable.
	Written struct{ N uint64 }
	// Recorded: the ledger has the batch of n.
	Recorded struct{ N uint64 }
	// Committed: artefacts are visible, and the ledger says so.
	Committed struct{ IDs []connector.ArtifactID }
	// Ended: a task has processed the end of its input. It still acknowledges.
	Ended struct{ Task int }
	// EndPublished: one of the tables of PublishEnd is published.
	EndPublished struct{}
	// Stop asks for a last checkpoint.
	Stop struct{}
	// Failed: something cannot go on.
	Failed struct{ Err error }
)

func (Tick) event()         {}
func (Trigger) event()      {}
func (Acked) event()        {}
func (Written) event()      {}
func (Recorded) event()     {}
func (Committed) event()    {}
func (Ended) event()        {}
func (EndPublished) event() {}
func (Stop) event()         {}
func (Failed) event()       {}

// Action is something to be done.
type Action interface{ action() }

// The actions.
type (
	// Inject barrier N into the channels.
	Inject struct{ N uint64 }
	// Write manifest N: what the tasks acknowledged, and of earlier artefacts
	// those in Carry. Answered by Written.
	Write struct {
		N     uint64
		Carry []connector.ArtifactID
	}
	// Record N in the ledger. Answered by Recorded.
	Record struct {
		N   uint64
		IDs []connector.ArtifactID
	}
	// Publish artefacts, in order within a table. Answered by Committed.
	Publish struct {
		N   uint64
		IDs []connector.ArtifactID
	}
	// PublishEnd: checkpoint N is that of the end of all input: every table that
	// is published whole is now. Answered by EndPublished, once a table.
	PublishEnd struct{ N uint64 }
	// Remove manifests that are no longer needed.
	Remove struct{ Ns []uint64 }
	// Wake: send a Tick at this time.
	Wake struct{ AtMillis int64 }
	// Done: the last checkpoint is complete and everything is published.
	Done struct{}
	// Fail: stop everything; the next start restores.
	Fail struct{ Err error }
)

func (Inject) action()     {}
func (Write) action()      {}
func (Record) action()     {}
func (Publish) action()    {}
func (PublishEnd) action() {}
func (Remove) action()     {}
func (Wake) action()       {}
func (Done) action()       {}
func (Fail) action()       {}

type phase uint8

const (
	idle      phase = iota
	aligning        // barriers are in the channels
	writing         // the manifest is being made durable
	recording       // the ledger's batch is being written
	closing         // the last checkpoint is complete; publishing goes on
	over            // done or failed
)

// Coordinator decides what is done when.
type Coordinator struct {
	cfg     Config
	phase   phase
	n       uint64 // under way, or the last one
	now     int64
	due     int64 // -1: no interval
	pause   int64 // none begins before
	expires int64 // the one under way; -1: never
	woken   int64 // the time of the last Wake
	asked   bool
	last    bool // n is the last checkpoint
	atEnd   bool // n was begun when all input had ended
	whole   int  // tables whose EndPublished is waited for
	acked   []bool
	missing int
	ended   []bool
	running int
	stop    bool
	sealed  []connector.ArtifactID // at n
	open    []unpublished          // by checkpoint
	kept    []uint64
	out     []Action
}

type unpublished struct {
	n   uint64
	ids []connector.ArtifactID
}

// NewCoordinator returns a coordinator before its first event, a Tick.
func NewCoordinator(cfg Config) *Coordinator {
	if cfg.Retained <= 0 {
		cfg.Retained = DefaultRetained
	}
	if cfg.MaxUnpublished <= 0 {
		cfg.MaxUnpublished = DefaultMaxUnpublished
	}
	return &Coordinator{cfg: cfg, n: cfg.Next - 1, acked: make([]bool, cfg.Tasks), ended: make([]bool, cfg.Tasks),
		running: cfg.Tasks, due: -1, expires: -1, woken: -1, kept: slices.Clone(cfg.Kept)}
}

// ExpiredError says that a checkpoint took too long.
type ExpiredError struct {
	N      uint64
	Millis int64
	// Missing are the tasks that have not acknowledged; none: the manifest or the
	// ledger is waited for.
	Missing []int
}

func (e *ExpiredError) Error() string {
	if len(e.Missing) == 0 {
		return fmt.Sprintf("checkpoint %d was not durable after %d ms", e.N, e.Millis)
	}
	return fmt.Sprintf("checkpoint %d was not complete after %d ms: tasks %v have not sealed their results", e.N, e.Millis, e.Missing)
}

// Step takes an event and says what to do, in order.
func (c *Coordinator) Step(e Event) []Action {
	c.out = nil
	if c.phase == over {
		return nil
	}
	switch e := e.(type) {
	case Tick:
		c.now = max(c.now, e.NowMillis)
		if c.due < 0 && c.cfg.IntervalMillis > 0 {
			c.due = c.now + c.cfg.IntervalMillis
		}
		c.expire()
	case Trigger:
		c.asked = true
	case Acked:
		c.ack(e)
	case Written:
		c.written(e)
	case Recorded:
		c.recorded(e)
	case Committed:
		c.committed(e.IDs)
	case Ended:
		if !c.ended[e.Task] {
			c.ended[e.Task] = true
			c.running--
		}
	case EndPublished:
		c.whole--
	case Stop:
		c.stop = true
	case Failed:
		c.fail(e.Err)
	}
	c.begin()
	c.wake()
	return c.out
}

func (c *Coordinator) do(a Action) { c.out = append(c.out, a) }

func (c *Coordinator) fail(err error) {
	c.phase, c.out = over, nil
	c.do(Fail{err})
}

func (c *Coordinator) bug(format string, args ...any) {
	c.fail(fmt.Errorf("BUG: "+format, args...))
}

// expire ends everything when the checkpoint under way takes too long.
func (c *Coordinator) expire() {
	if c.expires < 0 || c.now < c.expires {
		return
	}
	err := &ExpiredError{N: c.n, Millis: c.cfg.TimeoutMillis}
	for t, ok := range c.acked {
		if !ok && c.phase == aligning {
			err.Missing = append(err.Missing, t)
		}
	}
	c.fail(err)
}

// wake asks for a Tick at the next time at which something is due.
func (c *Coordinator) wake() {
	next := int64(-1)
	at := func(t int64) {
		if t > c.now && (next < 0 || t < next) {
			next = t
		}
	}
	switch c.phase {
	case idle:
		at(c.due)
		if c.asked {
			at(c.pause)
		}
		if c.due >= 0 && c.due <= c.now {
			at(c.pause)
		}
	case aligning, writing, recording:
		if !c.last {
			at(c.due)
		}
		at(c.expires)
	}
	if next >= 0 && next != c.woken {
		c.woken = next
		c.do(Wake{next})
	}
}

// begin injects barriers when there is a reason and nothing in the way.
func (c *Coordinator) begin() {
	switch {
	case c.phase == closing:
		if len(c.open) == 0 && c.whole == 0 {
			c.phase = over
			c.do(Done{})
		}
		return
	case c.phase != idle:
		return
	}
	final := c.stop || c.running == 0
	timed := c.due >= 0 && c.now >= c.due
	if !final && !timed && !c.asked {
		return
	}
	// Invariant 8; the last checkpoint is not held back: nothing comes after it.
	if !final && (len(c.open) >= c.cfg.MaxUnpublished || c.now < c.pause) {
		return
	}
	c.n++
	c.phase, c.asked, c.last, c.atEnd = aligning, false, final, c.running == 0
	c.missing, c.sealed = c.cfg.Tasks, nil
	clear(c.acked)
	c.do(Inject{c.n})
	if timed && !final {
		c.due = c.now + c.cfg.IntervalMillis
	}
	if c.cfg.TimeoutMillis > 0 {
		c.expires = c.now + c.cfg.TimeoutMillis
	}
	if c.missing == 0 {
		c.write()
	}
}

func (c *Coordinator) ack(e Acked) {
	if c.phase != aligning || e.N != c.n || c.acked[e.Task] {
		c.bug("task %d acknowledged checkpoint %d, which is not under way", e.Task, e.N)
		return
	}
	c.acked[e.Task] = true
	c.sealed = append(c.sealed, e.Sealed...)
	if c.missing--; c.missing == 0 {
		c.write()
	}
}

func (c *Coordinator) write() {
	c.phase = writing
	var carry []connector.ArtifactID
	for _, u := range c.open {
		carry = append(carry, u.ids...)
	}
	c.do(Write{c.n, carry})
}

func (c *Coordinator) written(e Written) {
	if c.phase != writing || e.N != c.n {
		c.bug("manifest %d is written, which was not asked for", e.N)
		return
	}
	c.phase = recording
	c.do(Record{c.n, c.sealed})
}

func (c *Coordinator) recorded(e Recorded) {
	if c.phase != recording || e.N != c.n {
		c.bug("checkpoint %d is in the ledger, which was not asked for", e.N)
		return
	}
	c.phase, c.expires, c.pause = idle, -1, c.now+c.cfg.MinPauseMillis
	if len(c.sealed) > 0 {
		c.open = append(c.open, unpublished{c.n, c.sealed})
		c.do(Publish{c.n, c.sealed})
	}
	c.kept = append(c.kept, c.n)
	if extra := len(c.kept) - c.cfg.Retained; extra > 0 {
		c.do(Remove{slices.Clone(c.kept[:extra])})
		c.kept = slices.Delete(c.kept, 0, extra)
	}
	// Input that ended, or a stop that was asked for, while this one was made
	// needs another: its barriers stood before the end.
	if c.last {
		c.phase = closing
		if c.atEnd && c.cfg.AtEnd > 0 {
			c.whole = c.cfg.AtEnd
			c.do(PublishEnd{c.n})
		}
	}
}

func (c *Coordinator) committed(ids []connector.ArtifactID) {
	for i := range c.open {
		u := &c.open[i]
		u.ids = slices.DeleteFunc(slices.Clone(u.ids), func(id connector.ArtifactID) bool { return slices.Contains(ids, id) })
	}
	c.open = slices.DeleteFunc(c.open, func(u unpublished) bool { return len(u.ids) == 0 })
}

// Number is the checkpoint under way, or the last one.
func (c *Coordinator) Number() uint64 { return c.n }
