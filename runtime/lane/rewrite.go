package lane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/runtime/operator"
)

// clearer is a sink of a table with two homes.
type clearer interface {
	// Clear takes what is void of a table partition at a home out of sight.
	Clear(ctx context.Context, home uint8, tablePartition string) error
}

// DriftError stops a lane: rows that were written at a home which was given up do
// not come out of the log again as they were, so that they cannot be written anew.
type DriftError struct {
	Table, TablePartition string
	// Offsets is how many give no row for the partition any more; 0: all do.
	Offsets int64
	// Was and Is are rows of the partition, at the old home and at the new one.
	Was, Is int64
}

func (e *DriftError) Error() string {
	what := fmt.Sprintf("%d rows came of them instead of %d", e.Is, e.Was)
	if e.Offsets > 0 {
		what = fmt.Sprintf("%d records give no row for it any more", e.Offsets)
	}
	return fmt.Sprintf("table %s: partition %s is moved to its other home, and the rows that it had are read again: %s; the job has changed since they were written: "+
		"run it as it was until the partition is moved, or take its rows over by hand", e.Table, e.TablePartition, what)
}

// rewriteState is the side reader of an output: it processes exactly the offsets of
// artefacts that are void since their table partition moved, and writes the rows of
// that partition alone. It moves no position and counts nothing: what it writes
// stands for rows that are counted.
type rewriteState struct {
	o       *output
	d       *drive // that it runs on
	side    *drive // reader and chains of its own
	need    map[string][]offsets.Set
	all     []offsets.Set // by source partition
	buckets map[connector.BucketID]*rewritten
	order   []connector.BucketID
	wake    chan struct{}
}

// rewritten is an open file of rows written anew.
type rewritten struct {
	header connector.Header
	inputs []offsets.Set // by source partition
	lo, hi int64
	fresh  bool // it has rows of the batch being written
}

// loadMoves finds the table partitions whose rows are to be written anew.
func (o *output) loadMoves() {
	o.moves = nil
	for _, m := range o.lane.moves(o.cfg.Table) {
		if !m.Done() {
			o.moves = append(o.moves, m)
		}
	}
}

// moves are the moves of a table as far as they are this lane's.
func (l *Lane) moves(t *ledger.Table) []ledger.Move {
	topic := l.cfg.Fact.ID.Topic
	return l.cfg.Book.Moves(t.ID, func(k ledger.SourceKey) bool {
		return k.Topic == topic && slices.ContainsFunc(l.cfg.Partitions, func(p connector.Partition) bool { return p.ID == k.Partition })
	})
}

// rewrite writes the rows of moved table partitions anew. Other outputs of the drive
// do not wait for it longer than for a sink that hangs.
func (o *output) rewrite(ctx context.Context, d *drive) error {
	o.rewriting.Store(true)
	defer o.rewriting.Store(false)
	watch := d.lane.clock.AfterFunc(d.lane.opts.DetachAfter, func() { d.lane.detach(d, o) })
	defer watch.Stop()
	if err := o.clear(ctx, d); err != nil {
		return err
	}
	r, err := newRewrite(ctx, o, d)
	if err != nil {
		return err
	}
	defer r.side.discardReader()
	for {
		if d.lane.stopping.Load() {
			return nil // the next start goes on
		}
		more, err := r.step(ctx)
		if err != nil {
			return fmt.Errorf("table %s: writing the rows of moved partitions: %w", o.cfg.Table.Name, err)
		}
		if !more {
			break
		}
	}
	return r.verify()
}

// clear takes what is void at the new homes out of sight first.
func (o *output) clear(ctx context.Context, d *drive) error {
	c, ok := o.cfg.Sink.(clearer)
	if !ok {
		return fmt.Errorf("BUG: table %s has moved and its sink knows one home", o.cfg.Table.Name)
	}
	for _, m := range o.moves {
		if err := d.wait(ctx, o, func(ctx context.Context) error { return c.Clear(ctx, m.To, m.TablePartition) }); err != nil {
			return fmt.Errorf("table %s: hiding void files of partition %s: %w", o.cfg.Table.Name, m.TablePartition, err)
		}
	}
	return nil
}

func newRewrite(ctx context.Context, o *output, d *drive) (*rewriteState, error) {
	l := o.lane
	r := &rewriteState{o: o, d: d, need: map[string][]offsets.Set{}, all: make([]offsets.Set, len(l.cfg.Partitions)),
		buckets: map[connector.BucketID]*rewritten{}, wake: make(chan struct{}, 1)}
	for _, m := range o.moves {
		sets := make([]offsets.Set, len(l.cfg.Partitions))
		for p, part := range l.cfg.Partitions {
			sets[p] = m.Need[ledger.SourceKey{Topic: part.TopicID, Partition: part.ID}]
			r.all[p] = r.all[p].Union(sets[p])
		}
		r.need[m.TablePartition] = sets
	}
	var splits []connector.Split
	var from []connector.Position
	for p, s := range r.all {
		if first, ok := s.First(); ok {
			at := connector.Position{Partition: l.cfg.Partitions[p], LeaderEpoch: -1, Offset: first}
			from = append(from, at)
			splits = append(splits, connector.Split{Number: int32(p), From: at, End: s.End()})
		}
	}
	errs, err := l.cfg.Source.Check(ctx, from)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("table %s: the records of moved partitions: %w", o.cfg.Table.Name, err)
	}
	if r.side, err = l.newDrive(d.att, nil); err != nil {
		return nil, err
	}
	r.side.ends = make([]Position, len(l.cfg.Partitions))
	for _, c := range r.side.chains {
		c.chain.Wait(d.ask)
	}
	if len(splits) == 0 {
		return r, nil
	}
	r.side.reader, err = l.cfg.Source.Open(ctx, splits, l.columns, func() {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, fmt.Errorf("opening topic %s: %w", l.cfg.Fact.Topic, err)
	}
	r.side.counter, _ = r.side.reader.(connector.ByteCounter)
	return r, nil
}

// discardReader gives back what a drive without a member holds.
func (d *drive) discardReader() {
	d.cancel()
	if d.reader != nil {
		d.reader.Close()
	}
}

// step takes a batch; more is false behind the last.
func (r *rewriteState) step(ctx context.Context) (more bool, err error) {
	if r.side.reader == nil {
		return false, nil
	}
	if err := r.d.acquire(ctx); err != nil {
		return false, err
	}
	err = r.side.next(ctx, r.d.att.shrink)
	switch {
	case errors.Is(err, connector.ErrNoData):
		r.d.release()
		select {
		case <-r.wake:
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	case errors.Is(err, io.EOF):
		return false, r.commit(ctx, func(*rewritten) bool { return true })
	case err != nil:
		return false, fmt.Errorf("reading topic %s: %w", r.o.lane.cfg.Fact.Topic, err)
	}
	err = r.batch(ctx)
	r.side.reader.Release()
	if err != nil {
		return false, err
	}
	limit := r.o.cfg.Sink.Roll().Bytes
	size := map[connector.BucketID]int64{}
	for _, b := range r.o.sink.writer.Open() {
		size[b.ID] = b.Bytes
	}
	err = r.commit(ctx, func(x *rewritten) bool { return limit > 0 && size[r.id(x)] >= limit })
	r.d.yield()
	return err == nil, err
}

func (r *rewriteState) id(x *rewritten) connector.BucketID {
	for id, y := range r.buckets {
		if x == y {
			return id
		}
	}
	return -1
}

// batch writes the rows of a batch that moved partitions need.
func (r *rewriteState) batch(ctx context.Context) error {
	o := r.o
	in, bytes := r.side.prepare()
	r.d.turn += bytes
	if !o.rows.pick(in, r.all) {
		return nil
	}
	if err := r.side.evaluate(in, o.rows.sel(nil)); err != nil {
		return err
	}
	o.gather(r.side)
	for _, p := range o.parts {
		o.check(p)
	}
	o.rows.fail = nil // what fails now failed then, and was not in the artefact
	o.settle(written)
	for _, x := range r.buckets {
		x.fresh = false
	}
	for k, p := range o.parts {
		if len(o.sels[k]) == 0 {
			continue
		}
		if err := r.part(ctx, p, o.sels[k]); err != nil {
			return err
		}
	}
	return nil
}

// pick makes the rows live whose offsets are in the sets, by source partition.
func (r *rows) pick(in *input, sets []offsets.Set) (some bool) {
	b := in.batch
	r.in, r.fail = in, nil
	r.fate, r.why = resizeTo(r.fate, b.Len), resizeTo(r.why, b.Len)
	clear(r.why)
	r.tells, r.limit = append(r.tells[:0], rowReason{}), r.limit[:0]
	for i := range r.fate {
		r.fate[i] = passed
	}
	r.live = 0
	for k := range b.Runs {
		run := &b.Runs[k]
		r.limit = append(r.limit, maxOffset)
		if sets[run.Partition].CountIn(run.BaseOffset, run.EndOffset) == 0 {
			continue
		}
		for i := run.FirstRow; i < run.FirstRow+run.Rows; i++ {
			if sets[run.Partition].Contains(b.Offset(run, int(i))) {
				r.fate[i] = live
				r.live++
			}
		}
	}
	return r.live > 0
}

// part writes the rows of a part into their buckets.
func (r *rewriteState) part(ctx context.Context, p *operator.Rows, sel batch.Sel) error {
	o := r.o
	w := o.sink.writer
	namer, ok := w.(connector.PartitionNamer)
	if !ok {
		return fmt.Errorf("BUG: a %T does not name its partitions", w)
	}
	ids, err := w.Buckets(o.asTable(p), sel, nil)
	if err != nil {
		return fmt.Errorf("finding the partitions of rows: %w", err)
	}
	chosen := map[connector.BucketID]batch.Sel{}
	var order []connector.BucketID
	b, run := o.rows.in.batch, 0
	for n, row := range sel {
		src := p.Source(row)
		run = o.rows.runOf(src, 0)
		x := &b.Runs[run]
		sets := r.need[namer.TablePartition(ids[n])]
		if sets == nil || !sets[x.Partition].Contains(b.Offset(x, int(src))) {
			continue // a row of the record that lies elsewhere, where it stays
		}
		if chosen[ids[n]] == nil {
			order = append(order, ids[n])
		}
		chosen[ids[n]] = append(chosen[ids[n]], row)
	}
	for _, id := range order {
		if err := r.write(ctx, p, chosen[id], id, namer.TablePartition(id)); err != nil {
			return err
		}
	}
	return nil
}

// verify compares what is at the new homes with what was at the old ones.
func (r *rewriteState) verify() error {
	o := r.o
	for _, m := range o.lane.moves(o.cfg.Table) {
		left := int64(0)
		for _, s := range m.Need {
			left += s.Count()
		}
		if left > 0 || m.VoidRows != m.LiveRows {
			return &DriftError{Table: o.cfg.Table.Name, TablePartition: m.TablePartition, Offsets: left, Was: m.VoidRows, Is: m.LiveRows}
		}
		if !slices.ContainsFunc(o.moves, func(x ledger.Move) bool { return x.TablePartition == m.TablePartition }) {
			continue
		}
		same := "with equal hash sums"
		switch {
		case !m.Comparable:
			same = "whose hashes cannot be compared: the table's columns have changed"
		case m.VoidHash != m.LiveHash:
			same = "whose hash sums differ: the job has changed, or says the time"
		}
		o.lane.notice("table %s: partition %s is at its %s home: %d rows, %s", o.cfg.Table.Name, m.TablePartition,
			connector.HomeName(m.To), m.LiveRows, same)
	}
	o.moves = nil
	o.lane.progress()
	return nil
}
