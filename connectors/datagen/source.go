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
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// source makes the rows of one table.
type source struct {
	clock Clock
	table *connector.Table
	rate  int64
	rows  int64
	start time.Time
	id    connector.UUID
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

func (s *source) Partitions(context.Context) ([]connector.Partition, error) {
	return []connector.Partition{{TopicID: s.id, Topic: s.table.Name}}, nil
}

func (s *source) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		out[i] = connector.Position{Partition: p}
	}
	return out, nil
}

func (s *source) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i := range parts {
		out[i] = s.rows
	}
	return out, nil
}

func (s *source) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	out := make([]error, len(saved))
	for i, p := range saved {
		if p.Partition.TopicID != s.id || p.Partition.ID != 0 {
			out[i] = &connector.MismatchError{Position: p, Latest: s.rows, Lost: -1, Recreated: true, Reason: "the table, its columns or its seed have changed"}
		} else if p.Offset > s.rows {
			out[i] = &connector.MismatchError{Position: p, Latest: s.rows, Lost: -1, Reason: "the table has fewer rows now"}
		}
	}
	return out, nil
}

func (s *source) Close() error { return nil }

func (s *source) Open(_ context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	r := &reader{source: s, schema: s.table.Schema(columns), columns: columns, notify: notify, began: s.clock.Now(), ends: map[int32]int64{}}
	if columns == nil {
		for i := range s.table.Columns {
			r.columns = append(r.columns, i)
		}
	}
	for _, sp := range splits {
		if sp.From.Partition.TopicID != s.id {
			return nil, fmt.Errorf("partition %s %d is not of this table", sp.From.Partition.Topic, sp.From.Partition.ID)
		}
		end := min(sp.End, s.rows)
		r.splits = append(r.splits, splitState{number: sp.Number, next: sp.From.Offset, end: end})
		r.ends[sp.Number] = end
	}
	return r, nil
}

type splitState struct {
	number    int32
	next, end int64
}

// reader makes rows at the table's rate since it was opened.
type reader struct {
	source  *source
	schema  *batch.Schema
	columns []int
	splits  []splitState
	ends    map[int32]int64
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
	for len(r.splits) > 0 && r.splits[0].next >= r.splits[0].end {
		r.splits = r.splits[1:]
	}
	if len(r.splits) == 0 {
		return io.EOF
	}
	room := r.allowed() - r.made
	if room <= 0 {
		r.wait(1 - room)
		return connector.ErrNoData
	}
	s := &r.splits[0]
	n := int(min(int64(max(maxRows, 1)), room, s.end-s.next))
	b.Reset(r.schema)
	for i, c := range r.columns {
		v := &b.Cols[i]
		v.Reset(r.schema.Fields[i].Type, 0)
		f := filler{v: v}
		for k := range n {
			f.row = s.next + int64(k)
			r.source.fill[c](&f)
		}
		format.Seal(v)
	}
	b.Len = n
	b.Runs = append(b.Runs[:0], batch.Run{Partition: s.number, Rows: int32(n), BaseOffset: s.next, EndOffset: s.next + int64(n),
		LogTime: r.source.clock.Now().UnixMilli()})
	s.next += int64(n)
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
	end := r.ends[split]
	for _, s := range r.splits {
		if s.number == split {
			return min(end, s.next+max(r.allowed()-r.made, 0))
		}
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
	r.splits = nil
	return nil
}
