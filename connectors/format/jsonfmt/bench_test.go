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

func size(ev [][]byte) (n int64) {
	for _, e := range ev {
		n += int64(len(e))
	}
	return n
}

func BenchmarkSkip(b *testing.B) {
	ev := githubEvents(b)
	b.SetBytes(size(ev))
	var s skipper
	for b.Loop() {
		for _, e := range ev {
			s.build(e)
			if s.skip(e, 0, 0) != len(e) {
				b.Fatal("bad")
			}
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	ev := githubEvents(b)
	b.SetBytes(size(ev))
	var s skipper
	for b.Loop() {
		for _, e := range ev {
			s.build(e)
		}
	}
}

func BenchmarkReferenceParse(b *testing.B) {
	ev := githubEvents(b)
	b.SetBytes(size(ev))
	var p fastjson.Parser
	for b.Loop() {
		for _, e := range ev {
			if _, err := p.ParseBytes(e); err != nil {
				b.Fatal("bad")
			}
		}
	}
}

func BenchmarkDecodeGitHub(b *testing.B) {
	ev := githubEvents(b)
	b.Run("millrace", func(b *testing.B) {
		fields := githubFields()
		d, err := NewDecoder(format.DecoderConfig{Fields: fields, Options: format.FromMap(map[string]string{"json.timestamp-format.standard": "ISO-8601"})})
		if err != nil {
			b.Fatal(err)
		}
		a, bt, schema := format.NewAppender(), new(batch.Batch), &batch.Schema{Fields: fields}
		b.SetBytes(size(ev))
		b.ReportAllocs()
		for b.Loop() {
			a.Begin(bt, schema)
			a.BeginRun(0, 0)
			for i, e := range ev {
				if d.Decode(e, int64(i), a) != 1 {
					b.Fatal(bt.Notes)
				}
			}
			a.EndRun(int64(len(ev)), 0)
			a.Finish()
		}
	})
	b.Run("fastjson", func(b *testing.B) {
		b.SetBytes(size(ev))
		var p fastjson.Parser
		for b.Loop() {
			for _, e := range ev {
				v, err := p.ParseBytes(e)
				if err != nil {
					b.Fatal(err)
				}
				n, _ := strconv.ParseInt(string(v.GetStringBytes("id")), 10, 64)
				sum += int(n)
				sum += len(v.GetStringBytes("type"))
				sum += int(v.GetInt64("actor", "id")) + len(v.GetStringBytes("actor", "login"))
				sum += int(v.GetInt64("repo", "id")) + len(v.GetStringBytes("repo", "name"))
				sum += v.GetInt("payload", "size") + v.GetInt("payload", "distinct_size")
				sum += len(v.GetStringBytes("payload", "ref")) + len(v.GetStringBytes("payload", "action"))
				if v.GetBool("public") {
					sum++
				}
				t, err := time.Parse(time.RFC3339, string(v.GetStringBytes("created_at")))
				if err != nil {
					b.Fatal(err)
				}
				sum += int(t.UnixMicro())
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(size(ev))
		for b.Loop() {
			for _, e := range ev {
				var x event
				if err := json.Unmarshal(e, &x); err != nil {
					b.Fatal(err)
				}
				n, _ := strconv.ParseInt(x.ID, 10, 64)
				sum += int(n) + len(x.Type)
			}
		}
	})
}

// sum keeps the references' results in use.
var sum int

type event struct {
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
