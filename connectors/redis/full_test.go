package redis

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

func whole(more ...string) map[string]string {
	with := map[string]string{"lookup.cache": "FULL"}
	for i := 0; i < len(more); i += 2 {
		with[more[i]] = more[i+1]
	}
	return with
}

// TestWholeTable: every type is read from a whole table as it was written, by any
// column, with one scan for all lookups.
func TestWholeTable(t *testing.T) {
	for _, typ := range []string{typeHash, typeString} {
		t.Run(typ, func(t *testing.T) {
			columns, objects := everyType()
			server := newFake(t)
			d := newDim(t, server, columns, []int{0}, whole("data-type", typ, "key", "every:{id}"))
			b := rowsOf(t, columns, objects...)
			d.write(b)
			var all []int
			for c := range columns {
				all = append(all, c)
			}
			want := make([][]string, b.Len+1)
			for i := range b.Len {
				want[i] = []string{text(b.Cols, i)}
			}
			l := d.open([]int{0}, all)
			asked := rowsOf(t, columns[:1], `{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`)
			server.asked = map[string]int{}
			d.expect(l, asked, []int{0}, want...)
			d.expect(l, asked, []int{0}, want...)
			if server.asked["SCAN"] != 2 { // three keys, two an answer
				t.Errorf("it was asked for %v", server.asked)
			}
			// No key of the server is made of the column alone.
			d.expect(d.open([]int{10}, []int{0}), b, []int{10}, []string{"1"}, []string{"2"}, []string{"3"})
		})
	}
}

// TestNamesOfKeys: names that a row of the table would not be written under are no rows.
func TestNamesOfKeys(t *testing.T) {
	server := newFake(t)
	columns := []connector.Column{column("town", types.NewString()), column("no", types.NewInt()), column("name", types.NewString())}
	d := newDim(t, server, columns, []int{0, 1}, whole("data-type", "string", "value-format", "plain", "key", "h[*]:{town}/{no}.x"))
	d.write(rowsOf(t, columns, `{"town":"a:b","no":1,"name":"one"}`, `{"town":"","no":-20,"name":"two"}`))
	for _, name := range []string{"h[*]:a/01.x", "h[*]:a/1", "h[*]:a/b.x", "h[*]:a.x", "h*:a/1.x", "other", "h[*]:a/b/1.x", "h[*]:\xff/1.x", "h[*]:a/+1.x"} {
		server.keys[name] = "no row"
	}
	server.keys["h[*]:s/x.x"] = set{"no row either": true}
	l := d.open([]int{0, 1}, []int{2})
	d.expect(l, rowsOf(t, columns, `{"town":"a:b","no":1}`, `{"town":"","no":-20}`, `{"town":"a","no":1}`, `{"town":"a/b","no":1}`), []int{0, 1},
		[]string{"one"}, []string{"two"}, nil, nil)
	// A key of the table's that holds another type is said, as for a single key.
	server.keys["h[*]:a/7.x"] = set{"x": true}
	if _, err := found(d.open([]int{0, 1}, []int{2}), rowsOf(t, columns, `{"town":"a","no":8}`).Cols[:2]...); err == nil || !strings.Contains(err.Error(), `key "h[*]:a/7.x" holds another type than string`) {
		t.Errorf("another type: %v", err)
	}
	// Fences are not the table's.
	d = newDim(t, newFake(t), columns[:1:1], []int{0}, whole("data-type", "set", "key", "all"))
	d.write(rowsOf(t, columns[:1], `{"town":"a"}`, `{"town":"b"}`))
	d.expect(d.open([]int{0}, []int{0}), rowsOf(t, columns[:1], `{"town":"b"}`, `{"town":"c"}`), []int{0}, []string{"b"}, nil)
	server = newFake(t)
	d = newDim(t, server, []connector.Column{columns[0], columns[2]}, []int{0}, whole("data-type", "string", "value-format", "plain", "key", "{town}"))
	d.write(rowsOf(t, d.columns, `{"town":"a","name":"one"}`))
	server.keys[fencePrefix+"job"] = "1:1:1:x"
	d.expect(d.open([]int{1}, []int{0}), rowsOf(t, d.columns, `{"town":"","name":"one"}`, `{"town":"","name":"1:1:1:x"}`), []int{1}, []string{"a"}, nil)
}

// TestMembersOfAWholeTable: with and without their key among the columns of the join.
func TestMembersOfAWholeTable(t *testing.T) {
	columns := []connector.Column{column("room", types.NewString()), column("uid", types.NewInt()), column("pts", types.NewDouble())}
	d := newDim(t, newFake(t), columns, []int{0, 1}, whole("data-type", "zset", "score", "pts", "key", "in:{room}"))
	b := rowsOf(t, columns, `{"room":"a","uid":1,"pts":0.5}`, `{"room":"a","uid":2,"pts":1}`, `{"room":"b","uid":2,"pts":-1}`)
	d.write(b)
	d.expect(d.open([]int{0}, []int{1, 2}), rowsOf(t, columns, `{"room":"a","uid":0}`, `{"room":"c","uid":0}`), []int{0}, []string{"1|0.5", "2|1.0"}, nil)
	d.expect(d.open([]int{1}, []int{0}), rowsOf(t, columns, `{"room":"","uid":2}`), []int{1}, []string{"a", "b"})
	d.expect(d.open([]int{1, 0}, []int{2}), rowsOf(t, []connector.Column{columns[1], columns[0]}, `{"room":"b","uid":2}`, `{"room":"b","uid":1}`), []int{0, 1}, []string{"-1.0"}, nil)
}

// TestWholeTableFails: what goes wrong while it is read is no table, and it is read again.
func TestWholeTableFails(t *testing.T) {
	server := newFake(t)
	columns := []connector.Column{column("uid", types.NewInt()), column("name", types.NewString())}
	d := newDim(t, server, columns, []int{0}, whole("key", "u:{uid}"))
	b := rowsOf(t, columns, `{"uid":1,"name":"one"}`, `{"uid":2,"name":"two"}`, `{"uid":3,"name":"three"}`)
	d.write(b)
	l := d.open([]int{0}, []int{1})
	for _, fail := range []string{"SCAN", "HMGET"} {
		server.fail[fail] = "LOADING Redis is loading the dataset in memory"
		if _, err := found(l, b.Cols[0]); err == nil || !strings.Contains(err.Error(), "the server loads its data") {
			t.Errorf("%s fails: %v", fail, err)
		}
		server.cut = fail
		if got, err := found(l, b.Cols[0]); err == nil {
			t.Errorf("%s without an answer: %q", fail, got)
		}
	}
	d.expect(l, b, []int{0}, []string{"one"}, []string{"two"}, []string{"three"})
	small := newDim(t, server, columns, []int{0}, whole("key", "u:{uid}", fullcache.KeyMaxBytes, "64"))
	var big *fullcache.TooBigError
	if _, err := found(small.open([]int{0}, []int{1}), b.Cols[0]); !errors.As(err, &big) || big.Max != 64 {
		t.Errorf("too big: %v", err)
	}
}
