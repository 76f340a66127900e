package jsonfmt

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fastjson"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
)

func size(events [][]byte) (n int64) {
	for _, e := range events {
		n += int64(len(e))
	}
	return n
}

// contestant decodes all events into twelve values each.
type contestant struct {
	name string
	run  func(events [][]byte) error
}

func millrace(tb testing.TB) contestant {
	fields := githubFields()
	d, err := NewDecoder(format.DecoderConfig{Fields: fields, Options: format.FromMap(map[string]string{"json.timestamp-format.standard": "ISO-8601"})})
	if err != nil {
		tb.Fatal(err)
	}
	a, b, schema := format.NewAppender(), new(batch.Batch), &batch.Schema{Fields: fields}
	return contestant{"millrace", func(events [][]byte) error {
		a.Begin(b, schema)
		a.BeginRun(0, 0)
		for i, e := range events {
			if d.Decode(e, int64(i), a) != 1 {
				tb.Fatal(b.Notes)
			}
		}
		a.EndRun(int64(len(events)), 0)
		a.Finish()
		return nil
	}}
}

// sum keeps the references' results in use.
var sum int

func viaFastjson() contestant {
	var p fastjson.Parser
	return contestant{"fastjson", func(events [][]byte) error {
		for _, e := range events {
			v, err := p.ParseBytes(e)
			if err != nil {
				return err
			}
			id, err := strconv.ParseInt(string(v.GetStringBytes("id")), 10, 64)
			if err != nil {
				return err
			}
			at, err := time.Parse(time.RFC3339, string(v.GetStringBytes("created_at")))
			if err != nil {
				return err
			}
			sum += int(id) + int(at.UnixMicro()) + len(v.GetStringBytes("type"))
			sum += int(v.GetInt64("actor", "id")) + len(v.GetStringBytes("actor", "login"))
			sum += int(v.GetInt64("repo", "id")) + len(v.GetStringBytes("repo", "name"))
			sum += v.GetInt("payload", "size") + v.GetInt("payload", "distinct_size")
			sum += len(v.GetStringBytes("payload", "ref")) + len(v.GetStringBytes("payload", "action"))
			if v.GetBool("public") {
				sum++
			}
		}
		return nil
	}}
}

type githubEvent struct {
	ID, Type string
	Actor    struct {
		ID    int64
		Login string
	}
	Repo struct {
		ID   int64
		Name string
	}
	Payload struct {
		Size         int
		DistinctSize int `json:"distinct_size"`
		Ref, Action  *string
	}
	Public    bool
	CreatedAt time.Time `json:"created_at"`
}

func viaEncodingJSON() contestant {
	return contestant{"encoding-json", func(events [][]byte) error {
		for _, e := range events {
			var x githubEvent
			if err := json.Unmarshal(e, &x); err != nil {
				return err
			}
			id, err := strconv.ParseInt(x.ID, 10, 64)
			if err != nil {
				return err
			}
			sum += int(id) + len(x.Type)
		}
		return nil
	}}
}

// BenchmarkDecodeGitHub decodes the shipped events (3 kB in the mean) into
// twelve columns, and has fastjson (parse and get) and encoding/json (into a
// struct) take out the same values. side-by-side runs them in turn, so that
// all see the same machine, and reports how many times faster Millrace is.
func BenchmarkDecodeGitHub(b *testing.B) {
	events := githubEvents(b)
	all := []contestant{millrace(b), viaFastjson(), viaEncodingJSON()}
	for _, c := range all {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size(events))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(events); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("side-by-side", func(b *testing.B) {
		var spent [3]time.Duration
		for b.Loop() {
			for i, c := range all {
				start := time.Now()
				if err := c.run(events); err != nil {
					b.Fatal(err)
				}
				spent[i] += time.Since(start)
			}
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(spent[1])/float64(spent[0]), "x-fastjson")
		b.ReportMetric(float64(spent[2])/float64(spent[0]), "x-encoding/json")
	})
}

// BenchmarkDecodeSmallEvents decodes the events of at most 1,090 bytes (759 in
// the mean), the workload of the whole-job figures.
func BenchmarkDecodeSmallEvents(b *testing.B) {
	var small [][]byte
	for _, e := range githubEvents(b) {
		if len(e) <= 1090 {
			small = append(small, e)
		}
	}
	c := millrace(b)
	b.SetBytes(size(small))
	n := 0
	start := time.Now()
	for b.Loop() {
		if err := c.run(small); err != nil {
			b.Fatal(err)
		}
		n += len(small)
	}
	b.ReportMetric(time.Since(start).Seconds()/float64(n)*1e6, "s/Mrow")
}

// BenchmarkSkip checks events of which nothing is needed.
func BenchmarkSkip(b *testing.B) {
	events := githubEvents(b)
	b.SetBytes(size(events))
	var s skipper
	for b.Loop() {
		for _, e := range events {
			if s.build(e); s.skip(e, 0, 0) != len(e) {
				b.Fatal("a good event is malformed")
			}
		}
	}
}

// BenchmarkIndex makes the indexes alone.
func BenchmarkIndex(b *testing.B) {
	events := githubEvents(b)
	b.SetBytes(size(events))
	var x index
	for b.Loop() {
		for _, e := range events {
			x.build(e)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	fields := githubFields()
	bt := new(batch.Batch)
	a := format.NewAppender()
	d, err := NewDecoder(format.DecoderConfig{Fields: fields, Options: format.FromMap(map[string]string{"json.timestamp-format.standard": "ISO-8601"})})
	if err != nil {
		b.Fatal(err)
	}
	a.Begin(bt, &batch.Schema{Fields: fields})
	a.BeginRun(0, 0)
	for i, e := range githubEvents(b) {
		d.Decode(e, int64(i), a)
	}
	a.EndRun(800, 0)
	a.Finish()
	e, err := NewEncoder(format.EncoderConfig{Fields: fields})
	if err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = out[:0]
		for i := range bt.Len {
			if out, err = e.AppendRow(out, bt, i); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.SetBytes(int64(len(out)))
}
