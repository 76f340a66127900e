package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
)

// closer is a table's one committer: it closes table partitions and announces
// them. What to do is decided by [decideClose]; this type does it.
type closer struct {
	book   *ledger.Book
	table  *ledger.Table
	sink   connector.PartitionCommitter
	tell   func(context.Context, *ledger.Close) error // before it is recorded; nil: nobody
	policy connector.CommitPolicy
	clock  slot.Clock
	log    *slog.Logger

	// gate orders commits of files by lanes and the steps of a close. What a
	// keyed stage commits is ordered by the ledger, which refuses an
	// announcement that a commit has overtaken.
	gate sync.Mutex

	mu     sync.Mutex
	wanted map[string]bool
	first  map[string]int64 // ms when a partition was first seen, for ProcessTime
	busy   bool
	// watermark is the table's at the last look.
	watermark int64
	err       error // of the last announcement; shown, and tried again
	// After a failed announcement the next one waits, longer each time.
	wait         time.Duration
	again, since time.Time
}

const (
	firstAnnounceWait = 200 * time.Millisecond
	maxAnnounceWait   = 15 * time.Second
	// announceBatch bounds how many partitions a sink announces in one call.
	announceBatch = 100
	// announcePatience is how long a bounded run, whose rows are all committed,
	// tries to announce them in the face of errors that may go away.
	announcePatience = 5 * time.Minute
)

func newCloser(b *ledger.Book, t *ledger.Table, pc connector.PartitionCommitter, p connector.CommitPolicy, c slot.Clock, log *slog.Logger) *closer {
	return &closer{book: b, table: t, sink: pc, policy: p, clock: c, log: log, wanted: map[string]bool{}, first: map[string]int64{}, watermark: batch.NoWatermark}
}

// Commit implements lane.PartitionCloser.
func (c *closer) Commit(ctx context.Context, facts []ledger.Fact, parts []string) error {
	c.gate.Lock()
	defer c.gate.Unlock()
	for _, tp := range parts {
		// Late rows: the partition goes through its steps once more, in the
		// same ledger batch, so that no crash can keep it from being announced.
		if old := c.book.Close(ledger.CloseKey{Table: c.table.ID, TablePartition: tp}); old != nil && old.Step >= ledger.Closed {
			f := *old
			f.Step, f.Version, f.TimeMillis = ledger.Closing, old.Version+1, c.clock.Now().UnixMilli()
			facts = append(facts, &f)
		}
	}
	return c.book.Append(ctx, facts...)
}

// Intend implements lane.PartitionCloser.
func (c *closer) Intend(ctx context.Context, facts []ledger.Fact, parts []string) error {
	c.gate.Lock()
	defer c.gate.Unlock()
	for _, tp := range parts {
		if x := c.book.Close(ledger.CloseKey{Table: c.table.ID, TablePartition: tp}); x != nil && x.Step >= ledger.Closed {
			return fmt.Errorf("partition %s: %w", tp, lane.ErrPartitionClosed)
		}
	}
	return c.book.Append(ctx, facts...)
}

// undisturbed are the facts of a plan that still hold where no file may come into a
// closed partition: none was about to since the plan was made. gate is held.
func (c *closer) undisturbed(facts []ledger.Fact) []ledger.Fact {
	if !c.policy.Aside {
		return facts
	}
	pending := map[string]bool{}
	c.book.IntentsOf(c.table.ID, func(e *ledger.Entry) bool {
		for i := range e.Artifacts {
			if e.Result == ledger.Pending {
				pending[e.Artifacts[i].Header.TablePartition] = true
			}
		}
		return false
	})
	return slices.DeleteFunc(facts, func(f ledger.Fact) bool {
		x := f.(*ledger.Close)
		return x.Step == ledger.Closed && pending[x.TablePartition]
	})
}

// Wanted implements lane.PartitionCloser.
func (c *closer) Wanted(tp string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted[tp]
}

// closeState is what decideClose knows.
type closeState struct {
	now    int64 // ms, wall clock
	policy connector.CommitPolicy
	// known: every lane of the table runs or has finished; else nothing is
	// begun, as positions are missing.
	known bool
	// ended: all input of the table has ended and is committed.
	ended bool
	// leave: the lanes are not those that the partitions wait for, which alone
	// close them for the first time.
	leave    bool
	progress []lane.Progress
	// idle says whether a partition no longer holds the watermark.
	idle func(*lane.Progress) bool
	// partitions are the table partitions with rows: in open files, pending or
	// committed; open those with rows that are not committed.
	partitions []string
	open       map[string]bool
	first      map[string]int64
	closes     map[string]*ledger.Close
	// switches is the number of the table's last switch when this was gathered.
	switches uint32
}

// closePlan is what is to be done.
type closePlan struct {
	facts    []*ledger.Close
	announce []*ledger.Close
	seal     []string
}

// decideClose decides the next steps of a table's partitions. It is pure.
//
//	(rows) --trigger--> closing --bounds reached, files committed--> closed
//	closed --announce--> announced --a late file--> closing, next version
//
// A replay goes through the second line alone while its job is not finished.
func decideClose(s *closeState) closePlan {
	var p closePlan
	for _, tp := range s.partitions {
		c := s.closes[tp]
		switch {
		case s.leave && (c == nil || c.Step == ledger.Closing && c.Version == 1):
			// Its files are there; the run that reads the topics closes it.
		case c == nil:
			if s.known && s.triggered(tp) {
				f := &ledger.Close{TablePartition: tp, Step: ledger.Closing, Version: 1, Bounds: s.bounds(), TimeMillis: s.now}
				p.facts = append(p.facts, f)
				p.seal = append(p.seal, tp)
			}
		case c.Step == ledger.Closing:
			p.seal = append(p.seal, tp)
			if s.known && !s.open[tp] && s.reached(c.Bounds) {
				f := *c
				f.Step, f.TimeMillis = ledger.Closed, s.now
				p.facts = append(p.facts, &f)
			}
		case c.Step == ledger.Closed:
			p.announce = append(p.announce, c)
		}
	}
	return p
}

// triggered reports whether a table partition is to be closed.
func (s *closeState) triggered(tp string) bool {
	if s.ended {
		return true
	}
	delay := s.policy.Delay.Milliseconds()
	if s.policy.Trigger == connector.ProcessTime {
		first, ok := s.first[tp]
		return ok && s.now >= first+delay
	}
	if s.policy.Time == nil {
		return false
	}
	at, err := s.policy.Time(tp)
	if err != nil {
		// A partition without a time (the default partition's name) closes at
		// the end of the input.
		return false
	}
	return s.watermark() >= at+delay
}

// watermark is the least of the partitions that are not idle; when all are,
// the highest, as nothing else can be expected.
func (s *closeState) watermark() int64 {
	low, high, active := batch.MaxWatermark, batch.NoWatermark, false
	for i := range s.progress {
		x := &s.progress[i]
		high = max(high, x.Watermark)
		if !s.idle(x) {
			active = true
			low = min(low, x.Watermark)
		}
	}
	if active {
		return low
	}
	return high
}

// bounds are the first offsets not processed yet.
func (s *closeState) bounds() []ledger.Bound {
	var out []ledger.Bound
	for i := range s.progress {
		x := &s.progress[i]
		out = append(out, ledger.Bound{Topic: x.Output.Topic, Partition: x.Output.Partition, Offset: x.Next})
	}
	return out
}

// reached reports whether every lane is at or past the bounds: after a crash
// it has read again what lies below them.
func (s *closeState) reached(bounds []ledger.Bound) bool {
	for _, b := range bounds {
		for i := range s.progress {
			x := &s.progress[i]
			if x.Output.Topic == b.Topic && x.Output.Partition == b.Partition && x.Next < b.Offset {
				return false
			}
		}
	}
	return true
}

// step looks at the table's lanes and does what is due; work that touches the
// sink runs on a goroutine of its own. It returns whether partitions are
// still on their way.
func (c *closer) step(ctx context.Context, s *closeState, wake func(), done *sync.WaitGroup) (pending bool, err error) {
	c.load(s)
	plan := decideClose(s)
	facts := make([]ledger.Fact, 0, len(plan.facts))
	for _, f := range plan.facts {
		f.Table = c.table.ID
		facts = append(facts, f)
	}
	if len(facts) > 0 {
		c.gate.Lock()
		var err error
		if _, now := c.book.ActiveHome(c.table.ID); now == s.switches {
			err = c.book.Append(ctx, c.undisturbed(facts)...)
		} // else partitions that seemed complete have moved: the next look will tell
		c.gate.Unlock()
		if err != nil {
			return true, fmt.Errorf("closing partitions of table %s: %w", c.table.Name, err)
		}
	}
	c.mu.Lock()
	c.watermark = s.watermark()
	changed := len(plan.seal) != len(c.wanted)
	for _, tp := range plan.seal {
		changed = changed || !c.wanted[tp]
	}
	clear(c.wanted)
	for _, tp := range plan.seal {
		c.wanted[tp] = true
	}
	start := len(plan.announce) > 0 && !c.busy && !c.clock.Now().Before(c.again)
	c.busy = c.busy || start
	c.mu.Unlock()
	if changed || len(facts) > 0 {
		wake()
	}
	if start {
		done.Add(1)
		go func() {
			defer done.Done()
			c.announce(ctx, plan.announce)
			wake()
		}()
	}
	return len(plan.seal)+len(plan.announce)+len(facts) > 0, nil
}

// load fills in what the book and the closer know.
func (c *closer) load(s *closeState) {
	s.policy = c.policy
	_, s.switches = c.book.ActiveHome(c.table.ID)
	for _, m := range c.book.Moves(c.table.ID, nil) {
		if !m.Done() {
			s.open[m.TablePartition] = true
		}
	}
	s.closes = map[string]*ledger.Close{}
	seen := map[string]bool{}
	delete(s.open, "") // what lies aside is no partition
	for tp := range s.open {
		seen[tp] = true
	}
	for _, x := range c.book.Closes(c.table.ID) {
		s.closes[x.TablePartition] = x
		seen[x.TablePartition] = true
	}
	c.book.IntentsOf(c.table.ID, func(e *ledger.Entry) bool {
		if e.Result == ledger.Void {
			return false
		}
		for i := range e.Artifacts {
			tp := e.Artifacts[i].Header.TablePartition
			if tp == "" {
				continue // aside, by this or an earlier text of the job
			}
			seen[tp] = true
			if e.Result == ledger.Pending {
				s.open[tp] = true
			}
		}
		return false
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for tp := range seen {
		s.partitions = append(s.partitions, tp)
		if _, ok := c.first[tp]; !ok {
			c.first[tp] = s.now
		}
	}
	slices.Sort(s.partitions)
	s.first = c.first
}
