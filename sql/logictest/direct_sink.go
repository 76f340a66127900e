package logictest

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
)

// policyBehind is the error policy of the sink behind a node.
func (r *run) policyBehind(id graph.NodeID) *graph.Sink {
	reached := map[graph.NodeID]bool{id: true}
	for _, m := range r.job.Nodes[id:] {
		for _, in := range m.Inputs {
			if reached[in] {
				reached[m.ID] = true
				if s, ok := m.Op.(*graph.Sink); ok {
					return s
				}
			}
		}
	}
	return nil
}

// failed notes failed rows; a sink that fails ends the run.
func (r *run) failed(s *graph.Sink, n *graph.Node, errs []batch.ValueError) error {
	name, policy := n.Path, graph.DeadLetter
	if s != nil {
		name, policy = s.Table.Name, s.OnError
	}
	for _, e := range errs {
		f := Failure{Table: name, Error: e}
		if policy == graph.Fail {
			return &RowError{f}
		}
		r.out.Dead = append(r.out.Dead, f)
	}
	return nil
}

type sinkRun struct {
	sink   connector.Sink
	writer connector.Writer
}

func (r *run) openSink(n *graph.Node) (*sinkRun, error) {
	if s := r.sinks[n.ID]; s != nil {
		return s, nil
	}
	op := n.Op.(*graph.Sink)
	sink, err := op.Connector.OpenSink(r.ctx, op.Table, connector.Owner{})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", op.Table.Name, err)
	}
	w, err := sink.OpenWriter(r.ctx, connector.Attempt{})
	if err != nil {
		return nil, err
	}
	s := &sinkRun{sink, w}
	r.sinks[n.ID] = s
	return s, nil
}

// sink writes what reached a sink of one source batch. A source row is
// written whole or not at all.
func (r *run) sink(n *graph.Node, parts []*operator.Rows) error {
	op := n.Op.(*graph.Sink)
	s, err := r.openSink(n)
	if err != nil {
		return err
	}
	bad := map[int32]bool{}
	for _, p := range parts {
		var errs []batch.ValueError
		for _, e := range p.Failed {
			if !bad[e.Row] {
				bad[e.Row] = true
				errs = append(errs, e)
			}
		}
		if err := r.failed(op, n, errs); err != nil {
			return err
		}
		for _, row := range r.rows(p) {
			e, null := rowError(p.Batch, n.Schema, int(row))
			src := p.Source(row)
			if e == nil || bad[src] {
				continue
			}
			bad[src] = true
			policy := op.OnError
			if null {
				policy = op.NotNull
			}
			if policy == graph.Fail {
				return &RowError{Failure{Table: op.Table.Name, Error: *e}}
			}
			r.out.Dead = append(r.out.Dead, Failure{Table: op.Table.Name, Error: *e})
		}
	}
	for _, p := range parts {
		sel := batch.Sel{}
		for _, row := range r.rows(p) {
			if !bad[p.Source(row)] {
				sel = append(sel, row)
			}
		}
		b := *p.Batch
		b.Schema = n.Schema
		if err := s.writer.Write(&b, sel, 0); err != nil {
			return err
		}
	}
	return nil
}

// rowError is the first error of a row: of a value, or NULL where the table
// has NOT NULL.
func rowError(b *batch.Batch, s *batch.Schema, row int) (e *batch.ValueError, null bool) {
	for i := range s.Fields {
		if e := b.Cols[i].DeepErr(row); e != nil {
			return e, false
		}
		if !s.Fields[i].Type.Nullable && b.Cols[i].IsNull(row) {
			return &batch.ValueError{Code: batch.CodeNullInNotNull, Where: s.Fields[i].Name, Message: "NULL in a NOT NULL column"}, true
		}
	}
	return nil, false
}

// finishSink publishes what was written.
func (r *run) finishSink(n *graph.Node) error {
	s, err := r.openSink(n)
	if err != nil {
		return err
	}
	// Each run is a job of its own: its artefacts must not be taken for those of another one.
	id := connector.ArtifactID{Job: connector.UUID(uuid.New())}
	as, err := s.writer.Seal(r.ctx, []connector.SealRequest{{Header: connector.Header{ID: id}}})
	if err != nil {
		return err
	}
	for _, err := range s.sink.Publish(r.ctx, as) {
		if err != nil {
			return err
		}
	}
	return errors.Join(s.writer.Close(), s.sink.Close())
}
