package clickhouse

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
)

// A block that the server refuses for its values, by a CONSTRAINT for instance, is
// given up, and its rows are read again. Until they have passed, rows are first
// inserted into a table that is made like the real one and that nobody reads: what
// is refused there, by halves down to single rows, is bad.

// suspicion is how many rows are still to be tried before they are taken.
type suspicion struct {
	rows, last int64
}

// raise is called for a refused block; refusals in a row raise more and more.
func (s *suspicion) raise(rows int64) {
	const least = 20_000
	s.last = max(2*rows, 2*s.last, least)
	s.rows = s.last
}

// suspect takes the trial of n rows; false when there is no suspicion.
func (s *sink) suspect(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspicion.rows <= 0 {
		return false
	}
	if s.suspicion.rows -= n; s.suspicion.rows <= 0 {
		s.suspicion.last = 0
	}
	return true
}

// trialName is the table that rows are tried on.
func (s *sink) trialName() string {
	return quoteName(s.opts.database) + "." + quoteName("_mr_trial_"+s.opts.table+"_"+s.owner.Job.String()[:8])
}

// try finds the rows among rows that the server refuses. An error of another kind
// ends the attempt: nothing is taken that was not tried.
func (w *writer) try(ctx context.Context, b *batch.Batch, rows []int32, refused func(row int32, why string)) error {
	trial := w.sink.trialName()
	server := w.sink.server
	// Lanes of one table share it.
	release, err := w.sink.hold(ctx, trial)
	if err != nil {
		return err
	}
	defer release()
	if err := server.exec(ctx, "DROP TABLE IF EXISTS "+trial); err != nil {
		return err
	}
	if err := server.exec(ctx, "CREATE TABLE "+trial+" AS "+server.name()+" ENGINE = MergeTree ORDER BY tuple()"); err != nil {
		return fmt.Errorf("making a table to try refused rows on: %w", err)
	}
	if err := w.tryOn(ctx, trial, b, rows, refused); err != nil {
		return err
	}
	return server.exec(ctx, "DROP TABLE IF EXISTS "+trial)
}

func (w *writer) tryOn(ctx context.Context, trial string, b *batch.Batch, rows []int32, refused func(row int32, why string)) error {
	if len(rows) == 0 {
		return nil
	}
	_, _, err := w.sink.insert(ctx, trial, "", "", w.blockOf(b, rows))
	switch {
	case err == nil:
		return nil
	case classOf(err) != classData:
		return err
	case len(rows) == 1:
		refused(rows[0], err.Error())
		return nil
	}
	half := len(rows) / 2
	if err := w.tryOn(ctx, trial, b, rows[:half], refused); err != nil {
		return err
	}
	return w.tryOn(ctx, trial, b, rows[half:], refused)
}

// blockOf encodes rows as a block in memory.
func (w *writer) blockOf(b *batch.Batch, rows []int32) *sealedBlock {
	out := &sealedBlock{head: sealedHead{rows: int64(len(rows))}}
	for i, c := range w.bound.columns {
		var buf buffer
		if c == w.bound.artifact {
			w.stamp(&buf, "", len(rows))
		} else {
			c.append(&buf, &b.Cols[w.bound.source[i]], rows, &w.s)
		}
		var text bytes.Buffer
		bw := blockWriter{w: &text}
		bw.write(c.prefix(nil))
		c.emit(&buf, &bw)
		out.head.columns = append(out.head.columns, sealedColumn{name: w.bound.names[i], typ: w.bound.def.column(w.bound.names[i]).typ, bytes: bw.n})
		out.columns = append(out.columns, text.Bytes())
	}
	return out
}
