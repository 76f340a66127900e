package filesystem

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// world is a table on a filesystem in memory, with faults in front of it.
type world struct {
	*conntest.Faulty
	format      string
	compression string // sink.compression
	mem         *vfs.MemFS
	conn        *Connector
}

func newWorld(mem *vfs.MemFS, format string) *world {
	return newCompressedWorld(mem, format, compressionNone)
}

func newCompressedWorld(mem *vfs.MemFS, format, compression string) *world {
	w := &world{format: format, compression: compression, mem: mem, Faulty: conntest.NewFaulty()}
	w.conn = New(vfs.NewFault(mem, w), nil, jsonfmt.Format{}, csvfmt.Format{})
	return w
}

func (w *world) AfterCrash(seed uint64) conntest.FaultWorld {
	return newCompressedWorld(w.mem.CrashClone(conntest.PowerCut(seed)), w.format, w.compression)
}

func (w *world) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table(), o)
}

func (w *world) table() *connector.Table {
	return tableOf(w.conn, conntest.Columns(), []int{2}, map[string]string{"path": "/lake/t", "format": w.format, keyCompression: w.compression, keyPolicy: "success-file"})
}

// tableOf makes a table with checked options.
func tableOf(c *Connector, cols []connector.Column, keys []int, with map[string]string) *connector.Table {
	if with["connector"] == "" {
		with["connector"] = "filesystem"
	}
	v, errs := c.Spec().Resolve(with)
	if len(errs) > 0 {
		panic(errs[0])
	}
	return &connector.Table{Name: "t", Columns: cols, PartitionKeys: keys, Options: v, Zone: time.UTC}
}

// Visible reads the table back through the source, past the faults.
func (w *world) Visible(t testing.TB) []int64 {
	t.Helper()
	c := New(w.mem, nil, jsonfmt.Format{}, csvfmt.Format{})
	var ids []int64
	for _, b := range readTable(t, c, w.table(), nil) {
		ids = append(ids, b.Cols[0].I64[:b.Len]...)
	}
	return ids
}

// openTable opens a table as a source: its partitions, and where each begins and ends.
func openTable(t testing.TB, c *Connector, table *connector.Table) (s connector.Source, parts []connector.Partition, from []connector.Position, ends []int64) {
	t.Helper()
	ctx := context.Background()
	s, err := c.OpenSource(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	if parts, err = s.Partitions(ctx); err == nil {
		if from, err = s.Start(ctx, parts); err == nil {
			ends, err = s.End(ctx, parts)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, parts, from, ends
}

// readTable reads all splits of a table; every batch is a new one.
func readTable(t testing.TB, c *Connector, table *connector.Table, columns []int) []*batch.Batch {
	t.Helper()
	ctx := context.Background()
	s, parts, from, ends := openTable(t, c, table)
	defer s.Close()
	var splits []connector.Split
	for i := range parts {
		splits = append(splits, connector.Split{Number: int32(i), From: from[i], End: ends[i]})
	}
	r, err := s.Open(ctx, splits, columns, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []*batch.Batch
	next := map[int32]int64{}
	for _, sp := range splits {
		next[sp.Number] = sp.From.Offset
	}
	for {
		b := new(batch.Batch)
		err := r.Next(ctx, b, 7, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range b.Runs {
			if run.BaseOffset != next[run.Partition] || run.EndOffset <= run.BaseOffset {
				t.Fatalf("split %d: a run from %d to %d after %d", run.Partition, run.BaseOffset, run.EndOffset, next[run.Partition])
			}
			next[run.Partition] = run.EndOffset
		}
		out = append(out, b)
	}
	for i, sp := range splits {
		if next[sp.Number] != ends[i] {
			t.Fatalf("split %d ends at %d, want %d", i, next[sp.Number], ends[i])
		}
	}
	return out
}

// TestAcceptance runs the suite for sinks over each format.
func TestAcceptance(t *testing.T) {
	for _, f := range []string{"parquet", "json", "csv"} {
		t.Run(f, func(t *testing.T) {
			conntest.RunSink(t, func(testing.TB) conntest.World { return newWorld(vfs.NewMem(), f) })
		})
	}
}

// TestAcceptanceCompressed runs the same suite over compressed text.
func TestAcceptanceCompressed(t *testing.T) {
	for f, compression := range map[string]string{"json": compressionZstd, "csv": compressionGzip} {
		t.Run(f+" "+compression, func(t *testing.T) {
			conntest.RunSink(t, func(testing.TB) conntest.World { return newCompressedWorld(vfs.NewMem(), f, compression) })
		})
	}
}

// ReplaceMode implements conntest.ReplaceWorld.
func (w *world) ReplaceMode() connector.ReplaceMode {
	mode, _ := w.conn.ReplaceMode(w.table())
	return mode
}

// TestReplacing runs the suite for sinks that replace partitions.
func TestReplacing(t *testing.T) {
	conntest.RunReplacer(t, func(testing.TB) conntest.ReplaceWorld { return newWorld(vfs.NewMem(), "json") })
}
