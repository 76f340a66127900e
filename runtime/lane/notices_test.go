package lane

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/ledger"
)

func TestStartLines(t *testing.T) {
	at := func(p int32, o int64, from string) savedCursor {
		return savedCursor{Cursor: ledger.Cursor{Partition: p, Offset: o}, from: from}
	}
	many := []savedCursor{}
	for p := range int32(12) {
		many = append(many, at(p, int64(p*10), "ledger"))
	}
	for _, c := range []struct {
		cs   []savedCursor
		want []string
	}{
		{[]savedCursor{at(3, 7, "ledger")}, []string{"table t: topic x partition 3 from offset 7 (ledger)"}},
		{[]savedCursor{at(0, 0, "start"), at(1, 0, "start"), at(2, 0, "start"), at(5, 0, "start")},
			[]string{"table t: topic x partitions 0-2, 5 from offset 0 (start)"}},
		{[]savedCursor{at(0, 4, "ledger"), at(1, 0, "start"), at(2, 9, "ledger")},
			[]string{"table t: topic x partitions 0, 2 from offsets 4, 9 (ledger)", "table t: topic x partition 1 from offset 0 (start)"}},
		{many, []string{"table t: topic x partitions 0-11 from offsets 0, 10, 20, 30, 40, 50, 60, 70 and 4 more (ledger)"}},
		{nil, []string{}},
	} {
		if got := startLines("t", "x", c.cs); !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
