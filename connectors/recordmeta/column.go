package recordmeta

import (
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/record"
)

// metaKind is a metadata key.
type metaKind uint8

const (
	metaTopic metaKind = iota
	metaPartition
	metaOffset
	metaTimestamp
	metaTimestampType
	metaLeaderEpoch
	metaHeaders
)

// Spec declares the metadata columns.
func Spec() []connector.MetadataColumn {
	return []connector.MetadataColumn{
		{Key: "topic", Type: "STRING NOT NULL", Doc: "The topic's name."},
		{Key: "partition", Type: "INT NOT NULL", Doc: "The partition's number."},
		{Key: "offset", Type: "BIGINT NOT NULL", Doc: "The record's offset."},
		{Key: "timestamp", Type: "TIMESTAMP_LTZ(3) NOT NULL", Writable: true, Doc: "The record's timestamp."},
		{Key: "timestamp-type", Type: "STRING NOT NULL", Doc: "`CreateTime` or `LogAppendTime`."},
		{Key: "leader-epoch", Type: "INT", Doc: "The leader epoch the record was written in."},
		{Key: "headers", Type: "MAP<STRING NOT NULL, BYTES> NOT NULL", Doc: "The record's headers; of equal keys the last one counts."},
	}
}

// Column fills one metadata column.
type Column struct {
	kind metaKind
	// Index is the column in the batch.
	Index int
	wide  bool  // an INT key read as BIGINT
	scale int64 // units of the column in a millisecond
	zone  Zone  // of a TIMESTAMP, which is wall clock
}

// Place is the record whose values are taken. It belongs to one reader.
type Place struct {
	Topic     string
	Partition int32
	Record    *record.Record
	Batch     *record.Batch
	headers   []record.RecordHeader // used again
}

// Zone turns an instant into wall clock time; none leaves it.
type Zone struct{ Location *time.Location }

func (z Zone) wall(ms int64) int64 {
	if z.Location == nil || z.Location == time.UTC {
		return ms
	}
	_, offset := time.UnixMilli(ms).In(z.Location).Zone()
	return ms + int64(offset)*1000
}

// Columns compiles the metadata columns among those of a table that are listed, in
// the order of the list; the first of the list is column 0 of the batch.
func Columns(t *connector.Table, columns []int, z Zone) ([]Column, error) {
	var out []Column
	for at, i := range columns {
		col := &t.Columns[i]
		if col.Metadata == "" {
			continue
		}
		m, err := compile(col.Metadata, at, col.Type, z)
		if err != nil {
			return nil, fmt.Errorf("table %s, column %s: %w", t.Name, col.Name, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// Check refuses metadata columns of a table that cannot be read as they are declared.
func Check(t *connector.Table) error {
	columns := make([]int, len(t.Columns))
	for i := range columns {
		columns[i] = i
	}
	_, err := Columns(t, columns, Zone{})
	return err
}

// Written finds the column of a table that is written as the records' timestamp, -1
// when there is none, and refuses others that are neither virtual nor physical.
func Written(t *connector.Table) (timestamp int, err error) {
	timestamp = -1
	for i, col := range t.Columns {
		if col.Metadata == "" || col.Virtual {
			continue
		}
		if col.Metadata != "timestamp" {
			err = fmt.Errorf("metadata %q cannot be written; declare it VIRTUAL", col.Metadata)
		} else if _, err = compile(col.Metadata, i, col.Type, Zone{}); err == nil && col.Type.Kind != types.TimestampLTZ {
			err = fmt.Errorf("metadata \"timestamp\" is written from TIMESTAMP_LTZ, not %s", col.Type)
		}
		if err != nil {
			return -1, fmt.Errorf("table %s, column %s: %w", t.Name, col.Name, err)
		}
		timestamp = i
	}
	return timestamp, nil
}

// compile checks that a key can be read as a type: its own, or one that a
// cast without loss gives. LTZ to TIMESTAMP goes by the session zone.
func compile(key string, column int, t types.Type, z Zone) (Column, error) {
	m := Column{Index: column}
	ok := false
	switch key {
	case "topic":
		m.kind, ok = metaTopic, t.Kind == types.Varchar && t.Length == types.MaxLength
	case "partition":
		m.kind, ok = metaPartition, t.Kind == types.Int || t.Kind == types.BigInt
	case "offset":
		m.kind, ok = metaOffset, t.Kind == types.BigInt
	case "timestamp":
		m.kind, ok = metaTimestamp, t.IsTimestamp() && t.Precision >= 3
		if ok {
			m.scale = t.UnitsPerSecond() / 1000
		}
		if t.Kind == types.Timestamp {
			m.zone = z
		}
	case "timestamp-type":
		m.kind, ok = metaTimestampType, t.Kind == types.Varchar && t.Length == types.MaxLength
	case "leader-epoch":
		m.kind, ok = metaLeaderEpoch, t.Kind == types.Int || t.Kind == types.BigInt
	case "headers":
		m.kind, ok = metaHeaders, isHeaders(t)
	default:
		return m, fmt.Errorf("unknown metadata key %q", key)
	}
	if !ok {
		return m, fmt.Errorf("metadata %q cannot be read as %s", key, t)
	}
	m.wide = t.Kind == types.BigInt
	return m, nil
}

// isHeaders accepts MAP<STRING, BYTES>; a value may be null, so BYTES NOT NULL
// is refused.
func isHeaders(t types.Type) bool {
	if t.Kind != types.Map || t.Elem == nil {
		return false
	}
	probe := types.NewMap(types.NewString(), types.NewBytes())
	return t.Elem.Nullable && t.EqualIgnoringNull(probe)
}

// Append adds the value of a record.
func (m *Column) Append(v *batch.Vec, r *Place) {
	switch m.kind {
	case metaTopic:
		format.AppendString(v, r.Topic)
	case metaPartition:
		m.int(v, r.Partition)
	case metaOffset:
		format.AppendInt64(v, r.Record.Offset)
	case metaTimestamp:
		m.timestamp(v, r.Record.Timestamp)
	case metaTimestampType:
		if r.Batch.Attributes.LogAppendTime() {
			format.AppendString(v, "LogAppendTime")
		} else {
			format.AppendString(v, "CreateTime")
		}
	case metaLeaderEpoch:
		m.int(v, r.Batch.LeaderEpoch)
	case metaHeaders:
		r.headers = appendHeaders(v, r.Record, r.headers[:0])
	}
}

func (m *Column) int(v *batch.Vec, x int32) {
	if m.wide {
		format.AppendInt64(v, int64(x))
	} else {
		format.AppendInt32(v, x)
	}
}

// timestamp refuses what a producer made up and the type cannot hold.
func (m *Column) timestamp(v *batch.Vec, ms int64) {
	const day = 24 * 60 * 60 * 1000
	if bound := math.MaxInt64/m.scale - day; ms > bound || ms < -bound {
		format.AppendErr(v, batch.CodeTimestampRange, "timestamp", fmt.Sprintf("%d ms since 1970 is outside %s", ms, v.Type))
		return
	}
	format.AppendInt64(v, m.zone.wall(ms)*m.scale)
}

// appendHeaders keeps the last of equal keys: a MAP has each key once.
func appendHeaders(v *batch.Vec, rec *record.Record, all []record.RecordHeader) []record.RecordHeader {
	hs := rec.Headers()
	var h record.RecordHeader
	for hs.Next(&h) {
		all = append(all, h)
	}
	var last map[string]int // of many headers, where each key is last
	if len(all) > 32 {
		last = make(map[string]int, len(all))
		for i := range all {
			last[string(all[i].Key)] = i
		}
	}
	for i, h := range all {
		if last != nil && last[string(h.Key)] != i || last == nil && repeated(all[i+1:], h.Key) {
			continue
		}
		format.AppendBytes(v.Children[0], h.Key)
		if h.Value == nil {
			format.AppendNull(v.Children[1])
		} else {
			format.AppendBytes(v.Children[1], h.Value)
		}
	}
	format.CloseList(v)
	return all
}

func repeated(later []record.RecordHeader, key []byte) bool {
	for i := range later {
		if string(later[i].Key) == string(key) {
			return true
		}
	}
	return false
}
