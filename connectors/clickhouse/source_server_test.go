//go:build services

package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// openSource opens a table for reading, with other options.
func openSource(t testing.TB, table *connector.Table, with map[string]string) (*Source, error) {
	t.Helper()
	c := New(vfs.NewOS(), "")
	again := tableOf(t, c, table.Columns, nil, maps.Clone(with))
	again.PrimaryKey = table.PrimaryKey
	s, err := c.OpenSource(context.Background(), again)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { s.Close() })
	return s.(*Source), nil
}

// readTable reads all of a table in the order of its splits.
func readTable(t testing.TB, table *connector.Table, with map[string]string, columns []int) *batch.Batch {
	t.Helper()
	s, err := openSource(t, table, with)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := s.Partitions(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	from, err := s.Start(context.Background(), parts)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := readFrom(t, s, from, columns, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// readFrom reads splits from positions, at most about most rows; positions move.
func readFrom(t testing.TB, s *Source, from []connector.Position, columns []int, most int) (*batch.Batch, []connector.Position, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	splits := make([]connector.Split, len(from))
	for i := range from {
		splits[i] = connector.Split{Number: int32(i), From: from[i], End: connector.Unbounded}
	}
	more := make(chan struct{}, 1)
	r, err := s.Open(ctx, splits, columns, func() {
		select {
		case more <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, from, err
	}
	defer r.Close()
	out := &batch.Batch{}
	out.Reset(s.table.Schema(columns))
	for i := range out.Cols {
		out.Cols[i].Reset(out.Schema.Fields[i].Type, 0)
	}
	var b batch.Batch
	for out.Len < most {
		err := r.Next(ctx, &b, 100, 1<<20)
		switch {
		case errors.Is(err, connector.ErrNoData):
			select {
			case <-more:
			case <-ctx.Done():
				t.Fatal("no data came")
			}
			continue
		case err == io.EOF:
			return out, from, nil
		case err != nil:
			return out, from, err
		}
		for i := range out.Cols {
			if b.Cols[i].HasDeepErrs() {
				for k := range b.Len {
					if e := b.Cols[i].DeepErr(k); e != nil {
						t.Logf("row %d: %s", k, e.Message)
						out.Cols[i].SetErr(out.Len+k, e.Code, e.Where, e.Message)
					}
				}
			}
			out.Cols[i].AppendVec(&b.Cols[i])
			out.Cols[i].PadOffsets()
		}
		out.Len += b.Len
		run := b.Runs[0]
		if run.BaseOffset != from[run.Partition].Offset {
			t.Fatalf("a run of split %d begins at %d, want %d", run.Partition, run.BaseOffset, from[run.Partition].Offset)
		}
		from[run.Partition].Offset = run.EndOffset
	}
	return out, from, nil
}

// fill makes a table of partitions and ranges, with the rows 0 to n-1.
func fill1000(t *testing.T, engine string) *connector.Table {
	t.Helper()
	name := newTable(t)
	ask(t, "CREATE TABLE %s (k Int64, dt Date, s LowCardinality(String), n Nullable(UInt16), big UInt64) ENGINE = %s", name, engine)
	ask(t, "SYSTEM STOP MERGES %s", name)
	for i := range 4 {
		ask(t, "INSERT INTO %s SELECT number, toDate('2024-05-01') + number %% 2, toString(number %% 10), if(number %% 7 = 0, NULL, number %% 1000), 18446744073709551615 - number FROM numbers(%d, 250)", name, i*250)
	}
	return &connector.Table{Name: name, Columns: []connector.Column{field("k", types.NewBigInt().NotNull()), field("dt", types.NewDate()), field("s", types.NewString()),
		field("n", types.NewInt()), field("big", types.NewDecimal(20, 0))}}
}

const dayTable = "MergeTree PARTITION BY dt ORDER BY s"

// wantKeys compares the numbers of column c with those that are wanted, in any order.
func wantKeys(t *testing.T, b *batch.Batch, want func(k int64) bool) {
	t.Helper()
	seen := map[int64]bool{}
	for i := range b.Len {
		k := b.Cols[0].I64[i]
		if seen[k] || !want(k) {
			t.Errorf("row %d is there twice, or should not be", k)
		}
		seen[k] = true
	}
	for k := range int64(1000) {
		if want(k) && !seen[k] {
			t.Errorf("row %d is missing", k)
		}
	}
}

func TestReadRanges(t *testing.T) {
	table := fill1000(t, dayTable)
	every := func(int64) bool { return true }
	for name, c := range map[string]struct {
		with  map[string]string
		parts int
		want  func(k int64) bool
	}{
		"partitions":       {nil, 2, every},
		"ranges":           {map[string]string{keyRangeColumn: "k", keyRanges: "3"}, 6, every},
		"ranges with NULL": {map[string]string{keyRangeColumn: "n", keyRanges: "7"}, 14, every},
		"more than values": {map[string]string{keyRangeColumn: "k", keyRanges: "5", keyFilter: "k < 2"}, 2, func(k int64) bool { return k < 2 }},
		"bounds":           {map[string]string{keyRangeColumn: "k", keyRanges: "4", keyRangeLower: "-3", keyRangeUpper: "499"}, 8, func(k int64) bool { return k <= 499 }},
		"a filter":         {map[string]string{keyFilter: "dt = '2024-05-02' AND s IN ('1', '3')"}, 1, func(k int64) bool { return k%10 == 1 || k%10 == 3 }},
		"nothing":          {map[string]string{keyFilter: "0"}, 0, func(int64) bool { return false }},
		"by HTTP":          {map[string]string{keyRangeColumn: "k", keyRanges: "3", "url": shared.WebURL()}, 6, every},
	} {
		t.Run(name, func(t *testing.T) {
			with := map[string]string{"table-name": table.Name}
			maps.Copy(with, c.with)
			s, err := openSource(t, table, with)
			if err != nil {
				t.Fatal(err)
			}
			parts, err := s.Partitions(context.Background())
			if err != nil || len(parts) != c.parts {
				t.Fatalf("%d ranges (%v), want %d", len(parts), err, c.parts)
			}
			from, err := s.Start(context.Background(), parts)
			if err != nil {
				t.Fatal(err)
			}
			b, _, err := readFrom(t, s, from, nil, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			wantKeys(t, b, c.want)
			for i := range b.Len {
				k := b.Cols[0].I64[i]
				n, want := b.Cols[3].Text(i), fmt.Sprint(k)
				if k%7 == 0 {
					want = "NULL"
				}
				if big := b.Cols[4].Text(i); n != want || big != fmt.Sprint(uint64(math.MaxUint64)-uint64(k)) {
					t.Errorf("row %d has %s and %s", k, n, big)
				}
			}
		})
	}
	t.Run("no column", func(t *testing.T) {
		if b := readTable(t, table, map[string]string{"table-name": table.Name}, []int{}); b.Len != 1000 {
			t.Errorf("%d rows were counted", b.Len)
		}
	})
}

// A reading that is broken off anywhere goes on with the very next row, however the
// server has merged the parts meanwhile; rows that came later are not in it.
func TestReadAgain(t *testing.T) {
	table := fill1000(t, dayTable)
	with := map[string]string{"table-name": table.Name}
	s, err := openSource(t, table, with)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	parts, err := s.Partitions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	start, err := s.Start(ctx, parts)
	if err != nil {
		t.Fatal(err)
	}
	whole, _, err := readFrom(t, s, slices.Clone(start), []int{0}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	one, from, err := readFrom(t, s, slices.Clone(start), []int{0}, 150)
	if err != nil {
		t.Fatal(err)
	}
	// Merged, and no later block with an earlier one: the old rows are still told apart.
	ask(t, "SYSTEM START MERGES %s", table.Name)
	ask(t, "OPTIMIZE TABLE %s FINAL", table.Name)
	ask(t, "SYSTEM STOP MERGES %s", table.Name)
	ask(t, "INSERT INTO %s SELECT 5000, '2024-05-01', 'late', 1, 1", table.Name)
	two, _, err := readFrom(t, s, slices.Clone(from), []int{0}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if one.Len+two.Len != whole.Len {
		t.Fatalf("%d and %d rows, want %d", one.Len, two.Len, whole.Len)
	}
	for i := range whole.Len {
		got := &one.Cols[0]
		at := i
		if i >= one.Len {
			got, at = &two.Cols[0], i-one.Len
		}
		if got.I64[at] != whole.Cols[0].I64[i] {
			t.Fatalf("row %d is %d, was %d", i, got.I64[at], whole.Cols[0].I64[i])
		}
	}
	// Another process lists the partition that is as it was, and says so of the other.
	again, err := openSource(t, table, with)
	if err != nil {
		t.Fatal(err)
	}
	faults, err := again.Check(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	var mismatch *connector.MismatchError
	if !errors.As(faults[0], &mismatch) || faults[1] != nil {
		t.Errorf("saved positions: %v", faults)
	}
	// Merged with a later block: an error, and no row.
	ask(t, "SYSTEM START MERGES %s", table.Name)
	ask(t, "OPTIMIZE TABLE %s FINAL", table.Name)
	b, _, err := readFrom(t, s, slices.Clone(from), []int{0}, 1<<30)
	if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "merged") || b.Len != 0 {
		t.Errorf("%d rows of a partition that was merged with later rows: %v", b.Len, err)
	}
	// Altered rows.
	table = fill1000(t, dayTable)
	with["table-name"] = table.Name
	if s, err = openSource(t, table, with); err != nil {
		t.Fatal(err)
	}
	if parts, err = s.Partitions(ctx); err != nil {
		t.Fatal(err)
	}
	ask(t, "SYSTEM START MERGES %s", table.Name)
	ask(t, "ALTER TABLE %s UPDATE big = 1 WHERE 1 SETTINGS mutations_sync = 1", table.Name)
	start, err = s.Start(ctx, parts)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = readFrom(t, s, start, []int{0}, 1<<30); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "altered") {
		t.Errorf("altered rows: %v", err)
	}
}

// The answer is cut off in the middle: the reader says so, and what it gave is right.
func TestReadCutOff(t *testing.T) {
	table := fill1000(t, "MergeTree ORDER BY k")
	s, err := openSource(t, table, map[string]string{"table-name": table.Name})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := s.Partitions(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	from, err := s.Start(context.Background(), parts)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := services.StartProxy(shared.Direct())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	s.server.opts.addr.hosts = []string{proxy.Addr()} // of what is read; questions go past it
	proxy.Break(services.Fault{Kind: services.LoseReply, After: 100})
	if b, _, err := readFrom(t, s, slices.Clone(from), nil, 1<<30); err == nil || b.Len != 0 {
		t.Errorf("%d rows, %v", b.Len, err)
	}
	b, _, err := readFrom(t, s, from, nil, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, b, func(int64) bool { return true })
}

// Values that the declared type cannot hold are errors of their rows.
func TestReadValuesThatDoNotFit(t *testing.T) {
	name := newTable(t)
	ask(t, "CREATE TABLE %s (n UInt8, big UInt64, huge Int256, f Float64, at DateTime64(3, 'UTC'), s String, raw String, bits UInt8, d Decimal(9, 3)) ENGINE = MergeTree ORDER BY n", name)
	ask(t, "INSERT INTO %s VALUES (0, 7, -7, 2, '2024-05-01 08:00:00.000', 'abc', 'x', 1, 1.500)", name)
	ask(t, "INSERT INTO %s SELECT 1, 18446744073709551615, toInt256('170141183460469231731687303715884105728'), 2.5, '2024-05-01 08:00:00.001', 'abcd', unhex('ff'), 2, 1.501", name)
	table := &connector.Table{Columns: []connector.Column{field("big", types.NewBigInt()), field("huge", types.NewDecimal(38, 0)), field("f", types.NewInt()), field("at", types.NewTimestampLTZ(0)),
		field("s", types.NewVarchar(3)), field("raw", types.NewString()), field("bits", types.NewBoolean()), field("d", types.NewDecimal(9, 2)), field("n", types.NewInt())}}
	b := readTable(t, table, map[string]string{"table-name": name}, nil)
	if b.Len != 2 {
		t.Fatalf("%d rows", b.Len)
	}
	good, bad := 0, 1
	if b.Cols[8].I32[0] == 1 {
		good, bad = 1, 0
	}
	want := []string{"7", "-7", "2", "2024-05-01 08:00:00", "abc", "x", "TRUE", "1.50"}
	for i, w := range want {
		v := &b.Cols[i]
		if v.Err(good) != nil || !strings.EqualFold(v.Text(good), w) && !strings.HasPrefix(v.Text(good), w) {
			t.Errorf("column %s: %s, %v, want %s", table.Columns[i].Name, v.Text(good), v.Err(good), w)
		}
		if e := v.Err(bad); e == nil || e.Where != table.Columns[i].Name {
			t.Errorf("column %s: %s is no error (%v)", table.Columns[i].Name, v.Text(bad), e)
		}
	}
	for text, c := range map[string]*connector.Table{
		"no such column": {Columns: []connector.Column{field("nope", types.NewInt())}},
		"cannot be read": {Columns: []connector.Column{field("s", types.NewInt())}},
	} {
		if _, err := openSource(t, c, map[string]string{"table-name": name}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	memory := newTable(t)
	ask(t, "CREATE TABLE %s (n Int32) ENGINE = Memory", memory)
	if _, err := openSource(t, &connector.Table{Columns: []connector.Column{field("n", types.NewInt())}}, map[string]string{"table-name": memory}); err == nil || !strings.Contains(err.Error(), "pinned") {
		t.Errorf("a table without parts: %v", err)
	}
}

// daysOf wants the partitions of some days.
type daysOf []string

func (d daysOf) String() string { return fmt.Sprint([]string(d)) }

func (d daysOf) Wanted(b *batch.Batch) bool { return slices.Contains(d, b.Cols[0].Text(0)) }

// Partitions that the query does not ask for are not listed.
func TestReadPruned(t *testing.T) {
	table := fill1000(t, dayTable)
	c := New(vfs.NewOS(), "")
	by := func(column int) *connector.Table {
		return tableOf(t, c, table.Columns, []int{column}, map[string]string{"table-name": table.Name})
	}
	opened, err := c.OpenSource(context.Background(), by(1))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s := opened.(*Source)
	s.Prune(daysOf{"2024-05-02"})
	parts, err := s.Partitions(context.Background())
	if err != nil || len(parts) != 1 || !strings.HasSuffix(parts[0].Topic, "/20240502") {
		t.Fatalf("%v, %v", parts, err)
	}
	from, err := s.Start(context.Background(), parts)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := readFrom(t, s, from, nil, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, b, func(k int64) bool { return k%2 == 1 })
	if _, err := c.OpenSource(context.Background(), by(2)); err == nil || !strings.Contains(err.Error(), "PARTITIONED BY") {
		t.Errorf("another partition key: %v", err)
	}
}
