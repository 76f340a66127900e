//go:build services

package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// found looks keys up and gives the texts of the rows of each.
func found(t *testing.T, l connector.Lookup, cols ...*batch.Vec) [][]string {
	t.Helper()
	keys := &connector.LookupKeys{Hashes: make([]uint64, cols[0].Len)}
	for _, c := range cols {
		keys.Cols = append(keys.Cols, *c)
	}
	batch.HashRows(keys.Hashes, cols, nil)
	var f connector.Found
	if err := l.Find(context.Background(), keys, &f); err != nil {
		t.Fatal(err)
	}
	out := make([][]string, keys.Len())
	for k := range out {
		for _, r := range f.Sel[f.First[k]:f.First[k+1]] {
			out[k] = append(out[k], f.Rows.Cols[0].Text(int(r)))
		}
		slices.Sort(out[k])
	}
	return out
}

func TestLookup(t *testing.T) {
	name := newTable(t)
	ask(t, "CREATE TABLE %s (n Int32, s String, d Decimal(9, 2), day Date, e Enum8('a' = 1, 'b' = 2), u Nullable(UInt8), id UUID, v LowCardinality(String)) ENGINE = MergeTree ORDER BY n", name)
	ask(t, `INSERT INTO %s VALUES (1, 'it\'s', 1.50, '2024-05-01', 'a', 7, '61f0c404-5cb3-11e7-907b-a6006ad3dba0', 'one'), (1, 'it\'s', 1.50, '2024-05-01', 'a', NULL, '61f0c404-5cb3-11e7-907b-a6006ad3dba0', 'uno'), (2, 'b\\', -2, '1970-01-01', 'b', 0, '00000000-0000-0000-0000-000000000000', 'two')`, name)
	ask(t, "INSERT INTO %s (n, s, v) SELECT number + 1000, toString(number), concat('v', toString(number)) FROM numbers(20000)", name)
	columns := []connector.Column{field("n", types.NewBigInt()), field("s", types.NewString()), field("d", types.NewDecimal(10, 3)), field("day", types.NewDate()), field("e", types.NewString()),
		field("u", types.NewInt()), field("id", types.NewString()), field("v", types.NewString())}
	open := func(t *testing.T, with map[string]string, keys ...int) (connector.Lookup, error) {
		t.Helper()
		c := New(vfs.NewOS(), "")
		all := map[string]string{"table-name": name}
		maps.Copy(all, with)
		l, err := c.OpenLookup(context.Background(), tableOf(t, c, columns, nil, all), keys, []int{7})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return l, err
	}
	one, two := []string{"one", "uno"}, []string{"two"}
	for i, c := range []struct {
		keys []int
		cols []*batch.Vec
		want [][]string
	}{
		{[]int{0}, []*batch.Vec{vec(t, columns[0].Type, 2, 1, 3, 1<<40)}, [][]string{two, one, nil, nil}},
		{[]int{1}, []*batch.Vec{vec(t, columns[1].Type, "b\\", "it's", "its", "x' OR 1 OR '")}, [][]string{two, one, nil, nil}},
		{[]int{2}, []*batch.Vec{vec(t, columns[2].Type, "-2.000", "1.500", "1.501", "1234567.000")}, [][]string{two, one, nil, nil}},
		{[]int{3}, []*batch.Vec{vec(t, columns[3].Type, "2024-05-01", "1969-12-31", "2024-05-02")}, [][]string{one, nil, nil}},
		{[]int{4, 0}, []*batch.Vec{vec(t, columns[4].Type, "a", "b", "c"), vec(t, columns[0].Type, 1, 2, 1)}, [][]string{one, two, nil}},
		{[]int{5, 6}, []*batch.Vec{vec(t, columns[5].Type, 7, 0, 300), vec(t, columns[6].Type, "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "00000000-0000-0000-0000-000000000000", "nothing")},
			[][]string{{"one"}, two, nil}},
	} {
		for protocol, url := range protocols() {
			t.Run(fmt.Sprintf("key %d/%s", i, protocol), func(t *testing.T) {
				l, err := open(t, map[string]string{"url": url}, c.keys...)
				if err != nil {
					t.Fatal(err)
				}
				if got := found(t, l, c.cols...); fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("found %q, want %q", got, c.want)
				}
			})
		}
	}
	t.Run("many keys", func(t *testing.T) {
		l, err := open(t, map[string]string{"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": "15000"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var ks []any
		for k := range 10_000 {
			ks = append(ks, 1000+2*k)
		}
		for range 2 {
			for k, got := range found(t, l, vec(t, columns[0].Type, ks...)) {
				if len(got) != 1 || got[0] != fmt.Sprintf("v%d", 2*k) {
					t.Fatalf("key %d has %q", ks[k], got)
				}
			}
			// What is kept needs no server.
			shared.Proxy.Refuse(true)
		}
		shared.Proxy.Refuse(false)
	})
	t.Run("filter", func(t *testing.T) {
		l, err := open(t, map[string]string{keyFilter: "v != 'uno'"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := found(t, l, vec(t, columns[0].Type, 1)); fmt.Sprint(got) != "[[one]]" {
			t.Errorf("found %q", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		columns[2].Type = types.NewDouble()
		if _, err := open(t, nil, 2); err == nil || !strings.Contains(err.Error(), "not_yet") {
			t.Errorf("a key of type DOUBLE: %v", err)
		}
	})
}

// TestLookupOfWholeTable: the table is read whole, by any key, and again after the
// interval; a reading that was cut off is none; another is made by the next lookup.
func TestLookupOfWholeTable(t *testing.T) {
	name := newTable(t)
	ask(t, "CREATE TABLE %s (n Int32, at DateTime64(3, 'UTC'), x Float64, v Nullable(String)) ENGINE = MergeTree ORDER BY n", name)
	const n = 150_000
	ask(t, "INSERT INTO %s SELECT number, toDateTime64('2024-05-01 00:00:00', 3, 'UTC') + number %% 2, number / 4, if(number %% 3 = 0, NULL, concat('v', toString(number))) FROM numbers(%d)", name, n)
	columns := []connector.Column{field("n", types.NewInt()), field("at", types.NewTimestamp(3)), field("x", types.NewDouble()), field("v", types.NewString())}
	open := func(t *testing.T, with map[string]string, keys ...int) connector.Lookup {
		t.Helper()
		c := New(vfs.NewOS(), "")
		all := map[string]string{"table-name": name, "lookup.cache": "FULL"}
		maps.Copy(all, with)
		l, err := c.OpenLookup(context.Background(), tableOf(t, c, columns, nil, all), keys, []int{3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	proxies := map[string]*services.Proxy{"native": shared.Proxy, "http": shared.Web}
	fails := func(t *testing.T, l connector.Lookup) error {
		t.Helper()
		keys := &connector.LookupKeys{Cols: []batch.Vec{*vec(t, columns[0].Type, 1)}, Hashes: make([]uint64, 1)}
		batch.HashRows(keys.Hashes, []*batch.Vec{&keys.Cols[0]}, nil)
		var f connector.Found
		err := l.Find(context.Background(), keys, &f)
		if err == nil {
			t.Error("a table was read although its answer was not whole")
		}
		return err
	}
	for protocol, url := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			l := open(t, map[string]string{"url": url}, 2, 0)
			for range 2 {
				if got := found(t, l, vec(t, columns[2].Type, 0.25, 0.25, 0.5, 0.0), vec(t, columns[0].Type, 1, 2, 2, 0)); fmt.Sprint(got) != "[[v1] [] [v2] [NULL]]" {
					t.Errorf("found %q", got)
				}
				// What is kept needs no server.
				proxies[protocol].Refuse(true)
			}
			proxies[protocol].Refuse(false)
			if !l.Local() {
				t.Error("it would wait for the server")
			}
		})
		t.Run("cut off, "+protocol, func(t *testing.T) {
			l := open(t, map[string]string{"url": url}, 0)
			before, _ := proxies[protocol].Struck()
			proxies[protocol].Break(services.Fault{Kind: services.LoseReply, After: 1})
			_ = fails(t, l)
			if after, _ := proxies[protocol].Struck(); after != before+1 {
				t.Errorf("%d faults befell it", after-before)
			}
			if got := found(t, l, vec(t, columns[0].Type, n-2, n-1, n)); fmt.Sprint(got) != fmt.Sprintf("[[v%d] [v%d] []]", n-2, n-1) {
				t.Errorf("found %q", got)
			}
		})
		t.Run("the server gives up in the middle, "+protocol, func(t *testing.T) {
			_ = fails(t, open(t, map[string]string{"url": url, keyFilter: fmt.Sprintf("throwIf(n = %d, 'enough') = 0", n-10)}, 0))
		})
	}
	t.Run("by time, with a filter", func(t *testing.T) {
		l := open(t, map[string]string{keyFilter: "n < 10 AND n > 2"}, 1)
		if got := found(t, l, vec(t, columns[1].Type, "2024-05-01 00:00:01.000", "2024-05-01 00:00:02.000")); fmt.Sprint(got) != "[[NULL NULL v5 v7] []]" {
			t.Errorf("found %q", got)
		}
	})
	t.Run("again after the interval", func(t *testing.T) {
		l := open(t, map[string]string{keyFilter: "n >= 1000000", "lookup.full-cache.periodic-reload.interval": "1 ms"}, 0)
		look := func() string { return fmt.Sprint(found(t, l, vec(t, columns[0].Type, 1_000_000))) }
		if got := look(); got != "[[]]" {
			t.Errorf("found %s before it was there", got)
		}
		ask(t, "INSERT INTO %s VALUES (1000000, '2024-05-01 00:00:00', 0, 'new')", name)
		for deadline := time.Now().Add(time.Minute); look() != "[[new]]"; {
			if time.Now().After(deadline) {
				t.Fatal("what is new is not seen")
			}
		}
	})
	t.Run("too big", func(t *testing.T) {
		l := open(t, map[string]string{"lookup.full-cache.max-bytes": "1 MB"}, 0)
		var big *fullcache.TooBigError
		if err := fails(t, l); !errors.As(err, &big) {
			t.Errorf("a table beyond its bound: %v", err)
		}
	})
}
