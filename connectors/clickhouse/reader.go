package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// reader reads ranges one after the other. A goroutine asks the server and decodes, a
// block ahead of who takes them.
type reader struct {
	source *Source
	schema *batch.Schema
	cols   []*readColumn
	ends   map[int32]int64
	notify func()

	blocks chan *readBlockOf
	stop   context.CancelFunc
	done   sync.WaitGroup

	cur   *readBlockOf // what is being given
	at    int          // its rows that were given
	sel   batch.Sel
	bytes int64
	err   error // sticky

	free chan *readBlockOf
}

// readBlockOf is a block of a range, or the end.
type readBlockOf struct {
	split  connector.Split
	vecs   []batch.Vec
	rows   int
	offset int64
	time   int64 // ms since 1970
	bytes  int64
	err    error
}

var (
	_ connector.Reader      = (*reader)(nil)
	_ connector.ByteCounter = (*reader)(nil)
)

// Open implements connector.Source.
func (s *Source) Open(ctx context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	cols, err := s.server.selected(s.table, s.def, columns)
	if err != nil {
		return nil, err
	}
	r := &reader{source: s, schema: s.table.Schema(columns), cols: cols, ends: map[int32]int64{}, notify: notify,
		blocks: make(chan *readBlockOf, 1), free: make(chan *readBlockOf, 3)}
	if len(cols) == 0 {
		// A query that counts rows needs no column, a SELECT does.
		one, err := selectColumn(s.def.columns[0].name, types.Simple(types.SmallInt), "UInt8", s.server.timeZone)
		if err != nil {
			return nil, err
		}
		one.selected = "toUInt8(1)"
		r.cols = []*readColumn{one}
	}
	var work []readWork
	for _, sp := range splits {
		of, err := s.find(ctx, sp.From.Partition)
		if err == nil && of == nil {
			err = moved(sp.From)
		}
		if err != nil {
			return nil, err
		}
		end := min(sp.End, of.rows)
		r.ends[sp.Number] = end
		if sp.From.Offset < end {
			work = append(work, readWork{split: sp, of: of, from: sp.From.Offset, end: end})
		}
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.done.Go(func() { r.fetch(run, work) })
	return r, nil
}

// readWork is a range still to be read.
type readWork struct {
	split     connector.Split
	of        *rangeOf
	from, end int64
}

// fetch reads all ranges, and ends with an error or io.EOF.
func (r *reader) fetch(ctx context.Context, work []readWork) {
	err := io.EOF
	for i := range work {
		if failed := r.fetchRange(ctx, &work[i]); failed != nil {
			err = failed
			break
		}
	}
	r.give(ctx, &readBlockOf{err: err})
}

func (r *reader) give(ctx context.Context, b *readBlockOf) bool {
	select {
	case r.blocks <- b:
		r.notify()
		return true
	case <-ctx.Done():
		return false
	}
}

// pinTries bounds how often a range's query starts again because parts were merged
// while it began.
const pinTries = 10

func (r *reader) fetchRange(ctx context.Context, w *readWork) error {
	var last error
	for range pinTries {
		retry, err := r.fetchPinned(ctx, w)
		if err == nil {
			return nil
		}
		last = err
		if errors.Is(err, errMoved) {
			return &connector.MismatchError{Position: connector.Position{Partition: w.split.From.Partition, Offset: w.from},
				Lost: -1, Recreated: true, Latest: w.of.rows, Reason: err.Error(), Err: err}
		}
		if !retry {
			break
		}
	}
	return fmt.Errorf("reading %s: %w", w.split.From.Partition.Topic, &serverError{err: last, class: classOf(last), table: r.source.server.name()})
}

// fetchPinned reads a range from the parts that hold it. Nothing is given before it is
// certain that the query reads all of them: they are there before it begins, and after
// its first block has come, so that they were there when it chose its parts.
func (r *reader) fetchPinned(ctx context.Context, w *readWork) (retry bool, err error) {
	s := r.source
	parts, err := s.server.parts(ctx)
	if err != nil {
		return false, err
	}
	names, err := w.of.snapshot.cover(parts)
	if err != nil {
		return false, err
	}
	answer, err := s.server.query(ctx, s.query(w.of, names, r.cols, w.from, w.end))
	if err != nil {
		return false, err
	}
	defer answer.close()
	for first := true; w.from < w.end; first = false {
		b := r.block()
		b.rows, err = answer.next(r.cols, b.vecs)
		if err == io.EOF {
			return false, fmt.Errorf("the answer ended %d rows early", w.end-w.from)
		}
		if err != nil {
			return false, err
		}
		if first {
			if err := r.pinned(ctx, names); err != nil {
				return true, err
			}
		}
		if int64(b.rows) > w.end-w.from {
			return false, fmt.Errorf("%d rows came where %d were asked for", b.rows, w.end-w.from)
		}
		b.split, b.offset, b.time, b.err = w.split, w.from, w.of.snapshot.changed*1000, nil
		b.bytes = 0
		for i := range b.vecs {
			b.bytes += state.VecBytes(&b.vecs[i])
		}
		w.from += int64(b.rows)
		if !r.give(ctx, b) {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// pinned reports a part that was merged away since the query began.
func (r *reader) pinned(ctx context.Context, names []string) error {
	now, err := r.source.server.parts(ctx)
	if err != nil {
		return err
	}
	before := make([]part, len(names))
	for i, n := range names {
		before[i].name = n
	}
	return stillThere(before, now)
}

func (r *reader) block() *readBlockOf {
	select {
	case b := <-r.free:
		return b
	default:
		return &readBlockOf{vecs: make([]batch.Vec, len(r.cols))}
	}
}

// Next implements connector.Reader.
func (r *reader) Next(ctx context.Context, b *batch.Batch, maxRows, maxBytes int) error {
	if r.err != nil {
		return r.err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.cur == nil {
		select {
		case r.cur = <-r.blocks:
			r.at = 0
		default:
			return connector.ErrNoData
		}
		if r.err = r.cur.err; r.err != nil {
			return r.err
		}
	}
	c := r.cur
	n := min(c.rows-r.at, max(maxRows, 1))
	if per := c.bytes / int64(c.rows); per > 0 {
		n = min(n, int(max(int64(maxBytes)/per, 1)))
	}
	b.Reset(r.schema)
	for i := range b.Cols {
		if n == c.rows {
			b.Cols[i], c.vecs[i] = c.vecs[i], b.Cols[i]
			continue
		}
		r.sel = r.sel[:0]
		for k := range n {
			r.sel = append(r.sel, int32(r.at+k))
		}
		b.Cols[i].Take(&c.vecs[i], r.sel)
	}
	b.Len = n
	from := c.offset + int64(r.at)
	b.Runs = append(b.Runs[:0], batch.Run{Partition: c.split.Number, Rows: int32(n), BaseOffset: from, EndOffset: from + int64(n), LogTime: c.time})
	r.bytes += c.bytes * int64(n) / int64(c.rows)
	if r.at += n; r.at == c.rows {
		r.cur = nil
		select {
		case r.free <- c:
		default:
		}
	}
	return nil
}

// Raw implements connector.Reader: rows of a table have no record behind them.
func (r *reader) Raw(int32, int64) (connector.RawRecord, bool) { return connector.RawRecord{}, false }

// LogEnd implements connector.Reader.
func (r *reader) LogEnd(split int32) int64 { return r.ends[split] }

// InputBytes implements connector.ByteCounter.
func (r *reader) InputBytes() int64 { return r.bytes }

// Release implements connector.Reader.
func (r *reader) Release() {}

// Close implements connector.Reader.
func (r *reader) Close() error {
	r.stop()
	r.done.Wait()
	return nil
}
