package lane

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// resolve ends the intents that the attempts before left pending, by looking.
// rebuild gives up those of which nothing is left.
func (o *output) resolve(ctx context.Context, rebuild bool) error {
	l := o.lane
	// By what they hold, not by who made them: the partitions may have belonged
	// to a lane of another name before.
	pending := l.cfg.Book.IntentsOf(o.cfg.Table.ID, func(e *ledger.Entry) bool {
		if e.Result != ledger.Pending || e.ID().Keyed {
			return false
		}
		for _, p := range l.cfg.Partitions {
			if e.Input(p.TopicID, p.ID) != nil {
				return true
			}
		}
		return false
	})
	for _, e := range pending {
		if err := o.resolveOne(ctx, e.Intent, rebuild); err != nil {
			return fmt.Errorf("table %s: %w", o.cfg.Table.Name, err)
		}
	}
	return nil
}

func (o *output) resolveOne(ctx context.Context, in *ledger.Intent, rebuild bool) error {
	outcomes, err := o.look(ctx, in.Artifacts)
	if err != nil {
		return err
	}
	var sealed []connector.Artifact
	absent := 0
	for i, x := range outcomes {
		switch x {
		case connector.Unknown:
			return o.ambiguous([]*ledger.Intent{in}, in.ID(), false)
		case connector.Sealed:
			sealed = append(sealed, in.Artifacts[i])
		case connector.Absent:
			absent++
		}
	}
	switch {
	case absent == 0:
	case absent == len(outcomes) && (rebuild || o.replayable()):
		err := o.lane.cfg.Book.Append(ctx, &ledger.Outcome{ID: in.ID(), Writer: o.writerID(), Result: ledger.Void,
			TimeMillis: o.lane.wallMillis(), Reason: "nothing of it is left; written again"})
		if err == nil {
			o.lane.notice("table %s: %s is given up, its rows are written again", o.cfg.Table.Name, in.ID())
		}
		return err
	default:
		return o.ambiguous([]*ledger.Intent{in}, in.ID(), absent == len(outcomes))
	}
	if len(sealed) > 0 {
		void, err := o.publish(ctx, []*ledger.Intent{in})
		if err != nil {
			return fmt.Errorf("completing %s: %w", sealed[0].Location, err)
		}
		if len(void) > 0 {
			if err := o.voidRefused(ctx, void); !errors.Is(err, errRefused) {
				return err
			}
			return nil // its rows are above the resume position and come again
		}
	}
	if err := o.record(ctx, []*ledger.Intent{in}, nil); err != nil {
		return err
	}
	what := "was published"
	if len(sealed) > 0 {
		what = "was sealed and is published now"
	}
	o.lane.notice("table %s: %s %s", o.cfg.Table.Name, in.Artifacts[0].Location, what)
	return nil
}

// replayable reports that what the sink has lost was never visible.
func (o *output) replayable() bool {
	r, ok := o.cfg.Sink.(connector.ReplayableSeals)
	return ok && r.ReplayableSeals()
}
