package keyed

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/ledger"
)

// tableState publishes the artefacts of one table, in order of (manifest,
// sequence), on one goroutine.
type tableState struct {
	r      *Stages
	handle engine.SinkHandle
	policy connector.CommitPolicy
	stages []int
	queue  mailbox[publication]

	// replacer: the table's partitions are replaced whole. overwrite: that is done
	// once, at the end of all input; statics are the partitions that are replaced
	// also by nothing. restored: a run before has come to that end.
	replacer  connector.Replacer
	overwrite bool
	statics   []string
	restored  bool
}

func newTableState(r *Stages, h engine.SinkHandle) *tableState {
	t := &tableState{r: r, handle: h, queue: newMailbox[publication]()}
	if pc, ok := h.Sink.(connector.PartitionCommitter); ok {
		t.policy = pc.CommitPolicy()
	}
	return t
}

// run is the publisher's goroutine.
func (t *tableState) run(ctx context.Context) error {
	for {
		p, ok := t.queue.take(ctx)
		if !ok {
			return nil
		}
		var err error
		if t.replacer != nil {
			err = t.replace(ctx, t.replacements(p), true)
		} else {
			err = t.publish(ctx, p.artifacts, true)
		}
		if err != nil {
			return err
		}
		ids := make([]connector.ArtifactID, len(p.artifacts))
		for i := range p.artifacts {
			ids[i] = p.artifacts[i].Header.ID
		}
		t.r.post(checkpoint.Committed{IDs: ids})
		if t.overwrite {
			t.r.post(checkpoint.EndPublished{})
		}
	}
}

func order(as []connector.Artifact) {
	slices.SortFunc(as, func(x, y connector.Artifact) int {
		a, b := x.Header.ID, y.Header.ID
		return cmp.Or(cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Subtask, b.Subtask))
	})
}

// settle looks what became of artefacts of a run before and publishes those that
// are only sealed. Invariant 3: look first.
func (t *tableState) settle(ctx context.Context, as []connector.Artifact) error {
	if t.replacer != nil {
		return t.settleReplacements(ctx, t.replacements(publication{artifacts: as}))
	}
	if len(as) == 0 {
		return nil
	}
	order(as)
	outcomes, err := t.resolve(ctx, as)
	if err != nil {
		return err
	}
	var sealed, published, unknown, absent []connector.Artifact
	for i, o := range outcomes {
		switch o {
		case connector.Published:
			published = append(published, as[i])
		case connector.Sealed:
			sealed = append(sealed, as[i])
		case connector.Absent:
			absent = append(absent, as[i])
		default:
			unknown = append(unknown, as[i])
		}
	}
	if len(unknown) > 0 {
		return &AmbiguousError{Table: t.handle.Table.Name, Artifacts: unknown}
	}
	if len(absent) > 0 {
		if rs, ok := t.handle.Sink.(connector.ReplayableSeals); !ok || !rs.ReplayableSeals() {
			return &AmbiguousError{Table: t.handle.Table.Name, Artifacts: absent, Gone: true}
		}
		if err := t.forget(ctx, absent); err != nil {
			return err
		}
	}
	if err := t.committed(ctx, published); err != nil {
		return err
	}
	return t.publish(ctx, sealed, false)
}

// forget gives up artefacts that died with the process that held them: nobody has
// seen them, and the state they were made of is gone.
func (t *tableState) forget(ctx context.Context, as []connector.Artifact) error {
	var facts []ledger.Fact
	var rows int64
	for _, a := range as {
		rows += a.Header.Rows
		facts = append(facts, t.outcome(a, ledger.Void, "gone with the process that held it"))
	}
	t.r.notice("table %s: %d result rows were sealed in the memory of a process that ended before it published them; nobody has seen them, and they are not made again", t.handle.Table.Name, rows)
	return t.r.env.Book.Append(ctx, facts...)
}

// giveUp discards artefacts that no checkpoint lists any more, unless they are
// visible.
func (t *tableState) giveUp(ctx context.Context, as []connector.Artifact) error {
	if t.replacer != nil {
		return t.giveUpReplacements(ctx, as)
	}
	if len(as) == 0 {
		return nil
	}
	outcomes, err := t.resolve(ctx, as)
	if err != nil {
		return err
	}
	var published, sealed []connector.Artifact
	var facts []ledger.Fact
	for i, o := range outcomes {
		switch o {
		case connector.Published:
			published = append(published, as[i])
		case connector.Unknown:
			return &AmbiguousError{Table: t.handle.Table.Name, Artifacts: as[i : i+1]}
		default:
			sealed = append(sealed, as[i])
			facts = append(facts, t.outcome(as[i], ledger.Void, "its checkpoint was given up"))
		}
	}
	if err := t.committed(ctx, published); err != nil {
		return err
	}
	if len(sealed) == 0 {
		return nil
	}
	// Void first: a discarded artefact must never be looked for again.
	if err := t.r.env.Book.Append(ctx, facts...); err != nil {
		return err
	}
	if err := t.handle.Sink.Discard(ctx, sealed); err != nil {
		return fmt.Errorf("table %s: discarding what is given up: %w", t.handle.Table.Name, err)
	}
	return nil
}

func (t *tableState) outcome(a connector.Artifact, result ledger.Result, reason string) *ledger.Outcome {
	return &ledger.Outcome{ID: a.Header.ID, Writer: ledger.Writer{Keyed: true, Epoch: t.r.env.JobEpoch}, Result: result,
		TimeMillis: t.r.now().UnixMilli(), Reason: reason}
}

func (t *tableState) resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out, err := t.handle.Sink.Resolve(ctx, as)
	if err != nil {
		return nil, fmt.Errorf("table %s: looking for artefacts: %w", t.handle.Table.Name, err)
	}
	if len(out) != len(as) {
		return nil, errNoOutcome
	}
	return out, nil
}

// publish makes artefacts visible and says so in the ledger.
func (t *tableState) publish(ctx context.Context, as []connector.Artifact, wait bool) error {
	order(as)
	return t.artifactPublisher().publish(ctx, as, wait)
}

func (t *tableState) sleep(ctx context.Context, d time.Duration) error {
	woken := make(chan struct{})
	timer := t.r.env.Clock.AfterFunc(d, func() { close(woken) })
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		timer.Stop()
		return ctx.Err()
	}
}

// committed records published artefacts; a table partition that was closed
// before is closed again.
func (t *tableState) committed(ctx context.Context, as []connector.Artifact) error {
	if len(as) == 0 {
		return nil
	}
	facts := make([]ledger.Fact, 0, len(as)+1)
	for _, a := range as {
		facts = append(facts, t.outcome(a, ledger.Committed, ""))
	}
	facts = append(facts, t.reopen(as)...)
	if err := t.r.env.Book.Append(ctx, facts...); err != nil {
		return fmt.Errorf("table %s: recording the commit: %w", t.handle.Table.Name, err)
	}
	return nil
}

// reopen gives the facts by which partitions that get artefacts after they were
// closed go through their steps once more.
func (t *tableState) reopen(as []connector.Artifact) []ledger.Fact {
	if t.policy.Trigger == connector.NoCommit {
		return nil
	}
	var facts []ledger.Fact
	seen := map[string]bool{}
	for i := range as {
		tp := as[i].Header.TablePartition
		if seen[tp] {
			continue
		}
		seen[tp] = true
		old := t.r.env.Book.Close(ledger.CloseKey{Table: t.handle.Table.ID, TablePartition: tp})
		if old == nil || old.Step < ledger.Closed {
			continue
		}
		f := *old
		f.Step, f.Version, f.TimeMillis = ledger.Closing, old.Version+1, t.r.now().UnixMilli()
		facts = append(facts, &f)
	}
	return facts
}

// closing gives the facts of a checkpoint for table partitions: closed ones that
// get more artefacts are opened again, and those begin to close whose time the
// checkpoint's watermark has passed. It stands in for the lanes' heads: what the
// stages still emit is later. Whoever announces goes on from there, once nothing
// of the partition is pending.
func (t *tableState) closing(m *checkpoint.Manifest) []ledger.Fact {
	if t.policy.Trigger == connector.NoCommit || t.overwrite && !ended(m) {
		return nil
	}
	var mine []connector.Artifact
	for _, a := range m.Artifacts {
		if a.Header.ID.Table == t.handle.Table.ID {
			mine = append(mine, a)
		}
	}
	// A manifest may be recorded again, after a restart, or carry what is visible.
	pending := slices.DeleteFunc(slices.Clone(mine), func(a connector.Artifact) bool {
		e, ok := t.r.env.Book.Intent(a.Header.ID)
		return ok && e.Result == ledger.Committed
	})
	facts := t.reopen(pending)
	for _, tp := range t.statics {
		empty := tp != "" && !slices.ContainsFunc(mine, func(a connector.Artifact) bool { return a.Header.TablePartition == tp })
		if empty && t.r.env.Book.Close(ledger.CloseKey{Table: t.handle.Table.ID, TablePartition: tp}) == nil {
			// It has no artefact by which it would be found.
			facts = append(facts, &ledger.Close{Table: t.handle.Table.ID, TablePartition: tp, Step: ledger.Closing, Version: 1,
				TimeMillis: t.r.now().UnixMilli()})
		}
	}
	if t.policy.Trigger != connector.PartitionTime {
		return facts
	}
	time := batch.MaxWatermark
	for _, s := range t.stages {
		time = min(time, t.r.outTime(m, s))
	}
	for _, tp := range t.partitions(mine) {
		if t.r.env.Book.Close(ledger.CloseKey{Table: t.handle.Table.ID, TablePartition: tp}) == nil && t.passed(tp, time) {
			facts = append(facts, &ledger.Close{Table: t.handle.Table.ID, TablePartition: tp, Step: ledger.Closing, Version: 1,
				TimeMillis: t.r.now().UnixMilli()})
		}
	}
	return facts
}

// partitions are the table partitions that have artefacts, sorted.
func (t *tableState) partitions(more []connector.Artifact) []string {
	var out []string
	t.r.env.Book.Intents(func(e *ledger.Entry) bool {
		if e.ID().Table == t.handle.Table.ID && e.Result != ledger.Void {
			for i := range e.Artifacts {
				out = append(out, e.Artifacts[i].Header.TablePartition)
			}
		}
		return false
	})
	for i := range more {
		out = append(out, more[i].Header.TablePartition)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// passed reports whether a watermark closes a table partition. One without a
// time (the default partition) closes at the end of the input.
func (t *tableState) passed(tp string, time int64) bool {
	if time == batch.MaxWatermark {
		return true
	}
	if time == batch.NoWatermark || t.policy.Time == nil {
		return false
	}
	at, err := t.policy.Time(tp)
	return err == nil && time >= at+t.policy.Delay.Milliseconds()
}
