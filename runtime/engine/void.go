package engine

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// clearEvery is how often void files at a home that was away are looked for.
const clearEvery = 30 * time.Second

// clearVoid hides what is void at a home that serves again, and remembers it.
func (r *Run) clearVoid(t *table) {
	s := t.standby
	now := r.clock.Now()
	s.mu.Lock()
	due := !now.Before(s.next)
	if due {
		s.next = now.Add(clearEvery)
	}
	s.mu.Unlock()
	if !due {
		return
	}
	defer r.purgeVoid(t)
	for h := uint8(0); h < connector.Homes; h++ {
		var open []*ledger.Moved
		for _, f := range r.book.Moved(t.fact.ID) {
			if !f.Retracted && f.To != h {
				open = append(open, f)
			}
		}
		if len(open) == 0 {
			continue
		}
		if err := r.asked(probeWait, func(ctx context.Context) error { return s.sink.Clear(ctx, h, "") }); err != nil {
			r.deps.Log.Debug("void files cannot be hidden yet", "table", t.fact.Name, "home", connector.HomeName(h), "error", err)
			continue
		}
		var facts []ledger.Fact
		for _, f := range open {
			g := *f
			g.Retracted = true
			facts = append(facts, &g)
		}
		if err := r.book.Append(r.ctx, facts...); err != nil {
			continue
		}
		r.notice("table %s: void files of %d partitions at its %s home are hidden; what they held is at the other one", t.fact.Name, len(open), connector.HomeName(h))
	}
}

// purgeVoid removes what is hidden of table partitions that were written anew whole, with
// the same rows, and announced: nobody asks for it again. Where the sums of hashes
// differ, or cannot be compared, it stays, for a person to look at. What a run has
// removed is not written down: the next one looks once more.
func (r *Run) purgeVoid(t *table) {
	s := t.standby
	whole := map[string]bool{}
	for _, m := range r.book.Moves(t.fact.ID, nil) {
		c := r.book.Close(ledger.CloseKey{Table: t.fact.ID, TablePartition: m.TablePartition})
		whole[m.TablePartition] = m.Done() && m.Comparable && m.VoidHash == m.LiveHash && c != nil && c.Step == ledger.Announced
	}
	for h := uint8(0); h < connector.Homes; h++ {
		var now []string
		for _, f := range r.book.Moved(t.fact.ID) {
			if f.Retracted && whole[f.TablePartition] && f.To != h && !s.purged[h][f.TablePartition] {
				now = append(now, f.TablePartition)
			}
		}
		if len(now) == 0 {
			continue
		}
		err := r.asked(probeWait, func(ctx context.Context) error {
			return s.sink.Purge(ctx, h, func(tp string) bool { return slices.Contains(now, tp) })
		})
		if err != nil {
			r.deps.Log.Debug("void files cannot be removed yet", "table", t.fact.Name, "home", connector.HomeName(h), "error", err)
			continue
		}
		if s.purged[h] == nil {
			s.purged[h] = map[string]bool{}
		}
		for _, tp := range now {
			s.purged[h][tp] = true
		}
	}
}
