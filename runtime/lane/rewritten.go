package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/runtime/operator"
)

// write takes rows into a bucket, making room by committing what has none of this
// batch.
func (r *rewriteState) write(ctx context.Context, p *operator.Rows, sel batch.Sel, id connector.BucketID, tablePartition string) error {
	o := r.o
	for {
		err := o.sink.writer.Write(o.asTable(p), sel, id)
		if err == nil {
			break
		}
		if !errors.Is(err, connector.ErrFull) {
			return fmt.Errorf("writing rows: %w", err)
		}
		// What has rows of this batch must not be cut in the middle of a record.
		before := len(r.buckets)
		if err := r.commit(ctx, func(x *rewritten) bool { return !x.fresh }); err != nil {
			return err
		}
		if len(r.buckets) == before {
			return errTooBig
		}
	}
	x := r.buckets[id]
	if x == nil {
		x = &rewritten{header: connector.Header{TablePartition: tablePartition, SchemaHash: o.sink.schemaHash}, inputs: make([]offsets.Set, len(r.all))}
		x.lo, x.hi = noEvent()
		r.buckets[id], r.order = x, append(r.order, id)
	}
	x.fresh = true
	in := o.rows.in
	for _, row := range sel {
		src := p.Source(row)
		run := &in.batch.Runs[o.rows.runOf(src, 0)]
		at := in.batch.Offset(run, int(src))
		x.inputs[run.Partition].Add(at, at+1)
		if ms, ok := in.event(src); ok {
			x.lo, x.hi = min(x.lo, ms), max(x.hi, ms)
		}
	}
	var cols []*batch.Vec
	for _, c := range o.sink.hashed {
		cols = append(cols, &p.Batch.Cols[c])
	}
	x.header.Rows += int64(len(sel))
	x.header.RowHash += batch.RowHash(cols, p.Batch.Len, sel)
	return nil
}

// commit takes files through the cycle: seal, intent, publish, committed.
func (r *rewriteState) commit(ctx context.Context, due func(*rewritten) bool) error {
	o, l := r.o, r.o.lane
	var req []connector.SealRequest
	for _, id := range slices.Clone(r.order) {
		x := r.buckets[id]
		if !due(x) {
			continue
		}
		h := x.header
		h.ID = o.tracker.TakeID()
		if x.lo <= x.hi {
			h.MinEventTime, h.MaxEventTime = x.lo, x.hi
		}
		for p, part := range l.cfg.Partitions {
			if !x.inputs[p].Empty() {
				h.Inputs = append(h.Inputs, connector.Input{Topic: part.TopicID, Partition: part.ID, Offsets: x.inputs[p].Clip()})
			}
		}
		req = append(req, connector.SealRequest{Bucket: id, Header: h})
		delete(r.buckets, id)
		r.order = slices.DeleteFunc(r.order, func(y connector.BucketID) bool { return y == id })
	}
	if len(req) == 0 {
		return nil
	}
	began := l.now()
	var intents []*ledger.Intent
	err := r.d.wait(ctx, o, func(ctx context.Context) error {
		sealed, err := o.sink.writer.Seal(ctx, req)
		if err != nil {
			return fmt.Errorf("sealing: %w", err)
		}
		var facts []ledger.Fact
		for _, a := range sealed {
			in := &ledger.Intent{Writer: o.writerID(), Artifacts: []connector.Artifact{a}, SealedMillis: l.wallMillis(), Rewrite: true}
			for _, x := range a.Header.Inputs {
				in.Inputs = append(in.Inputs, ledger.Input{Topic: x.Topic, Partition: x.Partition, Offsets: x.Offsets})
			}
			intents, facts = append(intents, in), append(facts, in)
		}
		// Invariant 2, as for every other file.
		if err := l.cfg.Book.Append(ctx, facts...); err != nil {
			return fmt.Errorf("recording the intent: %w", err)
		}
		void, err := o.publish(ctx, intents)
		if err != nil {
			return err
		}
		if len(void) > 0 {
			return o.voidRefused(ctx, void)
		}
		return o.record(ctx, intents, nil)
	})
	if err != nil {
		return err
	}
	o.committed(intents, began)
	return nil
}
