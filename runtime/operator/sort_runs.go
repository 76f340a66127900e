package operator

import (
	"bytes"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// sortRuns are the rows of a Sort that are on disk: runs of blocks, each in order.
type sortRuns struct {
	spillPlace
	runs []sortRun
}

// sortRun is a run with how often its rows have been merged: the runs of one level are
// about as long.
type sortRun struct {
	*spill.Run
	level int
}

// mergeSorted is how many runs of a level become one of the next: few, so that a block
// of each has room in memory, and many, so that a row is written few times.
const mergeSorted = 16

var _ Spilling = (*Sort)(nil)

func (d *sortRuns) bytes() int64 {
	n := int64(0)
	for _, r := range d.runs {
		n += r.Memory()
	}
	return n
}

func (d *sortRuns) release() {
	for _, r := range d.runs {
		r.Release()
	}
	d.runs = nil
}

// blockBytes is about the length of a block.
func (d *sortRuns) blockBytes() int {
	return int(min(max(d.budget/(16*mergeSorted), 1<<10), blockBytes))
}

// SpillTo implements Spilling.
func (s *Sort) SpillTo(store *spill.Store, budget int64) { s.disk.SpillTo(store, budget) }

// Spilled implements Spilling.
func (s *Sort) Spilled() bool { return len(s.disk.runs) > 0 }

// Spill implements Spilling: all rows go, as one run.
func (s *Sort) Spill() error {
	if s.disk.store == nil || s.done || s.rows.Len == 0 {
		return nil
	}
	w, err := s.newSortWriter()
	if err != nil {
		return err
	}
	for _, row := range s.order() {
		if err := w.add(&s.rows, row, s.keys.at(row)); err != nil {
			w.Abort()
			return err
		}
	}
	if err := w.finish(0); err != nil {
		return err
	}
	s.reset()
	return s.mergeLevels()
}

// mergeLevels makes the runs of a level one of the next, where they are many.
func (s *Sort) mergeLevels() error {
	d := &s.disk
	for {
		n := len(d.runs)
		if n < mergeSorted || d.runs[n-mergeSorted].level != d.runs[n-1].level {
			return nil
		}
		old := slices.Clone(d.runs[n-mergeSorted:])
		level := old[0].level + 1
		w, err := s.newSortWriter()
		if err != nil {
			return err
		}
		most := s.most()
		err = s.merge(old, nil, func(b *batch.Batch, row int32, key []byte) (bool, error) {
			most--
			return most != 0, w.add(b, row, key)
		})
		if err != nil {
			w.Abort()
			return err
		}
		d.runs = d.runs[:n-mergeSorted]
		err = w.finish(level)
		for _, r := range old {
			r.Release()
		}
		if err != nil {
			return err
		}
	}
}

// sortWriter writes rows, which come in order, as a run.
type sortWriter struct {
	*spill.Writer
	s      *Sort
	run    *spill.Run
	rows   batch.Batch
	size   int
	blocks uint64
	buf    []byte
}

func (s *Sort) newSortWriter() (*sortWriter, error) {
	w, err := s.disk.store.NewWriter()
	if err != nil {
		return nil, err
	}
	out := &sortWriter{Writer: w, s: s, run: w.Begin(0)}
	resetRows(&out.rows, s.schema)
	return out, nil
}

// add appends a row. Its key has all of its values: so long is the row.
func (w *sortWriter) add(b *batch.Batch, row int32, key []byte) error {
	appendRow(&w.rows, b, row)
	if w.size += len(key); w.size < w.s.disk.blockBytes() {
		return nil
	}
	return w.flush()
}

func (w *sortWriter) flush() error {
	if w.rows.Len == 0 {
		return nil
	}
	for i := range w.rows.Cols {
		w.rows.Cols[i].PadOffsets()
	}
	w.buf = appendSorted(w.buf[:0], &w.rows)
	// Blocks are found by their number.
	err := w.Block(w.buf, []uint64{w.blocks})
	resetRows(&w.rows, w.s.schema)
	w.size = 0
	w.blocks++
	return err
}

// finish ends the run and takes it in.
func (w *sortWriter) finish(level int) error {
	if err := w.flush(); err != nil {
		w.Abort()
		return err
	}
	if err := w.Finish(); err != nil {
		return err
	}
	w.s.disk.runs = append(w.s.disk.runs, sortRun{w.run, level})
	return nil
}

// sortCursor is a place in rows that are in order.
type sortCursor struct {
	run  *spill.Run // nil: all rows are there
	next int        // the block behind rows
	buf  []byte
	rows *batch.Batch
	keys *byteSlab
	sel  batch.Sel
	at   int
}

func (c *sortCursor) row() int32  { return c.sel[c.at] }
func (c *sortCursor) key() []byte { return c.keys.at(c.row()) }

// step goes to the next row; false: there is none.
func (c *sortCursor) step(s *Sort) (bool, error) {
	if c.at++; c.at < len(c.sel) {
		return true, nil
	}
	if c.run == nil || c.next == c.run.Blocks() {
		return false, nil
	}
	var err error
	if c.buf, err = c.run.Read(c.next, c.buf); err != nil {
		return false, err
	}
	if c.rows, err = s.readSorted(state.NewReader(c.buf)); err != nil {
		return false, err
	}
	c.next++
	c.keys.reset()
	for row := range c.rows.Len {
		s.buf = s.appendKey(s.buf[:0], c.rows, row)
		c.keys.add(s.buf)
	}
	c.sel, c.at = slotsOf(0, c.rows.Len, c.sel), 0
	return true, nil
}

// merge gives the rows of runs, and those in memory, in order, until f has enough.
func (s *Sort) merge(runs []sortRun, memory batch.Sel, f func(b *batch.Batch, row int32, key []byte) (more bool, err error)) error {
	var heap []*sortCursor // the first row is that of the first cursor
	push := func(c *sortCursor) error {
		ok, err := c.step(s)
		if ok {
			heap = append(heap, c)
		}
		return err
	}
	for _, r := range runs {
		if err := push(&sortCursor{run: r.Run, keys: &byteSlab{}}); err != nil {
			return err
		}
	}
	if err := push(&sortCursor{rows: &s.rows, keys: &s.keys, sel: memory, at: -1}); err != nil {
		return err
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sift(heap, i)
	}
	for len(heap) > 0 {
		c := heap[0]
		if more, err := f(c.rows, c.row(), c.key()); err != nil || !more {
			return err
		}
		ok, err := c.step(s)
		if err != nil {
			return err
		}
		if !ok {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sift(heap, 0)
	}
	return nil
}

// sift moves a cursor behind those that come before it.
func sift(heap []*sortCursor, i int) {
	for {
		first := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(heap); k++ {
			if bytes.Compare(heap[k].key(), heap[first].key()) < 0 {
				first = k
			}
		}
		if first == i {
			return
		}
		heap[i], heap[first] = heap[first], heap[i]
		i = first
	}
}

// emitMerged gives the rows on disk and in memory.
func (s *Sort) emitMerged(out *Results) error {
	resetRows(&s.out, s.schema)
	flush := func() error {
		if s.out.Len == 0 {
			return nil
		}
		for i := range s.out.Cols {
			s.out.Cols[i].PadOffsets()
		}
		err := out.Emit(&s.out)
		resetRows(&s.out, s.schema)
		return err
	}
	most, skip := s.most(), s.op.Offset
	if most == 0 {
		return nil
	}
	err := s.merge(s.disk.runs, s.order(), func(b *batch.Batch, row int32, _ []byte) (bool, error) {
		most--
		if skip > 0 {
			skip--
			return most != 0, nil
		}
		if appendRow(&s.out, b, row); s.out.Len == emitRows {
			return most != 0, flush()
		}
		return most != 0, nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// SaveTo implements Spilling: rows in memory, then the blocks of the runs.
func (s *Sort) SaveTo(p *state.Payload) error {
	w := s.disk.parts(p, func(int, bool) []byte { return s.head() })
	rows := slotsOf(0, s.rows.Len, nil)
	n := w.chunk(len(rows), state.BatchBytes(&s.rows))
	chunk := batch.Batch{Cols: make([]batch.Vec, len(s.rows.Cols))}
	for len(rows) > 0 {
		chunk.Len = min(n, len(rows))
		for i := range chunk.Cols {
			chunk.Cols[i].Take(&s.rows.Cols[i], rows[:chunk.Len])
		}
		w.bytes(appendSorted(nil, &chunk))
		rows = rows[chunk.Len:]
	}
	for _, r := range s.disk.runs {
		w.run(r.Run, nil)
	}
	w.finish()
	return nil
}
