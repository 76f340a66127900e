package infer

import (
	"cmp"
	"errors"
	"slices"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Sample is one record.
type Sample struct {
	Partition int32
	Offset    int64
	Value     []byte
}

// Options say what the statement is to look like.
type Options struct {
	// Table is the table's name.
	Table string
	// With are the options of the WITH clause, key and value, in order; those
	// of the format are added.
	With [][2]string
	// Reserved reports words that must be quoted as names; nil: none.
	Reserved func(word string) bool
}

// Draft is a drafted table.
type Draft struct {
	// DDL is the CREATE TABLE statement, ending in a semicolon and newline.
	DDL string
	// Fields are its physical columns.
	Fields []types.Field
	// Standard is its json.timestamp-format.standard.
	Standard string
	// EventTime is the column of the WATERMARK, "" when there is none, and
	// DisorderMillis how far a row lay behind an earlier one of its partition.
	EventTime      string
	DisorderMillis int64
	// Records, Rows, Empty and Malformed count the samples and their rows.
	Records, Rows, Empty, Malformed int64
}

// ErrNoRows is returned when no sample holds an object.
var ErrNoRows = errors.New("no sample holds a JSON object")

// New drafts a table from samples, which may be in any order.
func New(samples []Sample, o Options) (*Draft, error) {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	d := &Draft{Records: int64(len(samples))}
	good, faults, err := d.check(samples)
	if err != nil {
		return nil, err
	}
	root := &objectStat{fields: map[string]*stat{}}
	for _, s := range good {
		for _, v := range rows(s.Value) {
			d.Rows++
			root.add(v, place{s.Partition, s.Offset}, 1)
		}
	}
	if d.Rows == 0 {
		return nil, ErrNoRows
	}
	root.finish()
	dec := &decider{chooseStandard(root)}
	d.Standard = scalar.Standards[dec.standard]
	d.Fields = dec.fields(root)
	w := &writer{Options: o, Draft: d, root: root, standard: dec.standard, faults: faults}
	w.eventTime = dec.eventTime(root, d.Fields)
	if w.eventTime != nil {
		d.EventTime = w.eventTime.column
		d.DisorderMillis = dec.disorder(good, w.eventTime)
	}
	d.DDL = w.statement()
	return d, nil
}

// check sorts out what is malformed, by the decoder's own judgement.
func (d *Draft) check(samples []Sample) (good []Sample, faults []string, err error) {
	dec, err := jsonfmt.NewDecoder(format.DecoderConfig{})
	if err != nil {
		return nil, nil, err
	}
	a, b := format.NewAppender(), new(batch.Batch)
	schema := new(batch.Schema)
	for _, s := range samples {
		a.Begin(b, schema)
		a.BeginRun(s.Partition, s.Offset)
		if dec.Decode(s.Value, s.Offset, a) > 0 {
			good = append(good, s)
			continue
		}
		switch n := b.Notes[0]; n.Code {
		case batch.CodeEmpty:
			d.Empty++
		default:
			d.Malformed++
			faults = append(faults, place{s.Partition, s.Offset}.String()+": "+n.Message)
		}
	}
	return good, faults, nil
}

// eventTime is the column that the WATERMARK is declared for.
type eventTime struct {
	// field is the physical column, column the one of the watermark.
	field, column string
	// epoch is the unit of an integer column, "" for a text.
	epoch string
	form  form
}

// eventTimeNames are preferred in this order among columns that are always
// there.
var eventTimeNames = []string{"event_time", "eventTime", "event_ts", "ts", "timestamp", "time", "@timestamp", "occurred_at", "created_at", "createdAt"}

func (d *decider) eventTime(root *objectStat, fields []types.Field) *eventTime {
	var best *eventTime
	bestRank := 0
	for i, f := range fields {
		s := root.fields[f.Name]
		e := &eventTime{field: f.Name, column: f.Name, epoch: s.epoch()}
		switch {
		case e.epoch != "":
			e.column = computedName(f.Name, root)
		case f.Type.IsTimestamp():
			e.form, _ = s.timeForm(d.standard)
		default:
			continue
		}
		rank := len(fields) - i
		if n := slices.Index(eventTimeNames, f.Name); n >= 0 {
			rank += 1000 * (len(eventTimeNames) - n)
		}
		if s.values == s.parents {
			rank += 1_000_000
		}
		if best == nil || rank > bestRank {
			best, bestRank = e, rank
		}
	}
	if best != nil && best.epoch == "" {
		// A row time has at most milliseconds.
		for i := range fields {
			if fields[i].Name == best.field {
				fields[i].Type.Precision = min(fields[i].Type.Precision, 3)
			}
		}
	}
	return best
}

// computedName is the name of the computed column for an epoch column.
func computedName(name string, root *objectStat) string {
	out := name + "_time"
	for root.fields[out] != nil {
		out += "_"
	}
	return out
}

// disorder is the largest distance in ms of a row behind the latest earlier
// row of its partition.
func (d *decider) disorder(samples []Sample, e *eventTime) (most int64) {
	var latest int64
	for i, s := range samples {
		if i == 0 || samples[i-1].Partition != s.Partition {
			latest = -1 << 62
		}
		for _, v := range rows(s.Value) {
			x, ok := e.millis(v.fields[e.field])
			if !ok {
				continue
			}
			most = max(most, latest-x)
			latest = max(latest, x)
		}
	}
	return most
}

// millis is the time of a value.
func (e *eventTime) millis(v *value) (int64, bool) {
	if v == nil {
		return 0, false
	}
	switch e.epoch {
	case "":
		if v.kind != '"' {
			return 0, false
		}
		for _, f := range timestampForms {
			if f.f == e.form {
				x, res := scalar.Timestamp(v.text, f.std, f.zoned, 3)
				return x / 1000, res == scalar.OK
			}
		}
		return 0, false
	}
	x, ok := scalar.Int(v.text)
	switch e.epoch {
	case "s":
		x *= 1000
	case "us":
		x /= 1000
	case "ns":
		x /= 1_000_000
	}
	return x, ok
}
