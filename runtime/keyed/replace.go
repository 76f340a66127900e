package keyed

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
)

// publication is what a table's publisher is to make visible: the artefacts of
// manifest n, or, at the end of all input, everything of an overwritten table.
type publication struct {
	n         uint64
	artifacts []connector.Artifact
	// end: artifacts are all of an overwritten table, at the end of all input.
	end bool
}

// replaces says how a table is published. An overwritten one is held until all
// input has ended; its own results replace what is there from then on.
func (t *tableState) replaces(op *graph.Sink) error {
	mode := op.ReplaceMode()
	if !op.Overwrite && mode != connector.ReplaceResults {
		return nil
	}
	r, ok := t.handle.Sink.(connector.Replacer)
	if !ok {
		return fmt.Errorf("BUG: table %s is to be replaced, and its sink cannot", op.Table.Name)
	}
	// The result of a batch job is whole when the job is through.
	t.replacer, t.overwrite = r, op.Overwrite || t.r.job.Batch
	if !op.Overwrite {
		return nil
	}
	if len(op.Table.PartitionKeys) == 0 {
		t.statics = []string{""}
		return nil
	}
	for _, row := range op.Static {
		name, err := t.partitionOf(op, row)
		if err != nil {
			return fmt.Errorf("table %s: the partition to overwrite: %w", op.Table.Name, err)
		}
		t.statics = append(t.statics, name)
	}
	return nil
}

// partitionOf names a partition that PARTITION (...) fixes.
func (t *tableState) partitionOf(op *graph.Sink, static []expr.Expr) (string, error) {
	one := batch.Batch{Schema: &batch.Schema{}, Len: 1}
	p, err := expr.Compile(static, one.Schema, expr.Options{})
	if err != nil {
		return "", err
	}
	ctx := expr.NewContext(t.r.zone, 0)
	if ctx.Now = t.r.env.ClockMicros; ctx.Now == 0 {
		ctx.Now = t.r.now().UnixMicro()
	}
	row := batch.Batch{}
	row.Reset(op.Table.Schema(nil))
	row.Len = 1
	vals := make([]batch.Vec, len(static))
	p.Eval(ctx, &one, nil, vals)
	for i := range row.Cols {
		row.Cols[i].Reset(row.Schema.Fields[i].Type.WithNullable(true), 1)
		row.Cols[i].Put(0, &vals[i], 0)
		if e := vals[i].DeepErr(0); e != nil {
			return "", fmt.Errorf("column %s: %s", row.Schema.Fields[i].Name, e.Message)
		}
	}
	return t.replacer.PartitionOf(&row, 0)
}

// ended reports a manifest of the end of all input.
func ended(m *checkpoint.Manifest) bool {
	return !slices.ContainsFunc(m.Stages, func(s checkpoint.Stage) bool { return s.Watermark != batch.MaxWatermark })
}

// version is that of what manifest n publishes: it grows over restarts and
// generations.
func (t *tableState) version(n uint64) uint64 {
	return uint64(t.r.env.Book.Scope().Generation)<<32 | n
}

// replacements groups artefacts by table partition and, but at the end, manifest:
// one firing of a window by all subtasks is in one manifest.
func (t *tableState) replacements(p publication) []connector.Replacement {
	order(p.artifacts)
	var out []connector.Replacement
	for _, a := range p.artifacts {
		n := a.Header.ID.Manifest
		if p.end {
			n = p.n
		}
		x := connector.Replacement{TablePartition: a.Header.TablePartition, Version: t.version(n)}
		at := slices.IndexFunc(out, func(o connector.Replacement) bool {
			return o.TablePartition == x.TablePartition && o.Version == x.Version
		})
		if at < 0 {
			at, out = len(out), append(out, x)
		}
		out[at].Parts = append(out[at].Parts, a)
	}
	for _, tp := range t.statics {
		if p.end && !slices.ContainsFunc(out, func(x connector.Replacement) bool { return x.TablePartition == tp || tp == "" }) {
			out = append(out, connector.Replacement{TablePartition: tp, Version: t.version(p.n)})
		}
	}
	slices.SortStableFunc(out, func(x, y connector.Replacement) int {
		return cmp.Or(cmp.Compare(x.Version, y.Version), cmp.Compare(x.TablePartition, y.TablePartition))
	})
	return out
}

// replace makes replacements the content of their partitions, and says so in the
// ledger.
func (t *tableState) replace(ctx context.Context, rs []connector.Replacement, wait bool) error {
	return t.partitionPublisher().publish(ctx, rs, wait)
}

func (t *tableState) resolveReplace(ctx context.Context, rs []connector.Replacement) ([]connector.Outcome, error) {
	out, err := t.replacer.ResolveReplace(ctx, rs)
	if err != nil {
		return nil, fmt.Errorf("table %s: looking for replacements: %w", t.handle.Table.Name, err)
	}
	if len(out) != len(rs) {
		return nil, errNoOutcome
	}
	return out, nil
}

// replaced records the parts of replacements as committed, all in one batch.
func (t *tableState) replaced(ctx context.Context, rs []connector.Replacement) error {
	var as []connector.Artifact
	for _, x := range rs {
		as = append(as, x.Parts...)
	}
	return t.committed(ctx, as)
}

// settleReplacements finishes what a run before left of replacements.
func (t *tableState) settleReplacements(ctx context.Context, rs []connector.Replacement) error {
	rs = slices.DeleteFunc(rs, func(x connector.Replacement) bool {
		return slices.ContainsFunc(x.Parts, func(a connector.Artifact) bool {
			e, ok := t.r.env.Book.Intent(a.Header.ID)
			return ok && e.Result == ledger.Committed
		})
	})
	if len(rs) == 0 {
		return nil
	}
	outcomes, err := t.resolveReplace(ctx, rs)
	if err != nil {
		return err
	}
	var sealed, published []connector.Replacement
	for i, o := range outcomes {
		switch o {
		case connector.Published:
			published = append(published, rs[i])
		case connector.Sealed:
			sealed = append(sealed, rs[i])
		default:
			return &AmbiguousError{Table: t.handle.Table.Name, Artifacts: rs[i].Parts, Gone: o == connector.Absent}
		}
	}
	if err := t.replaced(ctx, published); err != nil {
		return err
	}
	return t.replace(ctx, sealed, false)
}

// giveUpReplacements ends the intents of parts that no checkpoint lists any more;
// content that is visible stays so.
func (t *tableState) giveUpReplacements(ctx context.Context, as []connector.Artifact) error {
	if len(as) == 0 {
		return nil
	}
	last := uint64(0)
	for _, p := range t.r.env.Book.Publishing(0) {
		last = max(last, p.Manifest)
	}
	rs := t.replacements(publication{n: last, artifacts: as, end: t.overwrite})
	rs = slices.DeleteFunc(rs, func(x connector.Replacement) bool { return len(x.Parts) == 0 })
	outcomes, err := t.resolveReplace(ctx, rs)
	if err != nil {
		return err
	}
	var facts []ledger.Fact
	var gone []connector.Artifact
	for i, o := range outcomes {
		switch o {
		case connector.Published:
			if err := t.replaced(ctx, rs[i:i+1]); err != nil {
				return err
			}
		case connector.Unknown:
			return &AmbiguousError{Table: t.handle.Table.Name, Artifacts: rs[i].Parts}
		default:
			for _, a := range rs[i].Parts {
				facts, gone = append(facts, t.outcome(a, ledger.Void, "its checkpoint was given up")), append(gone, a)
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	// Void first: a discarded artefact must never be looked for again.
	if err := t.r.env.Book.Append(ctx, facts...); err != nil {
		return err
	}
	if err := t.handle.Sink.Discard(ctx, gone); err != nil {
		return fmt.Errorf("table %s: discarding what is given up: %w", t.handle.Table.Name, err)
	}
	return nil
}

// resume keeps the artefacts of an overwritten table for the end of the input, and
// finishes what was begun if that had come.
func (r *Stages) resume(ctx context.Context, t *tableState, m *checkpoint.Manifest) error {
	p := publication{n: m.Number, end: true}
	for i, a := range m.Artifacts {
		if id := a.Header.ID; id.Table == t.handle.Table.ID {
			r.known[id] = sealedArtifact{a, m.SealedMillis[i]}
			r.held = append(r.held, id)
			p.artifacts = append(p.artifacts, a)
		}
	}
	if !ended(m) {
		return nil
	}
	t.restored = true
	return t.settleReplacements(ctx, t.replacements(p))
}
