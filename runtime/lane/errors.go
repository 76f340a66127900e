package lane

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// FailError ends a lane whose policy for faulty rows is 'fail'. Everything
// before the record is committed.
type FailError struct {
	Table     string
	Topic     string
	Partition int32
	Offset    int64
	Reason    batch.Code
	Column    string
	Message   string
}

func (e *FailError) Error() string {
	where := ""
	if e.Column != "" {
		where = ", column " + e.Column
	}
	return fmt.Sprintf("table %s: record at offset %d of topic %s partition %d failed: %s%s: %s (policy 'fail')",
		e.Table, e.Offset, e.Topic, e.Partition, e.Reason, where, e.Message)
}

// LostError says that records below the log's start, or a whole topic, are
// gone before the lane has read them. The lane waits for a decision.
type LostError struct {
	Mismatches []*connector.MismatchError
}

func (e *LostError) Error() string {
	var b strings.Builder
	var lost int64
	for i, m := range e.Mismatches {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(m.Error())
		if m.Lost < 0 || lost < 0 {
			lost = -1
		} else {
			lost += m.Lost
		}
	}
	if lost >= 0 {
		fmt.Fprintf(&b, "; %d records are gone", lost)
	}
	b.WriteString("; go on behind them with --skip-lost")
	return b.String()
}

// AmbiguousError stops a lane because it cannot be known whether artefacts
// were published. Invariant 3.
type AmbiguousError struct {
	Table string
	// Intents are those in question, with their offsets.
	Intents []*ledger.Intent
	// Gone: nothing of them is left, staged or published, and no refusal
	// explains it. Partly: the sink refused a part after others, which share
	// records with it, were published. Neither: the sink cannot say now.
	Gone, Partly bool
	// Why is the sink's own sentence on why it cannot say, and what to do; or "".
	Why string
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	switch {
	case e.Gone:
		b.WriteString("sealed artefacts are neither staged nor published: ")
	case e.Partly:
		b.WriteString("the sink refused a part of artefacts that share records, and another part is published: ")
	default:
		b.WriteString("it cannot be known whether artefacts were published: ")
	}
	for i, in := range e.Intents {
		if i > 0 {
			b.WriteString(", ")
		}
		for k := range in.Artifacts {
			if k > 0 {
				b.WriteString(" + ")
			}
			b.WriteString(in.Artifacts[k].Location)
		}
		for k := range in.Inputs {
			fmt.Fprintf(&b, " (partition %d offsets %s)", in.Inputs[k].Partition, in.Inputs[k].Offsets)
		}
	}
	if e.Why != "" {
		b.WriteString(": " + e.Why)
	}
	if e.Gone {
		b.WriteString("; resume with --rebuild to write these offsets again")
	}
	return b.String()
}

// ErrPartitionClosed ends an attempt that has put rows into a file of a table partition
// which was closed meanwhile: the next attempt finds them late.
var ErrPartitionClosed = errors.New("a partition was closed while rows for it were under way; they are read again")

// errRefused is the attempt's end after a refused artefact was voided: its
// rows are sealed again by the next one.
var errRefused = errors.New("the sink refused an artefact; its rows are written again")

// errPaused is why a paused lane does not run.
var errPaused = errors.New("its table is moving to its other home")

// errTooBig asks for another attempt with smaller batches.
var errTooBig = errors.New("a batch does not fit the lane's memory")

// stops reports an error after which a lane waits for a decision.
func stops(err error) bool {
	var lost *LostError
	var amb *AmbiguousError
	var owned *connector.OwnedError
	var dead *DeadRateError
	var drift *DriftError
	return errors.As(err, &dead) || errors.As(err, &drift) || errors.As(err, &lost) || errors.As(err, &amb) || errors.As(err, &owned) || errors.Is(err, connector.ErrFenced)
}
