package operator

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// TestRowsOfOneKeyThatDoNotFit: what needs all rows of a key at once says so when those
// of one are more than there is memory for, and takes as many of many keys.
func TestRowsOfOneKeyThatDoNotFit(t *testing.T) {
	op := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, N: 1, Changes: true, Retracts: true}
	top, err := NewTopN(op, pairSchema, pairSchema)
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewTopN(op, pairSchema, pairSchema)
	if err != nil {
		t.Fatal(err)
	}
	join := pairJoin{kind: graph.LeftJoin}.operator(t, [2]bool{}, 0)
	const rows, batches = 500, 40
	for _, c := range []struct {
		one, many Spilling
		what      string
	}{{top, again, "Top-N"}, {join().(Spilling), join().(Spilling), "a join of streams"}} {
		store := spill.New(vfs.NewMem(), "/spill")
		feed := func(k Spilling, keys int64) error {
			k.SpillTo(store, 1)
			for n := range int64(batches) {
				var in []change
				for i := range int64(rows) {
					in = append(in, change{k: 1 + (n*rows+i)%keys, v: 10 + n*rows + i})
				}
				if err := k.Fold(expr.NewContext(nil, 1), sideOf(0, in), quiet()); err != nil {
					return err
				}
				if err := k.Spill(); err != nil {
					return err
				}
			}
			return nil
		}
		var e *KeySizeError
		if err := feed(c.one, 1); !errors.As(err, &e) || e.Bytes <= e.Limit || !strings.HasPrefix(err.Error(), c.what+" has rows of one key") {
			t.Errorf("%s of one key: %v", c.what, err)
		}
		if err := feed(c.many, rows*batches); err != nil {
			t.Errorf("%s of many keys: %v", c.what, err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBytesOfKeptRows: the places of rows in their order are as long as they are, not as
// that of the first row.
func TestBytesOfKeptRows(t *testing.T) {
	schema := &batch.Schema{Fields: []types.Field{{Name: "v", Type: types.NewBigInt()}}}
	var one batch.Batch
	one.Reset(schema)
	one.Len = 1
	one.Cols[0].Reset(types.NewBigInt(), 1)
	const rows, long = 1000, 10_000
	for _, first := range []bool{true, false} {
		k := newKeptRows(schema, newRowOrder(nil))
		want := int64(0)
		for i := range rows {
			n := 10
			if first == (i == 0) {
				n = long
			}
			k.add(&one, 0, 0, rowPlace{bytes: make([]byte, n), own: int32(n)})
			want += int64(n)
		}
		all := batch.Sel(slotsOf(0, rows, nil))
		for _, kept := range []*keptRows{k, k.take(all)} {
			if got := kept.bytes(); got < want || got > want*3/2+rows*200 {
				t.Errorf("first long %t: %d bytes, %d of places among them", first, got, want)
			}
		}
	}
}
