package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// commit takes groups through the cycle: seal, intent, publish, committed and
// cursor. When it returns nil their rows are visible and durable.
func (o *output) commit(ctx context.Context, d *drive, groups []*group) error {
	if len(groups) == 0 {
		return nil
	}
	began := o.lane.now()
	o.mu.Lock()
	s := o.tracker.Seal(groups, o.sink.schemaHash)
	o.mu.Unlock()
	var intents []*ledger.Intent
	err := d.wait(ctx, o, func(ctx context.Context) error {
		sealed, err := o.sink.writer.Seal(ctx, s.Requests)
		if err != nil {
			return fmt.Errorf("sealing: %w", err)
		}
		if intents, err = o.tracker.Intents(s, sealed, o.lane.wallMillis()); err != nil {
			return err
		}
		// Invariant 2: what is about to be published is named, with its exact
		// input, before it is.
		if err := o.intend(ctx, intents); err != nil {
			return fmt.Errorf("recording the intent: %w", err)
		}
		void, err := o.publish(ctx, intents)
		if err != nil {
			return err
		}
		if len(void) > 0 {
			return o.voidRefused(ctx, void)
		}
		return o.record(ctx, intents, func() []ledger.Fact {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.tracker.Done(s)
			return o.tracker.Advance()
		})
	})
	if err != nil {
		return fmt.Errorf("table %s: %w", o.cfg.Table.Name, err)
	}
	o.committed(intents, began)
	o.settled(ctx)
	d.setOpenFiles()
	return nil
}

// intend appends intents.
func (o *output) intend(ctx context.Context, intents []*ledger.Intent) error {
	facts := make([]ledger.Fact, len(intents))
	for i, in := range intents {
		facts[i] = in
	}
	if o.cfg.Aside {
		return o.cfg.PartitionCloser.Intend(ctx, facts, partitionsOf(intents))
	}
	return o.lane.cfg.Book.Append(ctx, facts...)
}

// partitionsOf are the table partitions that intents bring files into.
func partitionsOf(intents []*ledger.Intent) (parts []string) {
	for _, in := range intents {
		for i := range in.Artifacts {
			if tp := in.Artifacts[i].Header.TablePartition; !slices.Contains(parts, tp) {
				parts = append(parts, tp)
			}
		}
	}
	return parts
}

// record appends committed for intents, with the facts of more, in one ledger
// batch.
func (o *output) record(ctx context.Context, intents []*ledger.Intent, more func() []ledger.Fact) error {
	var facts []ledger.Fact
	parts := partitionsOf(intents)
	for _, in := range intents {
		facts = append(facts, &ledger.Outcome{ID: in.ID(), Writer: o.writerID(), Result: ledger.Committed,
			TimeMillis: o.lane.wallMillis()})
	}
	if more != nil {
		facts = append(facts, more()...)
	}
	var err error
	if o.cfg.PartitionCloser != nil && len(parts) > 0 {
		err = o.cfg.PartitionCloser.Commit(ctx, facts, parts)
	} else {
		err = o.lane.cfg.Book.Append(ctx, facts...)
	}
	if err != nil {
		return fmt.Errorf("recording the commit: %w", err)
	}
	return nil
}

func (o *output) writerID() ledger.Writer {
	return ledger.Writer{Lane: o.lane.cfg.Fact.ID, Epoch: o.att.epoch}
}

func (o *output) committed(intents []*ledger.Intent, began time.Time) {
	var n int
	var rows, bytes int64
	for _, in := range intents {
		for i := range in.Artifacts {
			n++
			rows += in.Artifacts[i].Header.Rows
			bytes += in.Artifacts[i].Bytes
		}
	}
	o.files.Add(int64(n))
	o.cursorAt = o.lane.now()
	o.lane.healthy()
	o.lane.progress()
	if f := o.lane.cfg.Committed; f != nil {
		f(o.cfg.Table.Name, n, rows, bytes, o.lane.now().Sub(began))
	}
}

// publish makes the artefacts of intents visible. It returns the intents that
// the sink refused for good and of which nothing is left. Invariant 3: an
// error that says nothing about the outcome is followed by looking.
func (o *output) publish(ctx context.Context, intents []*ledger.Intent) (void []*ledger.Intent, err error) {
	todo := artifactsOf(intents)
	for try := 0; ; try++ {
		errs := o.cfg.Sink.Publish(ctx, todo)
		if len(errs) != len(todo) {
			return nil, fmt.Errorf("BUG: Publish gave %d results for %d artefacts", len(errs), len(todo))
		}
		var failed []connector.Artifact
		var firstErr error
		refused := map[connector.ArtifactID]bool{}
		for i, e := range errs {
			if e == nil {
				continue
			}
			failed = append(failed, todo[i])
			firstErr = cmpErr(firstErr, e)
			refused[todo[i].Header.ID] = errors.Is(e, connector.ErrRefused)
		}
		if len(failed) == 0 {
			return nil, nil
		}
		if errors.Is(firstErr, connector.ErrFenced) {
			return nil, fmt.Errorf("publishing: %w", firstErr)
		}
		outcomes, err := o.look(ctx, failed)
		if err != nil {
			return nil, fmt.Errorf("publishing: %w", errors.Join(firstErr, err))
		}
		again, gone, err := o.sort(intents, failed, outcomes, refused)
		if err != nil {
			return nil, err
		}
		if len(gone) > 0 {
			return o.wholly(intents, gone)
		}
		if len(again) == 0 {
			return nil, nil
		}
		if try+1 >= o.lane.opts.PublishTries {
			// They stay intents: the next attempt resolves them.
			return nil, fmt.Errorf("publishing, still sealed after %d tries: %w", try+1, firstErr)
		}
		if err := o.lane.sleep(ctx, o.lane.backoff(try)); err != nil {
			return nil, err
		}
		todo = again
	}
}

func cmpErr(first, e error) error {
	// A fence matters more than anything else that went wrong.
	if first == nil || errors.Is(e, connector.ErrFenced) {
		return e
	}
	return first
}

// look asks what became of artefacts.
func (o *output) look(ctx context.Context, a []connector.Artifact) ([]connector.Outcome, error) {
	outcomes, err := o.cfg.Sink.Resolve(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("looking for the outcome: %w", err)
	}
	if len(outcomes) != len(a) {
		return nil, fmt.Errorf("BUG: Resolve gave %d outcomes for %d artefacts", len(outcomes), len(a))
	}
	return outcomes, nil
}

// sort decides by outcome: published is done, sealed is tried again unless it
// was refused, absent after a refusal is gone, absent without one and unknown
// stop the lane.
func (o *output) sort(intents []*ledger.Intent, failed []connector.Artifact, outcomes []connector.Outcome,
	refused map[connector.ArtifactID]bool) (again []connector.Artifact, gone map[connector.ArtifactID]bool, err error) {
	gone = map[connector.ArtifactID]bool{}
	for i, a := range failed {
		id := a.Header.ID
		switch outcomes[i] {
		case connector.Published:
		case connector.Sealed:
			if !refused[id] {
				again = append(again, a)
				continue
			}
			gone[id] = true
		case connector.Absent:
			if !refused[id] {
				return nil, nil, o.ambiguous(intents, id, true)
			}
			gone[id] = true
		default:
			return nil, nil, o.ambiguous(intents, id, false)
		}
	}
	return again, gone, nil
}

func (o *output) ambiguous(intents []*ledger.Intent, id connector.ArtifactID, gone bool) *AmbiguousError {
	e := &AmbiguousError{Table: o.cfg.Table.Name, Gone: gone}
	for _, in := range intents {
		for i := range in.Artifacts {
			if in.Artifacts[i].Header.ID == id {
				e.Intents = append(e.Intents, in)
				if x, ok := o.cfg.Sink.(connector.UnknownExplainer); ok && !gone {
					e.Why = x.ExplainUnknown(in.Artifacts[i])
				}
			}
		}
	}
	return e
}

// wholly gives the intents whose every artefact is gone. One of which a part
// is visible can be neither completed nor given up.
func (o *output) wholly(intents []*ledger.Intent, gone map[connector.ArtifactID]bool) ([]*ledger.Intent, error) {
	var out []*ledger.Intent
	for _, in := range intents {
		n := 0
		for i := range in.Artifacts {
			if gone[in.Artifacts[i].Header.ID] {
				n++
			}
		}
		switch {
		case n == len(in.Artifacts):
			out = append(out, in)
		case n > 0:
			e := o.ambiguous(intents, in.ID(), false)
			e.Partly = true
			return nil, e
		}
	}
	return out, nil
}

// voidRefused ends refused intents; the others of the cycle are committed or
// stay pending for the next attempt, which writes the refused rows again.
func (o *output) voidRefused(ctx context.Context, void []*ledger.Intent) error {
	var facts []ledger.Fact
	for _, in := range void {
		facts = append(facts, &ledger.Outcome{ID: in.ID(), Writer: o.writerID(), Result: ledger.Void,
			TimeMillis: o.lane.wallMillis(), Reason: "refused by the sink"})
	}
	if err := o.lane.cfg.Book.Append(ctx, facts...); err != nil {
		return fmt.Errorf("recording void: %w", err)
	}
	// Void first: a crash in between leaves garbage, never an intent of which
	// nothing is left.
	if err := o.cfg.Sink.Discard(ctx, artifactsOf(void)); err != nil {
		o.lane.notice("table %s: a refused artefact could not be removed: %v", o.cfg.Table.Name, err)
	}
	return errRefused
}

func artifactsOf(intents []*ledger.Intent) []connector.Artifact {
	var out []connector.Artifact
	for _, in := range intents {
		out = append(out, in.Artifacts...)
	}
	return out
}

// settled tells the sink that the outcome of everything it was given so far is
// durable. An error costs the sink space and nothing else.
func (o *output) settled(ctx context.Context) {
	s, ok := o.cfg.Sink.(connector.Settler)
	if !ok || o.unsettled {
		return
	}
	if err := s.Settled(ctx, o.tracker.NextID()); err != nil {
		o.lane.notice("table %s: %v", o.cfg.Table.Name, err)
	}
}

// settleBefore is settled for what earlier epochs left, unless an intent of the
// lane is still pending: its partitions belong to another lane now, which will
// ask about it.
func (o *output) settleBefore(ctx context.Context) {
	o.unsettled = len(o.lane.cfg.Book.Intents(func(e *ledger.Entry) bool {
		id := e.ID()
		return e.Result == ledger.Pending && id.Table == o.cfg.Table.ID && id.Lane == o.lane.cfg.Fact.ID
	})) > 0
	o.settled(ctx)
}
