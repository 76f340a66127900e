//go:build services

package clickhouse

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// benchColumns are 15 columns of about 750 bytes a row.
const benchColumns = "a UInt64, b UInt64, ts DateTime('UTC'), c Int32, d Int32, e Float64, f UInt16, " +
	"s1 String, s2 String, s3 String, s4 String, s5 String, s6 String, s7 String, s8 String"

var benchTexts = [...]int{36, 120, 120, 130, 15, 2, 20, 255}

// benchRows makes n rows of a shape.
func benchRows(t testing.TB, n int) (*batch.Batch, []connector.Column) {
	names := strings.Split("a b ts c d e f s1 s2 s3 s4 s5 s6 s7 s8", " ")
	typs := []types.Type{types.NewBigInt(), types.NewBigInt(), types.NewTimestampLTZ(0), types.NewInt(), types.NewInt(), types.NewDouble(), types.NewInt()}
	for range benchTexts {
		typs = append(typs, types.NewString())
	}
	b := &batch.Batch{Len: n}
	var cols []connector.Column
	for i, typ := range typs {
		typ = typ.NotNull()
		cols = append(cols, connector.Column{Field: types.Field{Name: names[i], Type: typ}})
		var values []any
		for row := range n {
			switch {
			case i == 2:
				values = append(values, "2024-05-01 08:00:00")
			case i == 5:
				values = append(values, float64(row)/3)
			case i < 7:
				values = append(values, row%60_000)
			default:
				text := fmt.Sprintf("%d-", row*7919%100_003)
				values = append(values, (text + strings.Repeat("abcdefghij", 30))[:benchTexts[i-7]])
			}
		}
		b.Cols = append(b.Cols, *vec(t, typ, values...))
	}
	return b, cols
}

// processor is the processor time of this process.
func processor(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const (
	benchBatch  = 4096
	benchBlock  = 12 * benchBatch
	benchBlocks = 8
)

// TestInsertRate compares rows through the sink, from columns to acknowledged, with
// the driver alone, in turns.
func TestInsertRate(t *testing.T) {
	if os.Getenv("MILLRACE_BENCH") == "" {
		t.Skip("set MILLRACE_BENCH=1")
	}
	b, cols := benchRows(t, benchBatch)
	for _, compression := range []string{"none", "lz4"} {
		for round := range 3 {
			ours, server := rateOf(t, func(table string) { throughSink(t, b, cols, table, compression) })
			driver, beside := rateOf(t, func(table string) { throughDriver(t, b, table, compression) })
			t.Logf("%s, round %d: sink %.0f rows per core-second (server beside it %.2f us a row), driver alone %.0f (%.2f us)",
				compression, round+1, ours, server, driver, beside)
		}
	}
}

// rateOf gives rows per second of this process's processor time, and the server's
// time in us a row.
func rateOf(t testing.TB, f func(table string)) (rate, serverMicros float64) {
	table := newTable(t)
	ask(t, "CREATE TABLE %s (%s) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100", table, benchColumns)
	before, _, err := shared.Usage()
	if err != nil {
		t.Fatal(err)
	}
	began := processor(t)
	f(table)
	took := processor(t) - began
	after, _, err := shared.Usage()
	if err != nil {
		t.Fatal(err)
	}
	const rows = benchBlock * benchBlocks
	if got := ask(t, "SELECT count() FROM %s", table); got != fmt.Sprint(rows) {
		t.Fatalf("%s rows, want %d", got, rows)
	}
	return rows / took.Seconds(), float64((after - before).Microseconds()) / rows
}

func throughSink(t testing.TB, b *batch.Batch, cols []connector.Column, table, compression string) {
	ctx := context.Background()
	conn := New(vfs.NewOS(), t.TempDir())
	s, err := conn.OpenSink(ctx, tableOf(t, conn, cols, nil, map[string]string{"table-name": table, keyCompression: compression, "url": "clickhouse://" + shared.Direct()}), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Epoch: 1}
	w, err := s.OpenWriter(ctx, connector.Attempt{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var ids []connector.BucketID
	for range benchBlocks {
		for range benchBlock / benchBatch {
			if bad := w.(connector.RowChecker).Check(b, nil, nil); len(bad) > 0 {
				t.Fatal(bad[0].Message)
			}
			if ids, err = w.Buckets(b, nil, ids[:0]); err != nil {
				t.Fatal(err)
			}
			if err := w.Write(b, nil, ids[0]); err != nil {
				t.Fatal(err)
			}
		}
		id.Sequence++
		as, err := w.Seal(ctx, []connector.SealRequest{{Bucket: ids[0], Header: connector.Header{ID: id, Rows: benchBlock}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Publish(ctx, as)[0]; err != nil {
			t.Fatal(err)
		}
		if err := s.(connector.Settler).Settled(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
}

// throughDriver sends the same rows by the driver's column interface; making its
// slices is not what is measured, so that they are made once a block is begun.
func throughDriver(t testing.TB, b *batch.Batch, table, compression string) {
	ctx := context.Background()
	o := &ch.Options{Addr: []string{shared.Direct()}, Auth: ch.Auth{Username: "default"}, FreeBufOnConnRelease: true}
	if compression == "lz4" {
		o.Compression = &ch.Compression{Method: ch.CompressionLZ4}
	}
	conn, err := ch.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cols := driverSlices(b)
	for i := range benchBlocks {
		// Equal blocks without a token are one.
		settings := ch.Settings{"async_insert": 0, "insert_deduplication_token": fmt.Sprint(i)}
		batch, err := conn.PrepareBatch(ch.Context(ctx, ch.WithSettings(settings)), "INSERT INTO "+table+" (a, b, ts, c, d, e, f, s1, s2, s3, s4, s5, s6, s7, s8)")
		if err != nil {
			t.Fatal(err)
		}
		for range benchBlock / benchBatch {
			for i, c := range cols {
				if err := batch.Column(i).Append(c); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := batch.Send(); err != nil {
			t.Fatal(err)
		}
	}
}

// driverSlices are the columns as the driver takes them.
func driverSlices(b *batch.Batch) []any {
	var out []any
	for i := range b.Cols {
		v := &b.Cols[i]
		switch {
		case i < 2:
			xs := make([]uint64, b.Len)
			for k := range xs {
				xs[k] = uint64(v.I64[k])
			}
			out = append(out, xs)
		case i == 2:
			xs := make([]time.Time, b.Len)
			for k := range xs {
				xs[k] = time.UnixMicro(v.I64[k])
			}
			out = append(out, xs)
		case i < 5:
			out = append(out, v.I32)
		case i == 5:
			out = append(out, v.F64)
		case i == 6:
			xs := make([]uint16, b.Len)
			for k := range xs {
				xs[k] = uint16(v.I32[k])
			}
			out = append(out, xs)
		default:
			xs := make([]string, b.Len)
			for k := range xs {
				xs[k] = string(v.Bytes(k))
			}
			out = append(out, xs)
		}
	}
	return out
}
