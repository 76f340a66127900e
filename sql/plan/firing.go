package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// The settings of early and late rows.
const (
	earlyFire      = "table.exec.emit.early-fire.enabled"
	earlyFireDelay = "table.exec.emit.early-fire.delay"
	lateFire       = "table.exec.emit.late-fire.enabled"
	lateFireDelay  = "table.exec.emit.late-fire.delay"
	allowLateness  = "table.exec.emit.allow-lateness"
)

// Firing is when a window gives its rows other than once, when it is over, and how
// long, in ms, it takes rows after its end.
type Firing struct {
	graph.Firing
	Lateness int64
}

// lateness is how long, in ms, the windows of an aggregate take rows after their end.
func (n *Aggregate) lateness() int64 {
	if n.Firing == nil {
		return 0
	}
	return n.Firing.Lateness
}

// Emit are the settings 'table.exec.emit.*' at a statement.
type Emit struct {
	early, late     bool
	earlyAt, lateAt diag.Span
	// In ms; -1: not set.
	earlyDelay, lateDelay, lateness int64
	lateDelayAt                     diag.Span
}

// EmitOf reads the settings.
func EmitOf(s *catalog.Settings) Emit {
	e := Emit{early: s.Bool(earlyFire), late: s.Bool(lateFire)}
	_, e.earlyAt, _ = s.Lookup(earlyFire)
	_, e.lateAt, _ = s.Lookup(lateFire)
	_, e.lateDelayAt, _ = s.Lookup(lateFireDelay)
	for key, ms := range map[string]*int64{earlyFireDelay: &e.earlyDelay, lateFireDelay: &e.lateDelay, allowLateness: &e.lateness} {
		*ms = -1
		if _, _, ok := s.Lookup(key); ok {
			*ms = s.Duration(key).Milliseconds()
		}
	}
	return e
}

// firing is what the settings say of a window. The rules are Flink's: allowed
// lateness goes with late firing alone and is the time to live of state where it is
// not set, no row of processing time is late, and sessions fire once.
func (b *Binder) firing(w *Window, at diag.Span) (*Firing, bool) {
	e := &b.Emit
	if !b.streaming() || !e.early && !e.late {
		return nil, true
	}
	if w.Kind == SessionWindow {
		key, set := earlyFire, e.earlyAt
		if !e.early {
			key, set = lateFire, e.lateAt
		}
		b.notYet(at, "'"+key+"' for SESSION windows").
			WithNote(set, "it is set here").
			WithHelp("RESET '%s' before this statement: a session gives its rows once, when it is over", key)
		return nil, false
	}
	f := &Firing{}
	if e.early {
		if e.earlyDelay < 0 {
			b.needs(e.earlyAt, at, earlyFire, earlyFireDelay, "'10 s': rows go out ten seconds after they changed at most; '0 s': with every batch of rows")
			return nil, false
		}
		f.Early, f.EarlyDelay = true, e.earlyDelay
	}
	if !e.late || w.Processing {
		if !f.Early {
			return nil, true
		}
		return f, true
	}
	f.Late, f.LateDelay, f.Lateness = true, e.lateDelay, e.lateness
	if f.Lateness < 0 {
		f.Lateness = b.StateTTL
	}
	switch {
	case f.LateDelay < 0:
		b.needs(e.lateAt, at, lateFire, lateFireDelay, "'10 s': rows go out ten seconds after a late row at most; '0 s': with every batch of rows")
		return nil, false
	case f.Lateness == 0:
		b.needs(e.lateAt, at, lateFire, allowLateness, "'1 h': how long windows take rows after their end; unset, it is 'table.exec.state.ttl'")
		return nil, false
	case f.LateDelay > f.Lateness:
		b.errorf(diag.CodeBadOption, e.lateDelayAt, "'%s' is %s, and windows take rows for %s after their end: late rows would never go out", lateFireDelay, millis(f.LateDelay), millis(f.Lateness)).
			WithHelp("'%s' is no less than it", allowLateness)
		return nil, false
	}
	return f, true
}

// needs reports a setting that goes with another one.
func (b *Binder) needs(set, window diag.Span, key, other, help string) {
	b.errorf(diag.CodeBadOption, set, "'%s' needs '%s'", key, other).
		WithNote(window, "for this window").
		WithHelp("SET '%s' = %s", other, help)
}

// describe is the firing as EXPLAIN prints it.
func (f *Firing) describe(d []string) []string {
	if f == nil {
		return d
	}
	add := func(on bool, name string, delay int64) {
		switch {
		case on && delay == 0:
			d = append(d, name+"=with each batch")
		case on:
			d = append(d, name+"="+millis(delay))
		}
	}
	add(f.Early, "early", f.EarlyDelay)
	add(f.Late, "late", f.LateDelay)
	if f.Lateness > 0 {
		d = append(d, "lateness="+millis(f.Lateness))
	}
	return d
}

// windowUpsertKeys are the keys by which the rows of a window change: one of its
// bounds stands for the window, where they lie at a fixed distance or end apart.
func windowUpsertKeys(n *Aggregate) [][]int {
	if n.Firing == nil {
		return nil
	}
	bounds := n.Cols[len(n.Keys)+len(n.Aggs):]
	with := func(roles ...WindowRole) []int {
		out := slices.Clone(n.Keys)
		for _, r := range roles {
			out = append(out, bounds[r].ID)
		}
		return out
	}
	keys := [][]int{with(WindowStart, WindowEnd), with(WindowEnd)}
	if n.Window.Kind != CumulateWindow {
		keys = append(keys, with(WindowStart))
	}
	return keys
}
