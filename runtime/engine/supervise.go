package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
)

const (
	// lookPause and lookMost bound the pause between two looks at progress;
	// lookShare is how many times longer than a look it is: looking costs a
	// small share of a processor, however many lanes there are.
	lookPause = 2 * time.Millisecond
	lookMost  = 250 * time.Millisecond
	lookShare = 20
	// tickEvery is how often rates are taken and timers looked at.
	tickEvery = time.Second
	// mirrorEvery is how often positions are shown to sources.
	mirrorEvery = 5 * time.Second
	mirrorWait  = 2 * time.Second
	packEvery   = 10 * time.Second
	pruneEvery  = time.Minute
	// minutesKept is how long the ledger counts by minute; then by hour.
	minutesKept = 48 * time.Hour
)

// supervise closes partitions, looks for new ones, moves lanes between slots
// and ends the run.
func (r *Run) supervise() {
	defer r.bg.Done()
	var tick slot.Timer
	arm := func() { tick = r.clock.AfterFunc(tickEvery, r.changed) }
	arm()
	r.changed()
	for range r.kick {
		tick.Stop()
		began := r.clock.Now()
		if r.look() {
			break
		}
		arm()
		rest := min(max(lookPause, lookShare*r.clock.Now().Sub(began)), lookMost)
		// Progress comes with every batch; acting on it now and then will do.
		pause := make(chan struct{})
		t := r.clock.AfterFunc(rest, func() { close(pause) })
		select {
		case <-pause:
		case <-r.hurry:
		}
		t.Stop()
	}
	tick.Stop()
	if !r.killed.Load() {
		r.lastMirror()
	}
	r.cancel()
	go func() {
		// What hangs in a system that does not answer must not hold the end.
		r.bg.Wait()
		r.closeAll()
	}()
	close(r.done)
}

// lastMirror shows the sources where the run has ended, unless one hangs.
func (r *Run) lastMirror() {
	shown := make(chan struct{})
	late := make(chan struct{})
	t := r.clock.AfterFunc(mirrorWait, func() { close(late) })
	defer t.Stop()
	r.background(func() {
		defer close(shown)
		r.mirror(r.snapshot())
	})
	select {
	case <-shown:
	case <-late:
	}
}

// look does what is due; it returns true when the run is over.
func (r *Run) look() (over bool) {
	r.mu.Lock()
	finished, failed := r.finished, r.err
	r.mu.Unlock()
	if finished {
		return true
	}
	if failed != nil && !r.stopping.Load() {
		r.stopping.Store(true)
		go func() { _ = r.Stop(context.Background()) }()
		return false
	}
	if r.keyed != nil && r.keyedEnded() && r.keyed.Err() != nil && !r.stopping.Load() {
		r.fail(r.keyed.Err())
		r.changed()
		return false
	}
	lanes := r.snapshot()
	// Asked before the closers look: what they see is then final. Lanes that Stop has
	// ended meanwhile have not ended by themselves.
	ended := !r.stopping.Load() && r.ended(lanes) && !r.stopping.Load()
	pending := r.stepClosers(lanes, ended)
	r.timed(lanes)
	return ended && r.over(lanes, pending)
}

// stepClosers lets the tables' committers look: those whose lanes have moved,
// and all now and then, as some things come with time, or with the end.
func (r *Run) stepClosers(lanes []*laneOf, ended bool) (pending bool) {
	now := r.clock.Now()
	all := ended || now.Sub(r.stepped) >= tickEvery
	if all {
		r.stepped = now
	}
	var feeds map[*table][]*laneOf
	for _, t := range r.tables {
		if t.closer == nil {
			continue
		}
		if t.stirred.Swap(false) || all || t.pending {
			if feeds == nil {
				feeds = feeders(lanes)
			}
			var err error
			t.pending, err = t.closer.step(r.ctx, r.closeState(t, feeds[t]), func() { r.wake(feeds[t], t) }, &r.bg)
			if err != nil {
				r.fail(err)
				r.changed()
			}
		}
		pending = pending || t.pending
	}
	return pending
}

// feeders are the lanes that write each table.
func feeders(lanes []*laneOf) map[*table][]*laneOf {
	out := map[*table][]*laneOf{}
	for _, l := range lanes {
		for _, t := range l.tables {
			out[t] = append(out[t], l)
		}
	}
	return out
}

// wake lets lanes look for files that a close wants.
func (r *Run) wake(lanes []*laneOf, t *table) {
	for _, l := range lanes {
		l.Wake()
	}
	t.stirred.Store(true)
	r.changed()
}

// stir says that a lane has moved.
func (r *Run) stir(l *laneOf) {
	for _, t := range l.tables {
		t.stirred.Store(true)
	}
	r.changed()
	if f := r.deps.Hooks.Changed; f != nil {
		f()
	}
}

// timed does what is due by the clock.
func (r *Run) timed(lanes []*laneOf) {
	now := r.clock.Now()
	r.sample(now)
	due := func(at *time.Time, every time.Duration) bool {
		if every <= 0 || now.Sub(*at) < every {
			return false
		}
		first := at.IsZero()
		*at = now
		return !first
	}
	if due(&r.mirrored, mirrorEvery) {
		r.once(&r.mirroring, func() { r.mirror(lanes) })
	}
	if due(&r.packed, packEvery) {
		r.repack(lanes)
	}
	if due(&r.pruned, pruneEvery) {
		r.once(&r.pruning, r.prune)
	}
	if !r.job.Bounded && due(&r.looked, r.opts.Discovery) {
		r.once(&r.looking, func() {
			if err := r.findLanes(r.ctx, false); err != nil && r.ctx.Err() == nil {
				r.notice("looking for new partitions: %v", err)
			}
		})
	}
}

// once runs f in the background unless it still runs from the last time.
func (r *Run) once(busy *atomic.Bool, f func()) {
	if busy.CompareAndSwap(false, true) {
		r.background(func() {
			defer busy.Store(false)
			f()
		})
	}
}

func (r *Run) background(f func()) {
	r.bg.Add(1)
	go func() {
		defer r.bg.Done()
		f()
	}()
}

// closeState gathers how far the lanes of a table are.
func (r *Run) closeState(t *table, lanes []*laneOf) *closeState {
	now := r.clock.Now()
	s := &closeState{now: now.UnixMilli(), known: true, ended: true, leave: r.deps.LeaveCloses, open: map[string]bool{}}
	idle := map[ledger.CursorKey]bool{}
	for _, l := range lanes {
		ps, ok := l.Progress(t.fact.Name, func(tp string) { s.open[tp] = true })
		if !ok {
			state, _ := l.State()
			if state != lane.Finished {
				s.known, s.ended = false, false
				continue
			}
			ps = r.finishedProgress(l, t)
		}
		for _, p := range ps {
			s.ended = s.ended && p.Ended
			if p.Ended {
				p.Watermark = batch.MaxWatermark
			}
			idle[p.Output] = l.source.idle > 0 && !p.AtEnd.IsZero() && now.Sub(p.AtEnd) >= l.source.idle
			s.progress = append(s.progress, p)
		}
	}
	if len(s.progress) == 0 {
		// Only keyed stages feed it: they begin the closes themselves, but for
		// those that time on the wall or the end of the input brings.
		s.ended = s.known && r.job.Bounded && r.keyedEnded()
	}
	s.idle = func(p *lane.Progress) bool { return idle[p.Output] }
	return s
}

// finishedProgress is where a finished lane stands: at its end.
func (r *Run) finishedProgress(l *laneOf, t *table) []lane.Progress {
	var out []lane.Progress
	for _, id := range l.fact.Partitions {
		k := ledger.CursorKey{Output: t.fact.ID, Topic: l.fact.ID.Topic, Partition: id}
		p := lane.Progress{Output: k, Watermark: batch.MaxWatermark, Ended: true}
		if c, ok := r.book.Cursor(k); ok {
			p.Next = c.Offset
		}
		out = append(out, p)
	}
	return out
}

// mirror shows the resume positions to the sources: as cursors for lag, and as
// holds for retention.
func (r *Run) mirror(lanes []*laneOf) {
	for _, l := range lanes {
		at := r.resume(l, false)
		if len(at) == 0 {
			continue
		}
		if m, ok := l.source.src.(connector.CursorMirror); ok {
			if err := m.MirrorCursor(r.ctx, at); err != nil && r.ctx.Err() == nil {
				r.deps.Log.Warn("mirroring positions", "lane", l.Config().Name, "error", err)
			}
		}
		if h, ok := l.source.src.(connector.Holder); ok {
			name := r.deps.Scope.Job.String() + "/" + l.Config().Name
			if err := h.Hold(r.ctx, name, r.resume(l, true)); err != nil && r.ctx.Err() == nil {
				r.deps.Log.Warn("holding input", "lane", l.Config().Name, "error", err)
			}
		}
	}
}

// resume is the least durable position of a lane's outputs; hold: what is to be kept
// from there on, which is more for tables with a standby.
func (r *Run) resume(l *laneOf, hold bool) []connector.Position {
	var out []connector.Position
	for _, p := range l.Config().Partitions {
		best := connector.Position{Partition: p, Offset: -1}
		for _, t := range l.tables {
			c, ok := r.book.Cursor(ledger.CursorKey{Output: t.fact.ID, Topic: p.TopicID, Partition: p.ID})
			if ok && (best.Offset < 0 || c.Offset < best.Offset) {
				best.Offset, best.LeaderEpoch = c.Offset, c.LeaderEpoch
			}
			if ok && hold && t.standby != nil {
				// Its partitions may have to be read again as long as they may move.
				if from, some := r.book.HoldFrom(t.fact.ID, ledger.SourceKey{Topic: p.TopicID, Partition: p.ID}); some && from < best.Offset {
					best.Offset = from
				}
			}
		}
		if best.Offset >= 0 {
			out = append(out, best)
		}
	}
	return out
}

// repack moves lanes between slots by their measured traffic.
func (r *Run) repack(lanes []*laneOf) {
	r.placing.Lock()
	defer r.placing.Unlock()
	loads, now := make([]slot.Load, len(lanes)), make([]int, len(lanes))
	for i, l := range lanes {
		_, computed, files := l.Traffic()
		// EWMA over about half a minute.
		l.share = 0.7*l.share + 0.3*computed.Seconds()/packEvery.Seconds()
		loads[i] = slot.Load{Name: l.Config().Name, Share: l.share, Files: files, Pin: -1}
		now[i] = l.slot
	}
	for i, at := range slot.Pack(loads, now, slot.PackOptions{Slots: len(r.slots), OpenFiles: r.opts.SlotOpenFiles}) {
		if l := lanes[i]; at != l.slot {
			l.slot = at
			l.MoveTo(r.slots[at])
		}
	}
}

func (r *Run) prune() {
	closed := func(k ledger.CloseKey) bool {
		for _, t := range r.tables {
			if t.fact.ID == k.Table && t.closer != nil {
				if k.TablePartition == "" {
					return true // late rows, aside
				}
				c := r.book.Close(k)
				return c != nil && c.Step == ledger.Announced
			}
		}
		return true
	}
	_, err := r.book.Prune(r.ctx, ledger.PruneOptions{NowMillis: r.clock.Now().UnixMilli(),
		KeepMillis: r.opts.LedgerKeep.Milliseconds(), Closed: closed})
	if err == nil {
		_, err = r.book.RollUp(r.ctx, r.clock.Now().Add(-minutesKept).UnixMilli())
	}
	if err != nil && r.ctx.Err() == nil {
		r.deps.Log.Warn("pruning the ledger", "error", err)
	}
}

func (r *Run) committed(name string, artifacts int, rows, bytes int64, took time.Duration) {
	if t := r.tables[name]; t != nil {
		t.files.Add(int64(artifacts))
	}
	if f := r.deps.Hooks.Committed; f != nil {
		f(name, artifacts, rows, bytes, took)
	}
}
