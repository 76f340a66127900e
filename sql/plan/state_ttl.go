package plan

import (
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// stateTTLHint reads STATE_TTL('table' = '1 d', ...) of a SELECT: how long the state
// is kept that its join or its GROUP BY has of a table of its FROM.
func (b *Binder) stateTTLHint(h *syntax.Hint) {
	if len(h.Options) == 0 {
		b.errorf(diag.CodeBadArgument, h.Span(), "STATE_TTL names tables and how long their state is kept").
			WithHelp("/*+ STATE_TTL('orders' = '1 d', 'customers' = '0 s') */")
		return
	}
	if b.stateTTL == nil {
		b.stateTTL = map[string]int64{}
	}
	for _, o := range h.Options {
		d, err := connector.ParseDuration(o.Value.Value)
		if err != nil {
			b.errorf(diag.CodeBadOption, o.Value.Span(), "STATE_TTL of %q: %s", o.Key.Value, err)
			continue
		}
		b.stateTTL[o.Key.Value] = d.Milliseconds()
	}
}

// checkStateTTL reports names in STATE_TTL that are not in FROM.
func (b *Binder) checkStateTTL(hints []*syntax.Hint, sc *scope) {
	if sc.broken {
		return
	}
	var names []string
	for i := range sc.rels {
		names = append(names, sc.rels[i].name)
	}
	for _, h := range hints {
		if !strings.EqualFold(h.Name.Name, "STATE_TTL") {
			continue
		}
		for _, o := range h.Options {
			found := false
			for _, n := range names {
				found = found || n == o.Key.Value
			}
			if !found {
				b.errorf(diag.CodeBadArgument, o.Key.Span(), "there is no table %q in FROM", o.Key.Value).WithNearest(o.Key.Value, names)
			}
		}
	}
}

// ttlOf is how long state of an input is kept: by its hint, where it is one table,
// else by the setting.
func (b *Binder) ttlOf(rels []relation) int64 {
	if len(rels) == 1 {
		if ttl, ok := b.stateTTL[rels[0].name]; ok {
			return ttl
		}
	}
	return b.StateTTL
}

// lintState warns of state that grows for as long as a job runs.
func (b *Binder) lintState(n Node) {
	if !b.streaming() || b.ReadToNow || b.Diags.HasErrors() {
		return
	}
	Walk(n, func(x Node) bool {
		what := ""
		switch x := x.(type) {
		case *Aggregate:
			if x.Updates && x.TTL == 0 && len(x.Keys) > 0 {
				what = "a group for every key"
			}
		case *Join:
			if x.Temporal != nil && ChangelogOf(x.Left).By != nil {
				b.Diags.Add(diag.Infof(diag.CodeUnboundedState, x.Span, "a temporal join of left rows that change keeps them and every version, for as long as the job runs").
					WithHelp("join the rows of the source, and let what changes them stand above"))
			}
			if x.Changes && (x.TTL[0] == 0 || x.TTL[1] == 0) {
				what = "every row of its inputs"
				if len(x.Keys) == 0 {
					what += " and, as it has no equality, compares each new one with all of the other side in one task"
				}
			}
		case *Over:
			if x.Changes && x.TTL == 0 {
				what = "every row of its input"
			}
		case *SetOperation:
			if x.Changes && x.TTL == 0 {
				what = "every row of its inputs"
			}
		case *Normalize:
			if x.TTL == 0 {
				what = "the row of every key"
			}
		case *Rank:
			switch {
			case x.TTL > 0 || len(x.Keys) == 0 && ChangelogOf(x.Input).By == nil:
			case x.Changes && ChangelogOf(x.Input).By != nil:
				what = "every row of its input"
			case x.Changes:
				what = "the first rows of every key"
			case x.First:
				what = "every key"
			}
		}
		if what != "" {
			b.Diags.Add(diag.Infof(diag.CodeUnboundedState, spanOf(x), "%s keeps %s, for as long as the job runs", nameOfUpdate(x), what).
				WithHelp("SET 'table.exec.state.ttl' = '1 d' forgets what has not been written for a day"))
		}
		return true
	})
}
