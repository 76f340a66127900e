package lanetest

import (
	"fmt"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// Bad is a cell whose value is an error.
type Bad struct {
	Code    batch.Code
	Message string
}

// Record is one record of a topic, decoded.
type Record struct {
	// Rows are the decoded rows: int64, string, bool, nil or Bad cells, one a
	// column of the topic's schema. No rows and no Note: the offset is not
	// there (compacted away).
	Rows [][]any
	// Note makes it a record without rows: batch.CodeEmpty, CodeMalformed...
	Note batch.Code
	// LogTime in ms.
	LogTime int64
}

// Topic is a log of decoded records.
type Topic struct {
	ID     connector.UUID
	Name   string
	Schema *batch.Schema

	mu      sync.Mutex
	parts   []partition
	waiters map[*reader]struct{}
}

type partition struct {
	start   int64
	records []Record
}

// NewTopic makes a topic with empty partitions.
func NewTopic(name string, schema *batch.Schema, partitions int) *Topic {
	t := &Topic{Name: name, Schema: schema, parts: make([]partition, partitions), waiters: map[*reader]struct{}{}}
	copy(t.ID[:], fmt.Sprintf("topic-%-10s", name))
	return t
}

// Append adds records to a partition and wakes readers.
func (t *Topic) Append(part int, records ...Record) {
	t.mu.Lock()
	p := &t.parts[part]
	p.records = append(p.records, records...)
	var wake []*reader
	for r := range t.waiters {
		wake = append(wake, r)
	}
	t.mu.Unlock()
	for _, r := range wake {
		r.notify()
	}
}

// Truncate drops the records below an offset, as retention does.
func (t *Topic) Truncate(part int, start int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.parts[part]
	if n := start - p.start; n > 0 {
		p.records = append([]Record(nil), p.records[n:]...)
		p.start = start
	}
}

// AddPartition adds an empty partition.
func (t *Topic) AddPartition() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts = append(t.parts, partition{})
}

// End is the log's end of a partition.
func (t *Topic) End(part int) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.parts[part].end()
}

func (p *partition) end() int64 { return p.start + int64(len(p.records)) }

// Partitions lists the partitions.
func (t *Topic) Partitions() []connector.Partition {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]connector.Partition, len(t.parts))
	for i := range out {
		out[i] = connector.Partition{TopicID: t.ID, Topic: t.Name, ID: int32(i)}
	}
	return out
}

// Schema makes a schema of "name TYPE" pairs out of the types that cells can
// hold: BIGINT, STRING, BOOLEAN, TIMESTAMP.
func Schema(columns ...string) *batch.Schema {
	s := &batch.Schema{}
	for i := 0; i < len(columns); i += 2 {
		var t types.Type
		switch columns[i+1] {
		case "BIGINT":
			t = types.NewBigInt()
		case "STRING":
			t = types.NewString()
		case "BOOLEAN":
			t = types.NewBoolean()
		case "TIMESTAMP":
			t = types.NewTimestamp(3)
		default:
			panic("BUG: no cell of type " + columns[i+1])
		}
		s.Fields = append(s.Fields, types.Field{Name: columns[i], Type: t})
	}
	return s
}

// Table makes a table over a schema.
func Table(name string, s *batch.Schema, partitionKeys ...int) *connector.Table {
	t := &connector.Table{Name: name, PartitionKeys: partitionKeys}
	for _, f := range s.Fields {
		t.Columns = append(t.Columns, connector.Column{Field: f})
	}
	return t
}

// put writes a cell into a column.
func put(v *batch.Vec, i int, cell any) {
	switch c := cell.(type) {
	case nil:
		v.NullRow(i)
	case Bad:
		v.NullRow(i)
		v.SetErr(i, c.Code, "", c.Message)
	case string:
		v.PutString(i, c)
	case bool:
		v.Bools.Put(i, c)
	case int64:
		v.SetInt64(i, c)
	case int:
		v.SetInt64(i, int64(c))
	default:
		panic(fmt.Sprintf("BUG: cell %T", cell))
	}
}
