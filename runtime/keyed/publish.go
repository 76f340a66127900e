package keyed

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
)

// publisher makes what a table has sealed visible: artefacts, or replacements of
// table partitions.
type publisher[T any] struct {
	t *tableState
	// what names one in an error, as a gerund.
	what    func(T) string
	parts   func(T) []connector.Artifact
	send    func(context.Context, []T) []error
	resolve func(context.Context, []T) ([]connector.Outcome, error)
	// record enters those that are visible into the ledger.
	record func(context.Context, []T) error
}

func (t *tableState) artifactPublisher() publisher[connector.Artifact] {
	return publisher[connector.Artifact]{
		t:       t,
		what:    func(connector.Artifact) string { return "publishing" },
		parts:   func(a connector.Artifact) []connector.Artifact { return []connector.Artifact{a} },
		send:    t.handle.Sink.Publish,
		resolve: t.resolve,
		record:  t.committed,
	}
}

func (t *tableState) partitionPublisher() publisher[connector.Replacement] {
	return publisher[connector.Replacement]{
		t:       t,
		what:    func(x connector.Replacement) string { return "replacing " + x.TablePartition },
		parts:   func(x connector.Replacement) []connector.Artifact { return x.Parts },
		send:    t.replacer.Replace,
		resolve: t.resolveReplace,
		record:  t.replaced,
	}
}

// publish tries until nothing is left. With wait, what may go away by itself is tried
// again, for ever: meanwhile no more than a few checkpoints are made (Invariant 8).
func (p publisher[T]) publish(ctx context.Context, xs []T, wait bool) error {
	table := p.t.handle.Table.Name
	delay := p.t.r.opts.RetryMin
	for tries := 0; len(xs) > 0; tries++ {
		left, cause, err := p.try(ctx, xs)
		if err != nil {
			return err
		}
		if xs = left; len(xs) == 0 {
			return nil
		}
		if !wait && tries >= 2 {
			return fmt.Errorf("table %s: publishing: %w", table, cause)
		}
		p.t.r.env.Log.Warn("publishing failed and is tried again", "table", table, "left", len(xs), "error", cause)
		if err := p.t.sleep(ctx, delay); err != nil {
			return err
		}
		delay = min(2*delay, p.t.r.opts.RetryMax)
	}
	return nil
}

// try publishes once. It gives what is still only sealed, with the reason.
func (p publisher[T]) try(ctx context.Context, xs []T) (left []T, cause, err error) {
	table := p.t.handle.Table.Name
	errs := p.send(ctx, xs)
	if len(errs) != len(xs) {
		return nil, nil, errNoOutcome
	}
	var done, doubt []T
	for i, e := range errs {
		switch {
		case e == nil:
			done = append(done, xs[i])
		case errors.Is(e, connector.ErrFenced):
			return nil, nil, fmt.Errorf("table %s: %s: %w", table, p.what(xs[i]), e)
		default:
			doubt, cause = append(doubt, xs[i]), e
		}
	}
	if err := p.record(ctx, done); err != nil || len(doubt) == 0 {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	// Invariant 3: an error says nothing about the outcome.
	outcomes, err := p.resolve(ctx, doubt)
	if err != nil {
		return nil, nil, errors.Join(err, cause)
	}
	done = done[:0]
	for i, o := range outcomes {
		switch o {
		case connector.Published:
			done = append(done, doubt[i])
		case connector.Sealed:
			left = append(left, doubt[i])
		default:
			// A refused one is absent, too: its rows are nowhere else any more, so
			// that this needs a decision.
			return nil, nil, &AmbiguousError{Table: table, Artifacts: p.parts(doubt[i]), Gone: o == connector.Absent, Err: cause}
		}
	}
	return left, cause, p.record(ctx, done)
}
