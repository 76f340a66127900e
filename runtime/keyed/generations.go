package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
)

// generations reads what the offline branches of one wide table need, and says with
// which generations a window goes out: once for all subtasks, so that all rows of a
// window have the same ones.
//
//	want    > a reader for each generation that is not there yet
//	reader  > a checkpoint: it is there, or there is none for now
//	barrier > choose
//
// What was read lies in memory once, for all subtasks, as long as a window waits that
// needs it; the last one stays, since the next window mostly needs it, too.
type generations struct {
	r     *Stages
	table string // the wide table's name
	// timeout is how long a window waits for generations, in ms.
	timeout int64
	// now: one that is not there is not waited for, only a table that cannot be read.
	now      bool
	branches []*offlineBranch
	ectx     *expr.Context

	mu sync.Mutex // of what readers change in a generation
}

// offlineBranch is one of the branches with the generations that windows want, by name.
type offlineBranch struct {
	op      *graph.OfflineBranch
	compile func() (*operator.Offline, error)
	values  *operator.Offline // what says which generation is a window's
	known   map[string]*generation
	last    *generation
}

// generation is one that is being looked for, or was read.
type generation struct {
	name  string // column = value
	value *batch.Vec
	stop  context.CancelFunc
	// tried: it was looked for. rows is nil while it is not there, why says so.
	tried  bool
	rows   *operator.Generation
	why    string
	failed bool // the table could not be read
	// never: there can be none.
	never bool
}

func newGenerations(r *Stages, id graph.NodeID, op *graph.WideMerge) (*generations, error) {
	g := &generations{r: r, timeout: op.OfflineTimeout, now: op.OfflineNow, ectx: expr.NewContext(r.zone, 0)}
	if n := r.plan.sinkBehind(id); n != nil {
		g.table = n.Op.(*graph.Sink).Table.Name
	}
	for i := range op.Offline {
		b := &offlineBranch{op: &op.Offline[i], known: map[string]*generation{}}
		b.compile = func() (*operator.Offline, error) { return operator.NewOffline(op, i, r.job.Nodes[id].Schema) }
		var err error
		if b.values, err = b.compile(); err != nil {
			return nil, err
		}
		g.branches = append(g.branches, b)
	}
	return g, nil
}

// want begins to look for what a window needs.
func (g *generations) want(w operator.Span) {
	for _, b := range g.branches {
		g.of(b, w)
	}
}

// of is the generation of a window. Somebody looks for it, or it was read.
func (g *generations) of(b *offlineBranch, w operator.Span) *generation {
	x := &generation{value: b.values.Value(g.ectx, w)}
	column := b.op.Table.Columns[b.op.Generation].Name
	if e := x.value.Err(0); e != nil {
		x.name, x.why, x.never = fmt.Sprintf("%s of %s", column, e.Code), e.Message, true
	} else if x.value.IsNull(0) {
		x.name, x.why, x.never = column+" = NULL", "NULL names none", true
	} else {
		x.name = fmt.Sprintf("%s = %s", column, x.value.Text(0))
	}
	if old := b.known[x.name]; old != nil {
		return old
	}
	b.known[x.name], x.tried = x, x.never
	if x.never {
		return x
	}
	var ctx context.Context
	ctx, x.stop = context.WithCancel(g.r.ctx)
	g.r.group.Add(1)
	go func() {
		defer g.r.group.Done()
		g.look(ctx, b, x)
	}()
	return x
}

// look looks for a generation until it is there or is wanted no longer.
func (g *generations) look(ctx context.Context, b *offlineBranch, x *generation) {
	for first := true; ; first = false {
		rows, err := g.read(ctx, b, x.value)
		if ctx.Err() != nil {
			return
		}
		g.mu.Lock()
		x.tried, x.rows, x.why, x.failed = true, rows, "there are no rows of it", err != nil
		if err != nil {
			x.why = err.Error()
		}
		g.mu.Unlock()
		if first || rows != nil {
			g.r.post(checkpoint.Trigger{})
		}
		if rows != nil {
			return
		}
		woken := make(chan struct{})
		t := g.r.env.Clock.AfterFunc(g.r.opts.GenerationPoll, func() { close(woken) })
		select {
		case <-woken:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// choose gives the generations of a window by branch, nil where there is none; missing
// says which and why. ok is false while one is missing that is worth waiting for.
func (g *generations) choose(w operator.Span, patient bool) (rows []*operator.Generation, missing []string, ok bool) {
	ok = true
	for _, b := range g.branches {
		x := g.of(b, w)
		b.last = x
		g.mu.Lock()
		ok = ok && x.tried && (x.rows != nil || x.never || !patient || g.now && !x.failed)
		rows = append(rows, x.rows)
		if x.rows == nil {
			missing = append(missing, fmt.Sprintf("branch %s has no generation %s: %s", b.op.Label, x.name, x.why))
		}
		g.mu.Unlock()
	}
	return rows, missing, ok
}

// keep lets go of the generations that none of some windows needs, but the last.
func (g *generations) keep(windows []operator.Span) {
	for _, b := range g.branches {
		wanted := map[*generation]bool{b.last: true}
		for _, w := range windows {
			wanted[g.of(b, w)] = true
		}
		for name, x := range b.known {
			if wanted[x] {
				continue
			}
			if x.stop != nil {
				x.stop()
			}
			delete(b.known, name)
		}
	}
}

// gap says what a window goes out without.
func (g *generations) gap(w operator.Span, missing []string) {
	g.r.notice("table %s, window %s: %s; its columns are NULL", g.table, w, strings.Join(missing, "; "))
}

const (
	generationRows  = 4096
	generationBytes = 4 << 20
)

// read reads a generation; nil: there is none. The source is told which partition is
// wanted, so that a partitioned table is not read whole.
func (g *generations) read(ctx context.Context, b *offlineBranch, value *batch.Vec) (rows *operator.Generation, err error) {
	o, err := b.compile()
	if err != nil {
		return nil, err
	}
	build := o.Build(expr.NewContext(g.r.zone, 0), value)
	s, err := b.op.Connector.OpenSource(ctx, b.op.Table)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, parts, err := openGeneration(ctx, s, b.op, value)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var in batch.Batch
	for {
		switch err := r.Next(ctx, &in, generationRows, generationBytes); {
		case errors.Is(err, io.EOF), errors.Is(err, connector.ErrNoData):
			return build.Generation(), nil
		case err != nil:
			return nil, err
		}
		sel, err := usable(s, &in, parts)
		if err == nil {
			err = build.Add(&in, sel)
		}
		if err != nil {
			return nil, err
		}
		r.Release()
	}
}

// openGeneration opens the partitions of a source that may hold a generation.
func openGeneration(ctx context.Context, s connector.Source, op *graph.OfflineBranch, value *batch.Vec) (connector.Reader, []connector.Partition, error) {
	if p, ok := s.(connector.PartitionPruner); ok {
		for k, c := range op.Table.PartitionKeys {
			if c == op.Generation {
				p.Prune(&oneGeneration{at: k, value: value, column: op.Table.Columns[c].Name})
			}
		}
	}
	parts, err := s.Partitions(ctx)
	if err != nil {
		return nil, nil, err
	}
	from, err := s.Start(ctx, parts)
	if err != nil {
		return nil, nil, err
	}
	ends, err := s.End(ctx, parts)
	if err != nil {
		return nil, nil, err
	}
	splits := make([]connector.Split, len(parts))
	for i := range parts {
		splits[i] = connector.Split{Number: int32(i), From: from[i], End: ends[i]}
	}
	r, err := s.Open(ctx, splits, op.Read, func() {})
	return r, parts, err
}

// oneGeneration wants the table partitions of one generation.
type oneGeneration struct {
	at     int // among the partition columns
	value  *batch.Vec
	column string
}

// Wanted implements connector.PartitionFilter.
func (o *oneGeneration) Wanted(b *batch.Batch) bool {
	v := &b.Cols[o.at]
	return !v.IsNull(0) && batch.ValueEqual(o.value, 0, v, 0)
}

func (o *oneGeneration) String() string { return o.column + " = " + o.value.Text(0) }

// usable lists the rows without errors. There is no dead letter for the others: they are
// dropped where the table says so, else the generation cannot be used.
func usable(s connector.Source, b *batch.Batch, parts []connector.Partition) (batch.Sel, error) {
	on := connector.OnErrorDeadLetter
	if p, ok := s.(connector.DecodePolicy); ok {
		on, _ = p.DecodeErrors()
	}
	sel := batch.Sel{}
	for i := range b.Runs {
		run := &b.Runs[i]
		fault := func(offset int64, e *batch.ValueError) error {
			return fmt.Errorf("%s, record at offset %d: %s: %s", parts[run.Partition].Topic, offset, e.Code, e.Message)
		}
		for _, n := range b.Notes[run.FirstNote : run.FirstNote+run.Notes] {
			if n.Code != "" && n.Code != batch.CodeEmpty && on != connector.OnErrorDrop {
				return nil, fault(n.Offset, &batch.ValueError{Code: n.Code, Message: n.Message})
			}
		}
		for row := run.FirstRow; row < run.FirstRow+run.Rows; row++ {
			switch e := rowError(b, int(row)); {
			case e == nil:
				sel = append(sel, row)
			case on != connector.OnErrorDrop:
				return nil, fault(b.Offset(run, int(row)), e)
			}
		}
	}
	return sel, nil
}

// rowError is the first error of a row, NULL in a NOT NULL column included.
func rowError(b *batch.Batch, row int) *batch.ValueError {
	for c := range b.Cols {
		v, f := &b.Cols[c], &b.Schema.Fields[c]
		if e := v.DeepErr(row); e != nil {
			return e
		}
		if !f.Type.Nullable && v.IsNull(row) {
			return &batch.ValueError{Code: batch.CodeNullInNotNull, Where: f.Name, Message: "NULL in a NOT NULL column"}
		}
	}
	return nil
}
