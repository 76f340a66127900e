package datagen

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/numbered"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// source makes the rows of one table.
type source struct {
	numbered.Source
	clock Clock
	table *connector.Table
	rate  int64
	start time.Time
	fill  []func(*filler)
}

// topicOf names the made-up topic: another table, seed or schema is another
// one.
func topicOf(t *connector.Table, seed uint64) connector.UUID {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64([]byte("datagen"), seed))
	h.Write([]byte(t.Name))
	for _, c := range t.Columns {
		fmt.Fprintf(h, "\x00%s %s", c.Name, c.Type)
	}
	var id connector.UUID
	copy(id[:], h.Sum(nil))
	return id
}

func (s *source) Open(_ context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	r := &reader{source: s, schema: s.table.Schema(columns), columns: columns, notify: notify, began: s.clock.Now()}
	if columns == nil {
		for i := range s.table.Columns {
			r.columns = append(r.columns, i)
		}
	}
	var err error
	if r.splits, err = s.Splits(splits); err != nil {
		return nil, err
	}
	return r, nil
}

// reader makes rows at the table's rate since it was opened.
type reader struct {
	source  *source
	schema  *batch.Schema
	columns []int
	splits  *numbered.Splits
	notify  func()
	began   time.Time
	made    int64

	mu   sync.Mutex
	stop func() // of the timer that is running
}

// allowed is how many rows may have been made by now.
func (r *reader) allowed() int64 {
	d := r.source.clock.Now().Sub(r.began)
	rate := r.source.rate
	// Rows of the first moment come at once, so that a small table does not
	// wait; whole seconds first, so that nothing overflows.
	whole, rest := int64(d/time.Second), int64(d%time.Second)
	return whole*rate + int64(float64(rest)/float64(time.Second)*float64(rate)) + max(rate/10, 1)
}

// Next implements connector.Reader.
func (r *reader) Next(ctx context.Context, b *batch.Batch, maxRows, _ int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := r.splits.Current()
	if s == nil {
		return io.EOF
	}
	room := r.allowed() - r.made
	if room <= 0 {
		r.wait(1 - room)
		return connector.ErrNoData
	}
	n := int(min(int64(max(maxRows, 1)), room, s.End-s.Next))
	b.Reset(r.schema)
	for i, c := range r.columns {
		v := &b.Cols[i]
		v.Reset(r.schema.Fields[i].Type, 0)
		f := filler{v: v}
		for k := range n {
			f.row = s.Next + int64(k)
			r.source.fill[c](&f)
		}
		format.Seal(v)
	}
	b.Len = n
	b.Runs = append(b.Runs[:0], batch.Run{Partition: s.Number, Rows: int32(n), BaseOffset: s.Next, EndOffset: s.Next + int64(n),
		LogTime: r.source.clock.Now().UnixMilli()})
	s.Next += int64(n)
	r.made += int64(n)
	return nil
}

// wait has notify called when the given number of rows is due.
func (r *reader) wait(rows int64) {
	d := time.Duration(float64(rows) / float64(r.source.rate) * float64(time.Second))
	d = max(d, 20*time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		r.stop()
	}
	r.stop = r.source.clock.AfterFunc(d, r.notify)
}

// Raw implements connector.Reader: made-up rows have no record behind them.
func (r *reader) Raw(int32, int64) (connector.RawRecord, bool) { return connector.RawRecord{}, false }

// LogEnd implements connector.Reader.
func (r *reader) LogEnd(split int32) int64 {
	end := r.splits.End(split)
	if s := r.splits.Unmade(split); s != nil {
		return min(end, s.Next+max(r.allowed()-r.made, 0))
	}
	return end
}

// Release implements connector.Reader.
func (r *reader) Release() {}

// Close implements connector.Reader.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	r.splits.Clear()
	return nil
}
