package filesystem

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// TestPartitionNames: Hive's escaping, the default name for NULL and the empty
// text, and the way back.
func TestPartitionNames(t *testing.T) {
	cols := []connector.Column{column("v", types.NewString()), column("dt", types.NewString())}
	values := map[string]string{ // value to directory
		"2024-05-01":   "dt=2024-05-01",
		"a b":          "dt=a b",
		"a/b:c=d":      "dt=a%2Fb%3Ac%3Dd",
		"100%":         "dt=100%25",
		"中文":           "dt=中文",
		"null":         "dt=null",
		"\x00":         "dt=__HIVE_DEFAULT_PARTITION__",
		"x\x01\x7f\"#": "dt=x%01%7F%22%23",
		"'*?\\{[]^":    "dt=%27%2A%3F%5C%7B%5B%5D%5E",
		"%41":          "dt=%2541",
		"2021-07-21 6": "dt=2021-07-21 6",
	}
	for _, f := range []string{"parquet", "json"} {
		mem := vfs.NewMem()
		c := newConnector(mem)
		table := tableOf(c, cols, []int{1}, map[string]string{"path": "/t", "format": f, keyPolicy: "success-file"})
		var rows [][]string
		for v := range values {
			rows = append(rows, []string{"row " + v, v})
		}
		rows = append(rows, []string{"row empty", ""})
		publishBatch(t, c, table, textBatch(cols, rows...), 1)
		names, err := mem.List("/t")
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, d := range values {
			want = append(want, d)
		}
		want = append(want, stagingDir)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Fatalf("directories\n%q, want\n%q", names, want)
		}
		seen := 0
		for _, b := range readTable(t, c, table, nil) {
			for i := range b.Len {
				v, dt := string(b.Cols[0].Bytes(i)), "\x00"
				if !b.Cols[1].IsNull(i) {
					dt = string(b.Cols[1].Bytes(i))
				}
				if v == "row empty" && dt == "\x00" {
					seen++
					continue
				}
				if v != "row "+dt {
					t.Errorf("%s: %q lies in partition %q", f, v, dt)
				}
				seen++
			}
		}
		if seen != len(rows) {
			t.Errorf("%s: %d rows read of %d", f, seen, len(rows))
		}
	}
}

// A partition column may have a name like a hidden file's: with '_' its directories
// are read, as Spark reads them; with '.' nobody would, so it is refused.
func TestPartitionColumnsLikeHiddenNames(t *testing.T) {
	c := newConnector(vfs.NewMem())
	cols := []connector.Column{column("v", types.NewString()), column("_dt", types.NewString())}
	table := tableOf(c, cols, []int{1}, map[string]string{"path": "/t", "format": "json", keyPolicy: "success-file"})
	publishBatch(t, c, table, textBatch(cols, []string{"a", "x"}, []string{"b", "\x00"}), 1)
	rows := 0
	for _, b := range readTable(t, c, table, nil) {
		rows += b.Len
	}
	if rows != 2 {
		t.Errorf("%d rows are read of 2", rows)
	}
	cols[1].Name = ".dt"
	if _, err := c.OpenSink(t.Context(), tableOf(c, cols, []int{1}, map[string]string{"path": "/u", "format": "json", keyPolicy: "success-file"}), conntest.OwnerOf(1, 1)); err == nil {
		t.Error("column .dt is taken as a partition key")
	}
}

// A row whose partition cannot be a directory is a bad row: its file would never be
// published, and what comes after it would wait for ever.
func TestPartitionNamesThatAreTooLong(t *testing.T) {
	c := newConnector(vfs.NewMem())
	cols := []connector.Column{column("v", types.NewString()), column("dt", types.NewString()), column("k", types.NewString())}
	table := tableOf(c, cols, []int{1, 2}, map[string]string{"path": "/t", "format": "json", keyPolicy: "success-file"})
	s, err := c.OpenSink(t.Context(), table, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := s.OpenWriter(t.Context(), connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Epoch: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	// A name has 255 bytes, 3 of them "dt=".
	values := []string{"x", strings.Repeat("x", 252), strings.Repeat("x", 253), strings.Repeat("/", 84), strings.Repeat("/", 85), "\x00", strings.Repeat("é", 127)}
	rows := make([][]string, len(values))
	for i, v := range values {
		rows[i] = []string{"row", v, "key"}
	}
	rows[4][2] = strings.Repeat("k", 300) // refused once all the same
	b := textBatch(cols, rows...)
	check := func(b *batch.Batch, sel batch.Sel) (out []int32) {
		for _, e := range w.(connector.RowChecker).Check(b, sel, nil) {
			if e.Code != batch.CodeSinkRefused || e.Where != "dt" || len(e.Message) > 400 {
				t.Errorf("row %d: %+v", e.Row, e)
			}
			out = append(out, e.Row)
		}
		return out
	}
	if got, want := check(b, nil), []int32{2, 4, 6}; !slices.Equal(got, want) {
		t.Errorf("rows %v are refused, want %v", got, want)
	}
	if got, want := check(b, batch.Sel{0, 1, 4, 5}), []int32{4}; !slices.Equal(got, want) {
		t.Errorf("rows %v are refused, want %v", got, want)
	}
	// The same, as a dictionary and as a constant.
	dict := &batch.Vec{Type: b.Cols[1].Type, Len: 3, Enc: batch.Dict, Codes: []int32{2, 0, 5}, Dict: &b.Cols[1]}
	if got, want := check(&batch.Batch{Len: 3, Cols: []batch.Vec{b.Cols[0], *dict, b.Cols[1]}}, nil), []int32{0}; !slices.Equal(got, want) {
		t.Errorf("rows %v are refused, want %v", got, want)
	}
	long := textBatch(cols, []string{"row", values[4], "key"})
	for i := range long.Cols {
		long.Cols[i].Enc, long.Cols[i].Len = batch.Const, 2
	}
	long.Len = 2
	if got, want := check(long, nil), []int32{0, 1}; !slices.Equal(got, want) {
		t.Errorf("rows %v are refused, want %v", got, want)
	}
}

// TestTypedPartitions: integer, BOOLEAN and DATE partition columns.
func TestTypedPartitions(t *testing.T) {
	cols := []connector.Column{column("d", types.NewDate()), column("v", types.NewString()), column("h", types.NewInt()), column("ok", types.NewBoolean())}
	s := &batch.Schema{}
	for _, c := range cols {
		s.Fields = append(s.Fields, c.Field)
	}
	b := new(batch.Batch)
	b.Reset(s)
	for i := range b.Cols {
		b.Cols[i].Reset(s.Fields[i].Type, 2)
	}
	copy(b.Cols[0].I32, []int32{-1, 19844})
	b.Cols[1].Data, b.Cols[1].Offsets = []byte("xy"), []int32{0, 1, 2}
	copy(b.Cols[2].I32, []int32{-3, 8})
	b.Cols[3].Bools.Set(1)
	b.Len = 2
	c := newConnector(vfs.NewMem())
	table := tableOf(c, cols, []int{0, 2, 3}, map[string]string{"path": "t", "format": "parquet", keyPolicy: "success-file"})
	as := publishBatch(t, c, table, b, 1)
	if as[0].Header.TablePartition != "d=1969-12-31/h=-3/ok=false" || as[1].Header.TablePartition != "d=2024-05-01/h=8/ok=true" {
		t.Fatalf("partitions %q %q", as[0].Header.TablePartition, as[1].Header.TablePartition)
	}
	// Read in another order and without one column.
	got := readTable(t, c, table, []int{2, 1, 0})
	if len(got) != 2 || got[0].Cols[0].I32[0] != -3 || string(got[0].Cols[1].Bytes(0)) != "x" || got[0].Cols[2].I32[0] != -1 || got[1].Cols[2].I32[0] != 19844 {
		t.Fatalf("read back: %+v", got)
	}
}
