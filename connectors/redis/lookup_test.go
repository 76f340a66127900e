package redis

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// TestWrittenAndLookedUp: what the sink writes the lookup gives back, value by value.
func TestWrittenAndLookedUp(t *testing.T) {
	for _, typ := range []string{typeHash, typeString} {
		t.Run(typ, func(t *testing.T) {
			columns, objects := everyType()
			if typ == typeString {
				columns = append(columns, column("list", types.NewArray(types.NewInt())))
				objects[0] = strings.Replace(objects[0], "{", `{"list":[1,null,3],`, 1)
			}
			d := newDim(t, newFake(t), columns, []int{0}, map[string]string{"data-type": typ})
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
			asked := rowsOf(t, columns[:1], `{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`)
			d.expect(d.open([]int{0}, all), asked, []int{0}, want...)
			for i := range b.Len {
				want[i] = []string{b.Cols[10].Text(i)}
			}
			d.expect(d.open([]int{0}, []int{10}), asked, []int{0}, want...)
		})
	}
	t.Run("plain", func(t *testing.T) {
		columns := []connector.Column{column("day", types.NewDate()), column("s", types.NewString()), column("n", types.NewDecimal(5, 1))}
		d := newDim(t, newFake(t), columns, []int{1, 0}, map[string]string{"data-type": "string", "value-format": "plain", "key": "k/{day}/{s}"})
		b := rowsOf(t, columns, `{"day":"2024-05-01","s":"a/b","n":1.5}`, `{"day":"2024-05-01","s":"","n":-2}`)
		d.write(b)
		d.expect(d.open([]int{0, 1}, []int{2, 1}), rowsOf(t, columns, `{"day":"2024-05-01","s":""}`, `{"day":"2024-05-02","s":"a/b"}`, `{"day":"2024-05-01","s":"a/b"}`), []int{0, 1},
			[]string{"-2.0|"}, nil, []string{"1.5|a/b"})
	})
}

// TestMembersAreLookedUp: with the member among the keys it alone is asked for, without
// it each member of a key is a row.
func TestMembersAreLookedUp(t *testing.T) {
	members := func() []connector.Column {
		return []connector.Column{column("room", types.NewString()), column("uid", types.NewInt())}
	}
	server := newFake(t)
	d := newDim(t, server, members(), []int{0, 1}, map[string]string{"data-type": "set", "key": "in:{room}"})
	b := rowsOf(t, d.columns, `{"room":"a","uid":1}`, `{"room":"a","uid":2}`, `{"room":"b","uid":2}`)
	d.write(b)
	rooms := rowsOf(t, d.columns, `{"room":"a","uid":0}`, `{"room":"c","uid":0}`, `{"room":"b","uid":0}`)
	d.expect(d.open([]int{0}, []int{1, 0}), rooms, []int{0}, []string{"1|a", "2|a"}, nil, []string{"2|b"})
	both := rowsOf(t, d.columns, `{"room":"a","uid":2}`, `{"room":"b","uid":1}`, `{"room":"b","uid":2}`)
	server.asked = map[string]int{}
	d.expect(d.open([]int{1, 0}, []int{0}), &batch.Batch{Cols: []batch.Vec{both.Cols[1], both.Cols[0]}}, []int{0, 1}, []string{"a"}, nil, []string{"b"})
	if server.asked["SMEMBERS"] != 0 || server.asked["SISMEMBER"] != 3 {
		t.Errorf("it was asked for %v", server.asked)
	}

	for typ, scores := range map[string][]string{"INT": {"-7", "2147483647"}, "DOUBLE": {"0.1", `"-Infinity"`}, "FLOAT": {"0.1", "3.4028235e38"}} {
		columns := append(members(), column("pts", map[string]types.Type{"INT": types.NewInt(), "DOUBLE": types.NewDouble(), "FLOAT": types.NewFloat()}[typ]))
		d = newDim(t, newFake(t), columns, []int{0, 1}, map[string]string{"data-type": "zset", "score": "pts"})
		b = rowsOf(t, columns, `{"room":"a","uid":1,"pts":`+scores[0]+`}`, `{"room":"a","uid":2,"pts":`+scores[1]+`}`)
		d.write(b)
		want := []string{b.Cols[2].Text(0) + "|1", b.Cols[2].Text(1) + "|2"}
		slices.Sort(want)
		d.expect(d.open([]int{0}, []int{2, 1}), rooms, []int{0}, want, nil, nil)
		asked := rowsOf(t, columns, `{"room":"a","uid":2}`, `{"room":"a","uid":3}`)
		d.expect(d.open([]int{0, 1}, []int{2}), asked, []int{0, 1}, []string{b.Cols[2].Text(1)}, nil)
	}
}

// TestRowsThatAreNotThere: a row is there while one of the table's fields is; fields of
// other tables do not make it one.
func TestRowsThatAreNotThere(t *testing.T) {
	columns := []connector.Column{column("id", types.NewInt()), column("a", types.NewString()), column("b", types.NewString())}
	d := newDim(t, newFake(t), columns, []int{0}, map[string]string{"key": "h:{id}"})
	b := rowsOf(t, columns, `{"id":1,"a":"x"}`, `{"id":2,"a":"y","b":"z"}`, `{"id":3,"b":"w"}`)
	d.write(b)
	d.server.put([]byte("\x04\x04HSET\x03h:2\x05other\x01o\x04\x04HSET\x03h:4\x05other\x01o"))
	gone := rowsOf(t, columns, `{"id":2}`)
	gone.Kinds = []batch.Kind{batch.Delete}
	d.write(gone)
	asked := rowsOf(t, columns, `{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`)
	d.expect(d.open([]int{0}, []int{1}), asked, []int{0}, []string{"x"}, nil, []string{"NULL"}, nil)
	// Further equalities choose among the rows of one key.
	two := rowsOf(t, columns, `{"id":1,"a":"x"}`, `{"id":1,"a":"y"}`, `{"id":3,"a":""}`)
	d.server.asked = map[string]int{}
	d.expect(d.open([]int{0, 1}, []int{0, 2}), two, []int{0, 1}, []string{"1|NULL"}, nil, nil)
	if d.server.asked["HMGET"] != 2 {
		t.Errorf("two keys were asked for with %d commands", d.server.asked["HMGET"])
	}
}

// TestColumnsThatAreAskedForTwice: a column with two equalities has a row when both hold.
func TestColumnsThatAreAskedForTwice(t *testing.T) {
	columns := []connector.Column{column("id", types.NewInt()), column("s", types.NewString())}
	d := newDim(t, newFake(t), columns, []int{0}, nil)
	d.write(rowsOf(t, columns, `{"id":1,"s":"one"}`, `{"id":2,"s":"two"}`))
	a, b := rowsOf(t, columns, `{"id":1}`, `{"id":1}`, `{"id":2}`), rowsOf(t, columns, `{"id":1}`, `{"id":2}`, `{"id":1}`)
	d.expect(d.open([]int{0, 0}, []int{1}), &batch.Batch{Cols: []batch.Vec{a.Cols[0], b.Cols[0]}}, []int{0, 1}, []string{"one"}, nil, nil)
}

// TestLookupsAtOnce: lanes share a lookup.
func TestLookupsAtOnce(t *testing.T) {
	columns, objects := everyType()
	for _, typ := range []string{typeHash, typeString} {
		d := newDim(t, newFake(t), columns, []int{0}, map[string]string{"data-type": typ})
		b := rowsOf(t, columns, objects...)
		d.write(b)
		l := d.open([]int{0}, []int{0, 10})
		var done sync.WaitGroup
		for lane := range 8 {
			done.Go(func() {
				for k := range 40 {
					row := (lane + k) % b.Len
					asked := rowsOf(t, columns[:1], fmt.Sprintf(`{"id":%d}`, row+1))
					d.expect(l, asked, []int{0}, []string{fmt.Sprintf("%d|%s", row+1, b.Cols[10].Text(row))})
				}
			})
		}
		done.Wait()
	}
}

// TestKeysThatTheSinkRefuses: a key that could be another row's finds nothing.
func TestKeysThatTheSinkRefuses(t *testing.T) {
	columns := []connector.Column{column("a", types.NewString()), column("b", types.NewString()), column("v", types.NewString())}
	d := newDim(t, newFake(t), columns, []int{0, 1}, nil)
	d.write(rowsOf(t, columns, `{"a":"x","b":"y:z","v":"1"}`))
	d.expect(d.open([]int{0, 1}, []int{2}), rowsOf(t, columns, `{"a":"x:y","b":"z"}`, `{"a":"x","b":"y:z"}`), []int{0, 1}, nil, []string{"1"})
}

// TestManyKeys: more keys than one pipeline takes, with and without a cache.
func TestManyKeys(t *testing.T) {
	columns := []connector.Column{column("id", types.NewInt()), column("s", types.NewString())}
	for _, with := range []map[string]string{nil, {"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": "5000"}} {
		d := newDim(t, newFake(t), columns, []int{0}, with)
		const n = 3 * pipeKeys / 2
		var objects []string
		want := make([][]string, n)
		for i := range n {
			objects = append(objects, fmt.Sprintf(`{"id":%d,"s":"%d"}`, i, i))
			if i%3 > 0 {
				want[i] = []string{fmt.Sprint(i)}
			}
		}
		b := rowsOf(t, columns, objects...)
		for i := range n {
			if i%3 == 0 {
				b.Cols[1].SetNull(i)
			}
		}
		d.write(b)
		l := d.open([]int{0}, []int{1})
		d.expect(l, b, []int{0}, want...)
		d.expect(l, b, []int{0}, want...)
		if asks := d.server.asked["HMGET"]; asks != n && with != nil || asks != 2*n && with == nil {
			t.Errorf("%d commands with %v", asks, with)
		}
	}
}

// TestFailedLookups: an answer that is none is an error that says what and where; after
// it the same rows are found.
func TestFailedLookups(t *testing.T) {
	columns := []connector.Column{column("id", types.NewInt()), column("s", types.NewString())}
	d := newDim(t, newFake(t), columns, []int{0}, map[string]string{"lookup.max-retries": "0", "password": "hush"})
	b := rowsOf(t, columns, `{"id":1,"s":"one"}`)
	d.write(b)
	l := d.open([]int{0}, []int{1})
	for _, c := range []struct{ answer, want string }{
		{"LOADING Redis is loading the dataset in memory", "the server loads its data"},
		{"NOAUTH Authentication required.", "set 'username' and 'password'"},
		{"NOPERM this user has no permissions", "the user needs HMGET"},
		{"MOVED 3999 127.0.0.1:6381", "'redis-mode' = 'cluster'"},
		{"BUSY Redis is busy running a script", "BUSY"},
		{"", "EOF"},
	} {
		d.server.mu.Lock()
		if c.answer == "" {
			d.server.cut = "HMGET"
		} else {
			d.server.fail["HMGET"] = c.answer
		}
		d.server.mu.Unlock()
		if _, err := found(l, b.Cols[0]); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", c.answer, err)
		}
		d.expect(l, b, []int{0}, []string{"one"})
	}
	d.server.ln.Close()
	refused := newDim(t, d.server, columns, []int{0}, map[string]string{"lookup.max-retries": "1"})
	if _, err := found(refused.open([]int{0}, []int{1}), b.Cols[0]); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("without a server: %v", err)
	}
}

// TestValuesThatAreNone: the error names key, column and value.
func TestValuesThatAreNone(t *testing.T) {
	id := func() connector.Column { return column("id", types.NewInt()) }
	n := column("n", types.NewInt())
	for _, c := range []struct {
		value  any
		column connector.Column
		with   map[string]string
		want   string
	}{
		{map[string]string{"n": "many"}, n, nil, `key "t:1", column n: "many" is not INT`},
		{map[string]string{"n": "99999999999"}, n, nil, `key "t:1", column n: "99999999999" is not INT`},
		{map[string]string{"n": "1.239"}, column("n", types.NewDecimal(9, 2)), nil, `"1.239" has more digits than DECIMAL(9, 2)`},
		{map[string]string{"n": "a\xff"}, column("n", types.NewString()), nil, `is not UTF-8`},
		{map[string]string{"n": "12345"}, column("n", types.NewBinary(4)), nil, `is not BINARY(4)`},
		{map[string]string{"m": "1"}, column("n", types.NewInt().NotNull()), nil, ""},
		{"1", n, nil, `key "t:1" holds another type than hash: check 'key' and 'data-type'`},
		{"many", n, map[string]string{"data-type": "string", "value-format": "plain"}, `key "t:1", column n: "many" is not INT`},
		{`{"n":"many"}`, n, map[string]string{"data-type": "string"}, `key "t:1", column n: "many" is not INT`},
		{`{"n":1.239}`, column("n", types.NewDecimal(9, 2)), map[string]string{"data-type": "string"}, `key "t:1", column n: `},
		{`{"n":null}`, column("n", types.NewInt().NotNull()), map[string]string{"data-type": "string"}, `key "t:1", column n: `},
		{`{"n":1`, n, map[string]string{"data-type": "string"}, `key "t:1": its value is no object of JSON: `},
		{`[1]`, n, map[string]string{"data-type": "string"}, `key "t:1": its value is no object of JSON: `},
		{``, n, map[string]string{"data-type": "string"}, `key "t:1": its value is no object of JSON: it is empty`},
		{`{"n":1} {"n":2}`, n, map[string]string{"data-type": "string"}, `key "t:1": its value is 2 objects of JSON`},
		{map[string]float64{"a": 1.5}, n, map[string]string{"data-type": "zset", "score": "n"}, `key "t:1", column n: the score 1.5 is not INT`},
		{map[string]float64{"a": 1e300}, column("n", types.NewFloat()), map[string]string{"data-type": "zset", "score": "n"}, `the score 1e+300 is not FLOAT`},
	} {
		columns, key := []connector.Column{id(), c.column}, []int{0}
		if c.with["data-type"] == typeZSet {
			columns, key = append(columns, column("m", types.NewString())), []int{0, 2}
		}
		d := newDim(t, newFake(t), columns, key, c.with)
		d.server.keys["t:1"] = c.value
		got, err := found(d.open([]int{0}, []int{1}), rowsOf(t, []connector.Column{id()}, `{"id":1}`).Cols[0])
		switch {
		case c.want == "" && (err != nil || got[0] != nil):
			t.Errorf("%v: found %q (%v), want nothing", c.value, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %q, %v, want %q", c.value, got, err, c.want)
		}
	}
	members := set{}
	for i := range maxMembers + 1 {
		members[fmt.Sprint(i)] = true
	}
	d := newDim(t, newFake(t), []connector.Column{id(), column("m", types.NewString())}, []int{0, 1}, map[string]string{"data-type": "set"})
	d.server.keys["t:1"] = members
	if _, err := found(d.open([]int{0}, []int{1}), rowsOf(t, []connector.Column{id()}, `{"id":1}`).Cols[0]); err == nil ||
		!strings.Contains(err.Error(), `key "t:1" has 100001 members, and a lookup takes up to 100000 of a key: an equality with column "m"`) {
		t.Errorf("many members: %v", err)
	}
	if d.server.asked["SMEMBERS"] != 0 {
		t.Error("too many members were asked for")
	}
}

// TestTablesThatCannotBeLookedUp: what a declaration tells is told without a server.
func TestTablesThatCannotBeLookedUp(t *testing.T) {
	id, room, list := column("id", types.NewInt()), column("room", types.NewString()), column("list", types.NewArray(types.NewInt()))
	c := New(vfs.NewMem(), "")
	for _, x := range []struct {
		columns []connector.Column
		key     []int
		with    map[string]string
		keys    []int
		want    error
		text    string
	}{
		{[]connector.Column{id, room}, []int{0}, nil, []int{1}, &connector.MissingKeyError{Column: 0}, `an equality with column "id"`},
		{[]connector.Column{id, room}, []int{1}, map[string]string{"data-type": "zset", "score": "id", "key": "all"}, []int{0}, &connector.MissingKeyError{Column: 1}, `equality with their member, column "room"`},
		{[]connector.Column{id, list}, []int{0}, nil, []int{0}, &connector.ColumnError{Column: 1}, "not_yet"},
		{[]connector.Column{id, room}, []int{0}, map[string]string{"data-type": "set"}, []int{0}, &connector.ColumnError{Column: 1}, "outside the primary key"},
		{[]connector.Column{id, room}, []int{0}, map[string]string{"key": "k:{room}"}, []int{0}, &connector.OptionError{Key: "key"}, "{room}"},
		{[]connector.Column{id, room}, nil, nil, []int{0}, nil, "the table has none: add PRIMARY KEY"},
	} {
		with := map[string]string{"url": "redis://127.0.0.1:1"}
		maps.Copy(with, x.with)
		err := c.CheckLookup(tableWith(t, c, x.columns, x.key, with), x.keys)
		if err == nil || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%v: %v", x.with, err)
			continue
		}
		var missing *connector.MissingKeyError
		var col *connector.ColumnError
		var option *connector.OptionError
		ok := true
		switch want := x.want.(type) {
		case *connector.MissingKeyError:
			ok = errors.As(err, &missing) && missing.Column == want.Column
		case *connector.ColumnError:
			ok = errors.As(err, &col) && col.Column == want.Column
		case *connector.OptionError:
			ok = errors.As(err, &option) && option.Key == want.Key
		}
		if !ok {
			t.Errorf("%v: %T %v", x.with, err, err)
		}
	}
}
