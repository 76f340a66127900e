package redis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// tableWith is a SQL table with checked options.
func tableWith(t testing.TB, c *Connector, columns []connector.Column, key []int, with map[string]string) *connector.Table {
	t.Helper()
	with["connector"] = "redis"
	v, errs := c.Spec().Resolve(with)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return &connector.Table{Name: "t", Columns: columns, PrimaryKey: key, Options: v, Zone: time.UTC}
}

func column(name string, t types.Type) connector.Column {
	return connector.Column{Field: types.Field{Name: name, Type: t}}
}

// batchOf makes a batch of columns; each is []int64, []string, []float64 or
// []decimal units; a nil place in nulls is none.
func batchOf(columns []connector.Column, kinds []batch.Kind, values ...any) *batch.Batch {
	b := new(batch.Batch)
	s := &batch.Schema{}
	for _, c := range columns {
		s.Fields = append(s.Fields, c.Field)
	}
	b.Reset(s)
	for i, v := range values {
		col := &b.Cols[i]
		switch v := v.(type) {
		case []int64:
			col.Reset(columns[i].Type, len(v))
			copy(col.I64, v)
			b.Len = len(v)
		case []float64:
			col.Reset(columns[i].Type, len(v))
			copy(col.F64, v)
			b.Len = len(v)
		case []string:
			col.Reset(columns[i].Type, len(v))
			for k, s := range v {
				if s == "NULL" {
					s = ""
					col.SetNull(k)
				}
				col.Data = append(col.Data, s...)
				col.Offsets = append(col.Offsets, int32(len(col.Data)))
			}
			b.Len = len(v)
		}
	}
	b.Kinds = kinds
	return b
}

// commandsOf are the commands of a body.
func commandsOf(t testing.TB, body []byte) [][]string {
	t.Helper()
	var out [][]string
	next := func() uint64 {
		x, n := binary.Uvarint(body)
		if n <= 0 {
			t.Fatal("the body ends early")
		}
		body = body[n:]
		return x
	}
	for len(body) > 0 {
		var cmd []string
		for range next() {
			n := next()
			cmd = append(cmd, string(body[:n]))
			body = body[n:]
		}
		out = append(out, cmd)
	}
	return out
}

// shown prints the commands of a body, one a line.
func shown(t testing.TB, body []byte) string {
	t.Helper()
	var out strings.Builder
	for _, cmd := range commandsOf(t, body) {
		out.WriteString(strings.Join(cmd, " ") + "\n")
	}
	return out.String()
}

// encoded gives the commands of a batch and the rows that are refused.
func encoded(t testing.TB, columns []connector.Column, key []int, with map[string]string, b *batch.Batch) (commands string, refused []string) {
	t.Helper()
	c := New(vfs.NewMem(), "/staging")
	with["url"] = "redis://127.0.0.1"
	l, err := newLayout(tableWith(t, c, columns, key, with))
	if err != nil {
		t.Fatal(err)
	}
	e := &encoder{layout: l, wrong: newWrongKeys(time.Now)}
	skip := map[int]bool{}
	for _, x := range e.Check(b, nil, nil) {
		skip[int(x.Row)] = true
		refused = append(refused, fmt.Sprintf("%d %s: %s", x.Row, x.Where, x.Message))
	}
	var body []byte
	units := int64(0)
	for i := range b.Len {
		if skip[i] {
			continue
		}
		var n int64
		if body, n, err = e.Append(body, b, i); err != nil {
			t.Fatal(err)
		}
		units += n
	}
	commands = shown(t, body)
	if n := strings.Count(commands, "\n"); int64(n) != units {
		t.Errorf("%d commands, counted %d", n, units)
	}
	return commands, refused
}

// TestCommands: the commands of each data type, for each kind of row. The wanted
// ones follow Redis' own reference of each command.
func TestCommands(t *testing.T) {
	uid, name, city := column("uid", types.NewBigInt()), column("name", types.NewString()), column("city", types.NewString())
	pts := column("pts", types.NewDouble())
	all := []batch.Kind{batch.Insert, batch.UpdateBefore, batch.UpdateAfter, batch.Delete}
	four := func(columns []connector.Column, last any) *batch.Batch {
		return batchOf(columns, all, []int64{1, 1, 1, 1}, []string{"a", "a", "NULL", "b"}, last)
	}
	hash := []connector.Column{uid, name, city}
	scored := []connector.Column{uid, name, pts}
	for _, c := range []struct {
		what    string
		columns []connector.Column
		key     []int
		with    map[string]string
		b       *batch.Batch
		want    string
		refused []string
	}{
		{"hash", hash, []int{0}, map[string]string{"key": "u:{uid}", "ttl": "2 s"}, four(hash, []string{"x y", "", "z", ""}),
			"HSET u:1 name a city x y\nPEXPIRE u:1 2000\n" +
				"HSET u:1 city z\nPEXPIRE u:1 2000\nHDEL u:1 name\n" +
				"HDEL u:1 name city\n", nil},
		{"hash of NULLs", hash, []int{0}, map[string]string{}, batchOf(hash, nil, []int64{-7}, []string{"NULL"}, []string{"NULL"}), "HDEL t:-7 name city\n", nil},
		{"string as JSON", hash, []int{0}, map[string]string{"data-type": "string", "ttl": "1 min"}, four(hash, []string{`"`, "", "z", ""}),
			`SET t:1 {"name":"a","city":"\""} PX 60000` + "\n" + `SET t:1 {"name":null,"city":"z"} PX 60000` + "\nDEL t:1\n", nil},
		{"plain string", hash[:2], []int{0}, map[string]string{"data-type": "string", "value-format": "plain"},
			batchOf(hash[:2], all, []int64{1, 1, 1, 1}, []string{"a", "a", "NULL", "b"}), "SET t:1 a\nDEL t:1\nDEL t:1\n", nil},
		{"set", hash[:2], []int{0, 1}, map[string]string{"data-type": "set"},
			batchOf(hash[:2], all, []int64{1, 1, 1, 1}, []string{"a", "a", "b", "b"}), "SADD t:1 a\nSADD t:1 b\nSREM t:1 b\n", nil},
		{"set by another member", hash[:2], []int{0, 1}, map[string]string{"data-type": "set", "member": "uid", "key": "named {name}"},
			batchOf(hash[:2], nil, []int64{5}, []string{"a"}), "SADD named a 5\n", nil},
		{"sorted set", scored, []int{0, 1}, map[string]string{"data-type": "zset", "score": "pts", "ttl": "1 s"},
			batchOf(scored, []batch.Kind{batch.Insert, batch.UpdateAfter, batch.Delete, batch.Insert}, []int64{1, 1, 1, 2}, []string{"a", "b", "b", "c"}, []float64{1.5, math.Inf(-1), math.NaN(), 1e21}),
			"ZADD t:1 1.5 a\nPEXPIRE t:1 1000\nZADD t:1 -inf b\nPEXPIRE t:1 1000\nZREM t:1 b\nZADD t:2 1e+21 c\nPEXPIRE t:2 1000\n", nil},
		{"refused scores and keys", scored, []int{0, 1}, map[string]string{"data-type": "zset", "score": "pts"},
			batchOf(scored, nil, []int64{1, 2}, []string{"a", "NULL"}, []float64{math.NaN(), 1}), "",
			[]string{"0 pts: NaN is no score", "1 name: NULL is no part of a key"}},
		{"keys that could be another row's", hash, []int{1, 2}, map[string]string{"key": "k:{name}::{city}"},
			batchOf(hash, nil, []int64{1, 2, 3, 4}, []string{"a", "a::b", "a:", "a"}, []string{"b::c", "c", "b", ":b"}),
			"HSET k:a::b::c uid 1\nHSET k:a:::b uid 4\n",
			[]string{`1 name: it holds "::", which ends it in 'key': the key could be another row's`, `2 name: it holds "::", which ends it in 'key': the key could be another row's`}},
	} {
		t.Run(c.what, func(t *testing.T) {
			have, refused := encoded(t, c.columns, c.key, c.with, c.b)
			if have != c.want {
				t.Errorf("commands\n%swant\n%s", have, c.want)
			}
			if strings.Join(refused, "\n") != strings.Join(c.refused, "\n") {
				t.Errorf("refused %q, want %q", refused, c.refused)
			}
		})
	}
}

func TestScoresBeyondDoubles(t *testing.T) {
	columns := []connector.Column{column("m", types.NewString()), column("n", types.NewBigInt())}
	b := batchOf(columns, nil, []string{"a", "b", "c"}, []int64{1 << 53, 1<<53 + 1, -1<<53 - 1})
	have, refused := encoded(t, columns, []int{0}, map[string]string{"data-type": "zset", "score": "n", "key": "board"}, b)
	if have != "ZADD board 9.007199254740992e+15 a\n" || len(refused) != 2 {
		t.Errorf("%s %q", have, refused)
	}
}

// TestTablesThatDoNotFit: what cannot be written is refused when the table is opened.
func TestTablesThatDoNotFit(t *testing.T) {
	id, name, f := column("id", types.NewBigInt()), column("name", types.NewString()), column("f", types.NewDouble())
	list := column("list", types.NewArray(types.NewInt()))
	c := New(vfs.NewMem(), "/staging")
	for _, x := range []struct {
		columns []connector.Column
		key     []int
		with    map[string]string
		want    string
	}{
		{[]connector.Column{id}, []int{0}, nil, "a hash needs a column outside the primary key"},
		{[]connector.Column{id, name}, nil, nil, "the table has none"},
		{[]connector.Column{id, list}, []int{0}, nil, "not_yet"},
		{[]connector.Column{f, name}, []int{0}, nil, "is DOUBLE"},
		{[]connector.Column{id, name}, []int{0}, map[string]string{"key": "k"}, "lacks {id}"},
		{[]connector.Column{id, name}, []int{0}, map[string]string{"key": "{name}{id}"}, "{name}"},
		{[]connector.Column{id, name, f}, []int{0, 1}, map[string]string{"key": "{name}{id}"}, "nothing stands between"},
		{[]connector.Column{id, name}, []int{0}, map[string]string{"key": "{id"}, "without its }"},
		{[]connector.Column{id, name}, []int{0}, map[string]string{"data-type": "set"}, "a set holds members alone"},
		{[]connector.Column{id, name}, []int{0}, map[string]string{"data-type": "zset", "score": "name"}, "a score is a double"},
		{[]connector.Column{id, name, f}, []int{0}, map[string]string{"data-type": "string", "value-format": "plain"}, "of one column, and 2"},
		{[]connector.Column{id, list}, []int{0}, map[string]string{"data-type": "string", "value-format": "plain"}, "has no plain text"},
	} {
		with := map[string]string{"url": "redis://h"}
		for k, v := range x.with {
			with[k] = v
		}
		_, err := newLayout(tableWith(t, c, x.columns, x.key, with))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v %v: %v, want %q", x.key, x.with, err, x.want)
		}
	}
}

func TestOptions(t *testing.T) {
	c := New(vfs.NewMem(), "")
	for _, x := range []struct {
		with map[string]string
		want string
	}{
		{map[string]string{"url": "redis://user:secret@h:6379/3", "ttl": "7 d"}, ""},
		{map[string]string{"url": "rediss://h", "tls.ca-file": "/ca"}, ""},
		{map[string]string{"url": "redis://h", "tls.ca-file": "/ca"}, "no effect without TLS"},
		{map[string]string{"url": "redis://a:1,b:2"}, "one host"},
		{map[string]string{"url": "redis-sentinel://a"}, "'redis-mode' = 'sentinel'"},
		{map[string]string{}, "needs option 'url'"},
		{map[string]string{"redis-mode": "cluster"}, "needs option 'cluster-nodes'"},
		{map[string]string{"url": "redis://h", "redis-mode": "cluster", "cluster-nodes": "a:1"}, "'url' is for"},
		{map[string]string{"redis-mode": "cluster", "cluster-nodes": "a"}, "host:port"},
		{map[string]string{"redis-mode": "cluster", "cluster-nodes": "a:1", "database": "1"}, "'database' is for"},
		{map[string]string{"redis-mode": "sentinel", "sentinels.info": "a:1"}, "needs option 'master.name'"},
		{map[string]string{"redis-mode": "sentinel", "sentinels.info": "a:1", "master.name": "m", "tls.ca-file": "x"}, "no effect without TLS"},
		{map[string]string{"url": "redis://h", "tls.enabled": "true"}, "is for clusters"},
		{map[string]string{"url": "redis://h/x"}, "no number of a database"},
		{map[string]string{"url": "redis://h?ttl=1"}, "options of the table"},
		{map[string]string{"url": "redis://h", "data-type": "list"}, "would be there twice"},
		{map[string]string{"url": "redis://h", "data-type": "zset"}, "needs 'score'"},
		{map[string]string{"url": "redis://h", "score": "n"}, "no effect"},
		{map[string]string{"url": "redis://h", "ttl": "0 s"}, "at least 1 ms"},
	} {
		x.with["connector"] = "redis"
		_, errs := c.Spec().Resolve(x.with)
		text := ""
		for _, e := range errs {
			text += e.Message
		}
		if x.want == "" && text != "" || !strings.Contains(text, x.want) {
			t.Errorf("%v: %q, want %q", x.with, text, x.want)
		}
		if strings.Contains(text, "secret") {
			t.Errorf("a password is printed: %s", text)
		}
	}
}

// TestWrongKeysAreBounded: keys of another type are forgotten after a while, and
// there is an end to them.
func TestWrongKeysAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	w := newWrongKeys(func() time.Time { return now })
	for i := range maxWrongKeys {
		if !w.add(fmt.Append(nil, i)) {
			t.Fatal(i)
		}
	}
	if w.add([]byte("one more")) || !w.has([]byte("7")) {
		t.Error("not bounded, or forgotten")
	}
	now = now.Add(wrongKeyLife + 1)
	if w.any() || !w.add([]byte("one more")) {
		t.Error("never forgotten")
	}
}

type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

// TestClasses: what each answer means, by the code that begins it.
func TestClasses(t *testing.T) {
	for text, want := range map[string]class{
		"OOM command not allowed when used memory > 'maxmemory'.": classRetry, "READONLY You can't write against a read only replica.": classRetry,
		"LOADING Redis is loading the dataset in memory": classRetry, "MISCONF Redis is configured to save RDB snapshots": classRetry,
		"WRONGTYPE Operation against a key holding the wrong kind of value": classKey, "NOPERM no permissions": classStop,
		"MOVED 3999 127.0.0.1:6381": classStop, "ERR unknown command": classStop, "ERR max number of clients reached": classRetry,
		"SOMETHING new": classUnknown,
	} {
		if have := classOf(fmt.Errorf("sending: %w", answer(text))); have != want {
			t.Errorf("%s: class %d, want %d", text, have, want)
		}
	}
	if classOf(errors.New("connection reset")) != classUnknown {
		t.Error("a broken connection says something")
	}
}
