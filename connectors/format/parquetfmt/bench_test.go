package parquetfmt

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	pgo "github.com/parquet-go/parquet-go"
	xparquet "github.com/xitongsys/parquet-go/parquet"
	xwriter "github.com/xitongsys/parquet-go/writer"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// eventFields are the twelve columns of the GitHub events workload.
func eventFields() []types.Field {
	return []types.Field{
		{Name: "event_id", Type: types.NewBigInt()}, {Name: "type", Type: types.NewString()},
		{Name: "actor_id", Type: types.NewBigInt()}, {Name: "actor_login", Type: types.NewString()},
		{Name: "repo_id", Type: types.NewBigInt()}, {Name: "repo_name", Type: types.NewString()},
		{Name: "org_login", Type: types.NewString()}, {Name: "is_public", Type: types.NewBoolean()},
		{Name: "created_at", Type: types.NewTimestampLTZ(3)}, {Name: "push_id", Type: types.NewBigInt()},
		{Name: "size", Type: types.NewInt()}, {Name: "ref", Type: types.NewString()},
	}
}

// events makes batches of rows that look like GitHub's: growing ids, 15 types,
// logins and repositories with a long tail, NULL where a type has no such field.
func events(batches, rows int) [][]batch.Vec {
	r := rand.New(rand.NewPCG(42, 42))
	zipf := rand.NewZipf(r, 1.2, 20, 1<<20)
	fields := eventFields()
	out := make([][]batch.Vec, batches)
	id := int64(17244207336)
	for b := range out {
		cols := make([]batch.Vec, len(fields))
		for c, f := range fields {
			cols[c].Reset(f.Type, rows)
		}
		text := func(c int, s string) {
			cols[c].Data = append(cols[c].Data, s...)
			cols[c].Offsets = append(cols[c].Offsets, int32(len(cols[c].Data)))
		}
		for i := range rows {
			id += 1 + r.Int64N(3)
			actor, repo, kind := zipf.Uint64(), zipf.Uint64(), r.IntN(15)
			if r.IntN(2) == 0 {
				kind = 0
			}
			cols[0].I64[i] = id
			text(1, []string{"PushEvent", "CreateEvent", "PullRequestEvent", "WatchEvent", "IssueCommentEvent", "IssuesEvent", "DeleteEvent",
				"ForkEvent", "PullRequestReviewEvent", "PullRequestReviewCommentEvent", "ReleaseEvent", "CommitCommentEvent", "MemberEvent", "PublicEvent", "GollumEvent"}[kind])
			cols[2].I64[i] = int64(actor*7919%4000000000 + 1)
			text(3, fmt.Sprintf("user-%08x", uint32(actor*2654435761)))
			cols[4].I64[i] = int64(repo*104729%4200000000 + 1)
			text(5, fmt.Sprintf("user-%08x/repo-%08x", uint32(repo*2654435761), uint32(repo*40503)))
			if r.IntN(3) > 0 {
				cols[6].SetNull(i)
				text(6, "")
			} else {
				text(6, fmt.Sprintf("org-%08x", uint32(repo*2654435761)))
			}
			cols[7].Bools.Set(i)
			cols[8].I64[i] = (1626847200000 + id/50) * 1000
			if kind != 0 {
				cols[9].SetNull(i)
				cols[10].SetNull(i)
				cols[11].SetNull(i)
				text(11, "")
			} else {
				cols[9].I64[i] = id - 9000000000
				cols[10].I32[i] = int32(1 + r.IntN(4))
				text(11, []string{"refs/heads/main", "refs/heads/master", fmt.Sprintf("refs/heads/f-%06x", r.IntN(1<<20))}[r.IntN(3)])
			}
		}
		out[b] = cols
	}
	return out
}

// cpuSeconds is the CPU time of the process so far.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	d := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return d(u.Utime) + d(u.Stime)
}

func writeOurs(w io.Writer, fields []types.Field, data [][]batch.Vec, c Compression, p *Pools) error {
	f, err := NewWriter(w, fields, Options{Compression: c, Pools: p})
	if err != nil {
		return err
	}
	for _, cols := range data {
		if err := f.Write(cols, nil); err != nil {
			return err
		}
	}
	_, err = f.Close()
	return err
}

// arrowRecords are the same rows as Arrow records.
func arrowRecords(data [][]batch.Vec) (*arrow.Schema, []arrow.Record) {
	fields := eventFields()
	var afs []arrow.Field
	for _, f := range fields {
		var t arrow.DataType = arrow.BinaryTypes.String
		switch f.Type.Kind {
		case types.BigInt:
			t = arrow.PrimitiveTypes.Int64
		case types.Int:
			t = arrow.PrimitiveTypes.Int32
		case types.Boolean:
			t = arrow.FixedWidthTypes.Boolean
		case types.TimestampLTZ:
			t = arrow.FixedWidthTypes.Timestamp_us
		}
		afs = append(afs, arrow.Field{Name: f.Name, Type: t, Nullable: true})
	}
	schema := arrow.NewSchema(afs, nil)
	var recs []arrow.Record
	for _, cols := range data {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for c := range cols {
			for i := range cols[c].Len {
				if cols[c].IsNull(i) {
					b.Field(c).AppendNull()
					continue
				}
				switch fb := b.Field(c).(type) {
				case *array.Int64Builder:
					fb.Append(cols[c].I64[i])
				case *array.Int32Builder:
					fb.Append(cols[c].I32[i])
				case *array.BooleanBuilder:
					fb.Append(true)
				case *array.TimestampBuilder:
					fb.Append(arrow.Timestamp(cols[c].I64[i]))
				case *array.StringBuilder:
					fb.Append(string(cols[c].Bytes(i)))
				}
			}
		}
		recs = append(recs, b.NewRecord())
	}
	return schema, recs
}

func writeArrow(w io.Writer, schema *arrow.Schema, recs []arrow.Record, codec compress.Compression) error {
	f, err := pqarrow.NewFileWriter(schema, w, parquet.NewWriterProperties(parquet.WithCompression(codec)), pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	// Write would make a row group of each record.
	tbl := array.NewTableFromRecords(schema, recs)
	defer tbl.Release()
	if err := f.WriteTable(tbl, 1<<18); err != nil {
		return err
	}
	return f.Close()
}

// eventRow is the row of the row-wise writers.
type eventRow struct {
	EventID    *int64  `parquet:"name=event_id, type=INT64, repetitiontype=OPTIONAL"`
	Type       *string `parquet:"name=type, type=BYTE_ARRAY, convertedtype=UTF8, encoding=PLAIN_DICTIONARY, repetitiontype=OPTIONAL"`
	ActorID    *int64  `parquet:"name=actor_id, type=INT64, repetitiontype=OPTIONAL"`
	ActorLogin *string `parquet:"name=actor_login, type=BYTE_ARRAY, convertedtype=UTF8, repetitiontype=OPTIONAL"`
	RepoID     *int64  `parquet:"name=repo_id, type=INT64, repetitiontype=OPTIONAL"`
	RepoName   *string `parquet:"name=repo_name, type=BYTE_ARRAY, convertedtype=UTF8, repetitiontype=OPTIONAL"`
	OrgLogin   *string `parquet:"name=org_login, type=BYTE_ARRAY, convertedtype=UTF8, repetitiontype=OPTIONAL"`
	IsPublic   *bool   `parquet:"name=is_public, type=BOOLEAN, repetitiontype=OPTIONAL"`
	CreatedAt  *int64  `parquet:"name=created_at, type=INT64, convertedtype=TIMESTAMP_MICROS, repetitiontype=OPTIONAL"`
	PushID     *int64  `parquet:"name=push_id, type=INT64, repetitiontype=OPTIONAL"`
	Size       *int32  `parquet:"name=size, type=INT32, repetitiontype=OPTIONAL"`
	Ref        *string `parquet:"name=ref, type=BYTE_ARRAY, convertedtype=UTF8, encoding=PLAIN_DICTIONARY, repetitiontype=OPTIONAL"`
}

func eventRows(data [][]batch.Vec) []eventRow {
	var rows []eventRow
	for _, cols := range data {
		i64 := func(c, i int) *int64 {
			if cols[c].IsNull(i) {
				return nil
			}
			v := cols[c].I64[i]
			return &v
		}
		str := func(c, i int) *string {
			if cols[c].IsNull(i) {
				return nil
			}
			v := string(cols[c].Bytes(i))
			return &v
		}
		for i := range cols[0].Len {
			yes := true
			row := eventRow{EventID: i64(0, i), Type: str(1, i), ActorID: i64(2, i), ActorLogin: str(3, i), RepoID: i64(4, i),
				RepoName: str(5, i), OrgLogin: str(6, i), IsPublic: &yes, CreatedAt: i64(8, i), PushID: i64(9, i), Ref: str(11, i)}
			if !cols[10].IsNull(i) {
				row.Size = &cols[10].I32[i]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func writeXitongsys(w io.Writer, rows []eventRow, codec xparquet.CompressionCodec) error {
	f, err := xwriter.NewParquetWriterFromWriter(w, new(eventRow), 1)
	if err != nil {
		return err
	}
	f.CompressionType = codec
	f.RowGroupSize = 16 << 20
	for i := range rows {
		if err := f.Write(rows[i]); err != nil {
			return err
		}
	}
	return f.WriteStop()
}

// writeParquetGo drives parquet-go/parquet-go's own column writers.
func writeParquetGo(w io.Writer, data [][]batch.Vec, codec pgo.WriterOption) error {
	group := pgo.Group{}
	for _, f := range eventFields() {
		var n pgo.Node
		switch f.Type.Kind {
		case types.BigInt:
			n = pgo.Leaf(pgo.Int64Type)
		case types.Int:
			n = pgo.Leaf(pgo.Int32Type)
		case types.Boolean:
			n = pgo.Leaf(pgo.BooleanType)
		case types.TimestampLTZ:
			n = pgo.Timestamp(pgo.Microsecond)
		default:
			n = pgo.Encoded(pgo.String(), &pgo.RLEDictionary)
		}
		group[f.Name] = pgo.Optional(n)
	}
	schema := pgo.NewSchema("events", group)
	pw := pgo.NewWriter(w, schema, codec, pgo.PageBufferSize(128<<10))
	index := map[string]int{}
	for i, f := range schema.Fields() {
		index[f.Name()] = i
	}
	rows := 0
	vals := make([]pgo.Value, 0, 8192)
	for _, cols := range data {
		for c, f := range eventFields() {
			at := index[f.Name]
			vals = vals[:0]
			for i := range cols[c].Len {
				switch {
				case cols[c].IsNull(i):
					vals = append(vals, pgo.NullValue().Level(0, 0, at))
				case f.Type.Physical() == types.PhysBytes:
					vals = append(vals, pgo.ByteArrayValue(cols[c].Bytes(i)).Level(0, 1, at))
				case f.Type.Physical() == types.PhysBool:
					vals = append(vals, pgo.BooleanValue(true).Level(0, 1, at))
				case f.Type.Physical() == types.PhysInt32:
					vals = append(vals, pgo.Int32Value(cols[c].I32[i]).Level(0, 1, at))
				default:
					vals = append(vals, pgo.Int64Value(cols[c].I64[i]).Level(0, 1, at))
				}
			}
			if _, err := pw.ColumnWriters()[at].WriteRowValues(vals); err != nil {
				return err
			}
		}
		if rows += cols[0].Len; rows >= 120000 {
			if err := pw.Flush(); err != nil {
				return err
			}
			rows = 0
		}
	}
	return pw.Close()
}

// TestEncodeRatios prints the CPU seconds per million rows of the event
// workload, side by side with the other writers. MILLRACE_BENCH=1 runs it.
func TestEncodeRatios(t *testing.T) {
	if os.Getenv("MILLRACE_BENCH") == "" {
		t.Skip("set MILLRACE_BENCH=1")
	}
	const batches, rows = 100, 4096
	data := events(batches, rows)
	schema, recs := arrowRecords(data)
	fields := eventFields()
	pools := NewPools(0)
	flat := eventRows(data)
	for _, codec := range []struct {
		name string
		ours Compression
		arr  compress.Compression
		xit  xparquet.CompressionCodec
		pgo  pgo.WriterOption
	}{
		{"snappy", Snappy, compress.Codecs.Snappy, xparquet.CompressionCodec_SNAPPY, pgo.Compression(&pgo.Snappy)},
		{"zstd", Zstd, compress.Codecs.Zstd, xparquet.CompressionCodec_ZSTD, pgo.Compression(&pgo.Zstd)},
	} {
		var base float64
		for _, w := range []struct {
			name string
			run  func(io.Writer) error
		}{
			{"parquetfmt", func(w io.Writer) error { return writeOurs(w, fields, data, codec.ours, pools) }},
			{"parquet-go columns", func(w io.Writer) error { return writeParquetGo(w, data, codec.pgo) }},
			{"arrow v15 pqarrow", func(w io.Writer) error { return writeArrow(w, schema, recs, codec.arr) }},
			{"xitongsys", func(w io.Writer) error { return writeXitongsys(w, flat, codec.xit) }},
		} {
			var size int
			best := 1e9
			for range 3 {
				var out bytes.Buffer
				out.Grow(64 << 20)
				start, wall := cpuSeconds(), time.Now()
				if err := w.run(&out); err != nil {
					t.Fatal(w.name, err)
				}
				_ = wall
				best = min(best, cpuSeconds()-start)
				size = out.Len()
			}
			perMillion := best / (batches * rows) * 1e6
			if base == 0 {
				base = perMillion
			}
			fmt.Printf("%-7s %-20s %6.2f CPU s per million rows  %5.1fx  %6.1f MB\n", codec.name, w.name, perMillion, perMillion/base, float64(size)/1e6)
		}
	}
}

func BenchmarkWriteEvents(b *testing.B) {
	data := events(30, 4096)
	fields := eventFields()
	pools := NewPools(0)
	b.ReportAllocs()
	for b.Loop() {
		if err := writeOurs(io.Discard, fields, data, Snappy, pools); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/(30*4096)*1e6, "s/Mrows")
}

func BenchmarkReadEvents(b *testing.B) {
	fields := eventFields()
	var out bytes.Buffer
	if err := writeOurs(&out, fields, events(30, 4096), Snappy, NewPools(0)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			b.Fatal(err)
		}
		cols := make([]batch.Vec, len(fields))
		for g := range f.RowGroups() {
			r, err := f.ReadRowGroup(g, fields)
			if err != nil {
				b.Fatal(err)
			}
			for {
				if _, err := r.Read(cols, 4096); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
			r.Close()
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/(30*4096)*1e6, "s/Mrows")
}
