package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/home"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

const (
	// probeEvery is how often a home is looked at, at least six times in the time
	// after which a table moves; probeWait is how long it may take to answer.
	probeEvery = 5 * time.Second
	probeWait  = 10 * time.Second
	// switchWait bounds how long the home that a table moves to may take to answer.
	switchWait = 15 * time.Second
)

// standby is a table's second home and what is known of its first.
type standby struct {
	connector.Standby
	sink *home.Sink

	moving sync.Mutex // one switch at a time
	mu     sync.Mutex
	since  time.Time // since when the active home fails; zero: it does not
	why    error
	next   time.Time // when void files are looked for again
	// purged are the table partitions, by home, of which nothing void is left; of the
	// goroutine that watches the homes.
	purged [connector.Homes]map[string]bool
}

// openHomes opens a table with a standby: its active home, or, at a start where that
// is away and the rule says so, the other one.
func (r *Run) openHomes(ctx context.Context, t *table, op *graph.Sink, sc connector.StandbyConnector, sb *connector.Standby) error {
	places := [connector.Homes]*connector.Table{op.Table, sb.Table}
	cfg := home.Config{Book: r.book, Table: t.fact, Open: func(ctx context.Context, h uint8) (connector.Sink, error) {
		return sc.OpenSink(ctx, places[h], r.owner())
	}}
	what := "table " + t.fact.Name
	open := func() error {
		return r.patiently(ctx, what, func(ctx context.Context) error {
			s, err := home.Open(ctx, cfg)
			if err == nil {
				t.sink, t.standby = s, &standby{Standby: *sb, sink: s}
			}
			return err
		})
	}
	err := open()
	var away *connector.AwayError
	if errors.As(err, &away) {
		active, _ := r.book.ActiveHome(t.fact.ID)
		other := 1 - active
		if !sb.Auto {
			return fmt.Errorf("%w; its other home is %s: millrace tables switch %s --to %s", err, placeName(sb, other), t.fact.Name, connector.HomeName(other))
		}
		if _, serr := r.book.Switch(ctx, ledger.SwitchOptions{Table: t.fact.ID, To: other, TimeMillis: r.clock.Now().UnixMilli(),
			Reason: fmt.Sprintf("the %s home was away at the start for %v", connector.HomeName(active), r.opts.StartRetry)}); serr != nil {
			return errors.Join(err, serr)
		}
		r.notice("%s: its %s home is away (%v); it goes on at %s", what, connector.HomeName(active), away.Err, placeName(sb, other))
		err = open()
	}
	if err != nil {
		return err
	}
	active, number := r.book.ActiveHome(t.fact.ID)
	if number > 0 {
		r.notice("%s: its home is %s, since switch %d", what, placeName(sb, active), number)
	}
	return r.tellSwitch(ctx, t)
}

func placeName(sb *connector.Standby, h uint8) string {
	where := sb.Main
	if h == connector.StandbyHome {
		where = sb.Standby
	}
	return fmt.Sprintf("%s (%s)", connector.HomeName(h), where)
}

// keyless refuses a standby of a table that keyed stages write: their rows cannot be
// read again by offsets.
func (r *Run) keyless() error {
	for _, names := range r.feeds() {
		for _, n := range names {
			if t := r.tables[n]; t != nil && t.standby != nil {
				return &graph.NotYetError{Feature: "a standby for table " + n + ", which a keyed query writes"}
			}
		}
	}
	return nil
}

// SwitchRequest asks for a table to move to another home.
type SwitchRequest struct {
	Table string
	To    uint8
	// Edge: partitions that have begun stay, new ones begin at the other home.
	Edge   bool
	Reason string
}

// ErrNoStandby is returned for a table that has one home.
var ErrNoStandby = errors.New("the table has no standby")

// Switch moves a table to another home, while the job runs: its lanes are stopped as
// by a crash, the move becomes durable, and they go on at the new home, where the
// rows of partitions that are not finished are written anew from the log.
func (r *Run) Switch(ctx context.Context, q SwitchRequest) (ledger.Switched, error) {
	var none ledger.Switched
	t := r.tables[q.Table]
	if t == nil || t.standby == nil {
		return none, fmt.Errorf("table %s: %w", q.Table, ErrNoStandby)
	}
	s := t.standby
	s.moving.Lock()
	defer s.moving.Unlock()
	active, number := r.book.ActiveHome(t.fact.ID)
	if active == q.To {
		return ledger.Switched{Number: number}, nil
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	over := r.clock.AfterFunc(switchWait, cancel)
	_, err := s.sink.At(bounded, q.To)
	over.Stop()
	if err != nil {
		if ctx.Err() == nil && (bounded.Err() != nil || connector.IsAway(err)) {
			err = &connector.AwayError{What: "table " + q.Table, For: switchWait, Err: err}
		}
		return none, fmt.Errorf("the table stays where it is: %w", err)
	}
	lanes := feeders(r.snapshot())[t]
	for _, l := range lanes {
		if state, _ := l.State(); state == lane.Finished || state == lane.Failed {
			return none, fmt.Errorf("lane %s has %s: the table stays where it is; the next run of the job can move it", l.Config().Name, state)
		}
	}
	defer func() {
		for _, l := range lanes {
			l.Unpause()
		}
		t.stirred.Store(true)
		r.changed()
	}()
	if err := pauseAll(ctx, lanes, func() { s.sink.HurryHome(active) }); err != nil {
		return none, err
	}
	// Calls of the old attempts have ended; what is still under way is void.
	if err := s.sink.Leave(active); err != nil {
		r.deps.Log.Warn("leaving a home", "table", q.Table, "error", err)
	}
	done, err := t.move(ctx, r, q, lanes)
	if err != nil {
		return none, fmt.Errorf("recording the switch of table %s: %w", q.Table, err)
	}
	s.mu.Lock()
	s.since, s.why, s.next = time.Time{}, nil, r.clock.Now().Add(clearEvery)
	s.mu.Unlock()
	if err := r.tellSwitch(ctx, t); err != nil {
		r.notice("table %s: %v; it is told again at the next start", q.Table, err)
	}
	r.notice("table %s: switch %d: its home is %s now (%s); %d partitions move with %d rows, %d stay", q.Table, done.Number,
		placeName(&s.Standby, q.To), q.Reason, len(done.Moved), done.Rows, len(done.Stayed))
	return done, nil
}

// pauseAll pauses lanes side by side; what hangs at the old home ends by hurry.
func pauseAll(ctx context.Context, lanes []*laneOf, hurry func()) error {
	errs := make([]error, len(lanes))
	var wg sync.WaitGroup
	for i, l := range lanes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = l.Pause(ctx)
		}()
	}
	hurry()
	wg.Wait()
	return errors.Join(errs...)
}

// move makes a switch durable, in order with the steps of the table's committer.
func (t *table) move(ctx context.Context, r *Run, q SwitchRequest, lanes []*laneOf) (ledger.Switched, error) {
	if t.closer != nil {
		t.closer.gate.Lock()
		defer t.closer.gate.Unlock()
	}
	o := ledger.SwitchOptions{Table: t.fact.ID, To: q.To, Edge: q.Edge, TimeMillis: r.clock.Now().UnixMilli(), Reason: q.Reason, Stay: map[string]bool{}}
	if !q.Edge {
		for tp, from := range r.book.WouldMove(o) {
			o.Stay[tp] = !r.readable(ctx, lanes, t, tp, from)
		}
	}
	done, err := r.book.Switch(ctx, o)
	if err == nil {
		for _, n := range r.book.Moving(t.fact.ID) {
			done.Rows += n
		}
	}
	return done, err
}

// readable reports whether the log still has what a partition holds, from its first
// offsets on.
func (r *Run) readable(ctx context.Context, lanes []*laneOf, t *table, tp string, from map[ledger.SourceKey]int64) bool {
	for k, offset := range from {
		found := false
		for _, l := range lanes {
			for _, p := range l.Config().Partitions {
				if p.TopicID != k.Topic || p.ID != k.Partition {
					continue
				}
				found = true
				errs, err := l.source.src.Check(ctx, []connector.Position{{Partition: p, LeaderEpoch: -1, Offset: offset}})
				if err := errors.Join(append(errs, err)...); err != nil {
					r.notice("table %s: what partition %s has stays at its home: %v", t.fact.Name, tp, err)
					return false
				}
			}
		}
		if !found {
			r.notice("table %s: what partition %s has stays at its home: no lane reads the topic that its rows come from", t.fact.Name, tp)
			return false
		}
	}
	return true
}

// keepUnread looks, before lanes run, whether the log still has what was moved while
// nothing ran; what it does not have stays where it is.
func (r *Run) keepUnread(ctx context.Context) error {
	for _, t := range r.tables {
		if t.standby == nil {
			continue
		}
		lanes := feeders(r.snapshot())[t]
		for tp, from := range r.book.Unread(t.fact.ID) {
			if r.readable(ctx, lanes, t, tp, from) {
				continue
			}
			ok, err := r.book.Keep(ctx, t.fact.ID, tp)
			if err != nil {
				return fmt.Errorf("table %s: keeping partition %s where it is: %w", t.fact.Name, tp, err)
			}
			if !ok {
				r.notice("table %s: partition %s cannot be written anew; its void files lie in .staging/%s/void of its old home", t.fact.Name, tp, r.deps.Scope.Job)
			}
		}
	}
	return nil
}

// watchHomes looks at the homes of tables with a standby until the run ends.
func (r *Run) watchHomes() {
	for _, t := range r.tables {
		if t.standby != nil {
			r.background(func() { r.watchHome(t) })
		}
	}
}

func (r *Run) watchHome(t *table) {
	every := probeEvery
	if t.standby.Auto {
		every = min(every, max(t.standby.After/6, time.Millisecond))
	}
	for r.rest(every) {
		r.probe(t)
		r.clearVoid(t)
	}
}

// rest waits; false: the run has ended.
func (r *Run) rest(d time.Duration) bool {
	ready := make(chan struct{})
	timer := r.clock.AfterFunc(d, func() { close(ready) })
	defer timer.Stop()
	select {
	case <-ready:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// probe looks at the active home and moves the table when the rule says so.
func (r *Run) probe(t *table) {
	s := t.standby
	active, _ := r.book.ActiveHome(t.fact.ID)
	err := r.asked(probeWait, func(ctx context.Context) error {
		x, err := s.sink.At(ctx, active)
		if err != nil {
			return err
		}
		return x.Probe(ctx)
	})
	now := r.clock.Now()
	s.mu.Lock()
	switch {
	case err == nil:
		s.since, s.why = time.Time{}, nil
	case s.since.IsZero():
		s.since, s.why = now, err
	default:
		s.why = err
	}
	failed := time.Duration(0)
	if !s.since.IsZero() {
		failed = now.Sub(s.since)
	}
	s.mu.Unlock()
	if err == nil || !s.Auto || failed < s.After || r.stopping.Load() {
		return
	}
	_, err = r.Switch(r.ctx, SwitchRequest{Table: t.fact.Name, To: 1 - active,
		Reason: fmt.Sprintf("the %s home has failed for %v: %v", connector.HomeName(active), failed.Round(time.Second), err)})
	if err != nil && r.ctx.Err() == nil {
		r.notice("table %s: its %s home has failed for %v, and it cannot move: %v", t.fact.Name, connector.HomeName(active), failed.Round(time.Second), err)
	}
}

// asked bounds a question by the run's clock.
func (r *Run) asked(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	t := r.clock.AfterFunc(d, cancel)
	defer t.Stop()
	return f(ctx)
}
