package redis

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// reader makes rows of answers. It belongs to one load at a time.
type reader struct {
	*lookup
	json  format.Decoder // nil: values are no JSON
	app   *format.Appender
	batch batch.Batch
	// from is, by row, its request.
	from []int32
	text []byte
}

func newReader(l *lookup) (*reader, error) {
	r := &reader{lookup: l, app: format.NewAppender()}
	if l.typ != typeString || l.plain {
		return r, nil
	}
	// Digits behind a scale are an error of the value. Invariant 6.
	cfg := format.DecoderConfig{Options: format.FromMap(map[string]string{"json.decimal-scale": "error"})}
	for _, c := range l.values {
		cfg.Fields, cfg.Columns = append(cfg.Fields, l.table.Columns[c].Field), append(cfg.Columns, l.at[c])
	}
	var err error
	r.json, err = jsonfmt.NewDecoder(cfg)
	return r, err
}

// rows are those of some answers; the batch is good until the next call. An error
// names the key, the column and the value: rows that are looked up have no dead letter.
func (r *reader) rows(some []request, cmds []goredis.Cmder, keys *connector.LookupKeys) (*batch.Batch, error) {
	r.app.Begin(&r.batch, r.schema)
	r.app.BeginRun(0, 0)
	r.from = r.from[:0]
	for i := range some {
		if err := r.answer(int32(i), &some[i], cmds[i], keys); err != nil {
			return nil, fmt.Errorf("key %q: %w", some[i].key, err)
		}
	}
	r.app.EndRun(int64(len(r.from)), 0)
	r.app.Finish()
	for row, from := range r.from {
		if e := fullcache.RowError(&r.batch, row); e != nil {
			return nil, fmt.Errorf("key %q, column %s: %s", some[from].key, e.Where, e.Message)
		}
	}
	return &r.batch, nil
}

// answer appends the rows of one answer.
func (r *reader) answer(i int32, q *request, cmd goredis.Cmder, keys *connector.LookupKeys) error {
	if errors.Is(cmd.Err(), goredis.Nil) {
		return nil
	}
	switch cmd := cmd.(type) {
	case *goredis.SliceCmd:
		r.hash(i, q, cmd.Val(), keys)
	case *goredis.StringCmd:
		return r.value(i, q, cmd.Val(), keys)
	case *goredis.BoolCmd:
		if cmd.Val() {
			r.end(i, q, q.member, keys)
		}
	case *goredis.FloatCmd:
		r.putScore(cmd.Val())
		r.end(i, q, q.member, keys)
	case *goredis.StringSliceCmd:
		for _, member := range cmd.Val() {
			r.end(i, q, member, keys)
		}
	case *goredis.ZSliceCmd:
		for _, z := range cmd.Val() {
			member, ok := z.Member.(string)
			if !ok {
				return fmt.Errorf("BUG: a member is %T", z.Member)
			}
			r.putScore(z.Score)
			r.end(i, q, member, keys)
		}
	default:
		return fmt.Errorf("BUG: no rows are made of %T", cmd)
	}
	return nil
}

// hash appends the row of a hash, which is there when one of the table's fields is:
// the others may be another table's.
func (r *reader) hash(i int32, q *request, fields []any, keys *connector.LookupKeys) {
	there := false
	for _, f := range fields {
		there = there || f != nil
	}
	if !there {
		return
	}
	for k, c := range r.values {
		if r.at[c] < 0 {
			continue
		}
		v := r.app.Column(r.at[c])
		if s, ok := fields[k].(string); ok {
			r.put(v, c, s)
		} else {
			format.AppendNull(v)
		}
	}
	r.end(i, q, "", keys)
}

// value appends the row of a string.
func (r *reader) value(i int32, q *request, s string, keys *connector.LookupKeys) error {
	if r.json == nil {
		if c := r.values[0]; r.at[c] >= 0 {
			r.put(r.app.Column(r.at[c]), c, s)
		}
		r.end(i, q, "", keys)
		return nil
	}
	r.text = append(r.text[:0], s...)
	switch n := r.json.Decode(r.text, int64(len(r.from)), r.app); {
	case n == 1:
	case n > 1:
		return fmt.Errorf("its value is %d objects of JSON", n)
	default:
		why := r.batch.Notes[len(r.batch.Notes)-1].Message
		if why == "" {
			why = "it is empty"
		}
		return fmt.Errorf("its value is no object of JSON: %s", why)
	}
	r.identify(q, "", keys)
	r.from = append(r.from, i)
	return nil
}

// end completes a row that no decoder has.
func (r *reader) end(i int32, q *request, member string, keys *connector.LookupKeys) {
	r.identify(q, member, keys)
	r.app.Commit(int64(len(r.from)), 1)
	r.from = append(r.from, i)
}

// identify appends the columns that the key of the server is made of, and the member.
func (r *reader) identify(q *request, member string, keys *connector.LookupKeys) {
	for k, c := range r.read {
		switch {
		case r.given[c] >= 0:
			format.AppendFrom(r.app.Column(k), &keys.Cols[r.given[c]], int(q.of))
		case c == r.member:
			r.put(r.app.Column(k), c, member)
		}
	}
}

// put appends the text of a value, as appendText writes it, or why it is none.
func (r *reader) put(v *batch.Vec, column int, s string) {
	r.text = append(r.text[:0], s...)
	fail := func(why string) {
		format.AppendErr(v, batch.CodeTypeMismatch, r.names[column], `"`+format.Excerpt(r.text)+`" `+why+v.Type.WithNullable(true).String())
	}
	if v.Type.IsString() && !utf8.Valid(r.text) {
		fail("is not UTF-8, as it has to be for ")
		return
	}
	switch ok, inexact := format.AppendText(v, r.text); {
	case !ok:
		fail("is not ")
	case inexact:
		format.Truncate(v, v.Len-1)
		fail("has more digits than ")
	}
}

// putScore appends a score to its column, if it is wanted.
func (r *reader) putScore(x float64) {
	if r.at[r.score] < 0 {
		return
	}
	v := r.app.Column(r.at[r.score])
	fits := true
	switch v.Type.Kind {
	case types.Double:
		format.AppendFloat64(v, x)
	case types.Float:
		if fits = math.IsInf(x, 0) || !math.IsInf(float64(float32(x)), 0); fits {
			format.AppendFloat32(v, float32(x))
		}
	default:
		r.text = strconv.AppendFloat(r.text[:0], x, 'f', -1, 64)
		if fits = math.Abs(x) <= exactScore && x == math.Trunc(x); fits {
			fits, _ = format.AppendText(v, r.text)
		}
	}
	if !fits {
		format.AppendErr(v, batch.CodeTypeMismatch, r.names[r.score],
			fmt.Sprintf("the score %s is not %s", strconv.FormatFloat(x, 'g', -1, 64), v.Type.WithNullable(true)))
	}
}
