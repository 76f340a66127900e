package filesystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

var lookupColumns = []connector.Column{column("id", types.NewInt()), column("name", types.NewString()), column("dt", types.NewString())}

// putFile writes a file whole.
func putFile(t *testing.T, fsys vfs.FS, name, text string) {
	t.Helper()
	if err := fsys.MkdirAll(name[:strings.LastIndexByte(name, '/')]); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// namesOf looks ids up and gives dt/name of each row, by id.
func namesOf(l connector.Lookup, ids ...int32) ([][]string, error) {
	v := batch.Vec{}
	v.Reset(types.NewInt(), len(ids))
	for i, id := range ids {
		v.SetInt64(i, int64(id))
	}
	k := &connector.LookupKeys{Cols: []batch.Vec{v}, Hashes: make([]uint64, len(ids))}
	batch.HashRows(k.Hashes, []*batch.Vec{&v}, nil)
	var f connector.Found
	if err := l.Find(context.Background(), k, &f); err != nil {
		return nil, err
	}
	var out [][]string
	for i := range ids {
		var names []string
		for _, row := range f.Sel[f.First[i]:f.First[i+1]] {
			name := "NULL"
			if !f.Rows.Cols[1].IsNull(int(row)) {
				name = string(f.Rows.Cols[1].Bytes(int(row)))
			}
			names = append(names, string(f.Rows.Cols[0].Bytes(int(row)))+"/"+name)
		}
		out = append(out, names)
	}
	return out, nil
}

// TestLookup looks rows up in files of each format, with a partition column.
func TestLookup(t *testing.T) {
	for _, format := range []string{"json", "csv", "parquet"} {
		t.Run(format, func(t *testing.T) {
			mem := vfs.NewMem()
			c := newConnector(mem)
			table := tableOf(c, lookupColumns, []int{2}, map[string]string{"path": "/dim", "format": format, keyPolicy: "success-file"})
			if format == "parquet" {
				b := textBatch(lookupColumns[1:], []string{"one", "a"}, []string{"uno", "b"}, []string{"\x00", "a"}, []string{"none", "a"})
				b.Schema = &batch.Schema{Fields: []types.Field{lookupColumns[0].Field, lookupColumns[1].Field, lookupColumns[2].Field}}
				var ids batch.Vec
				ids.Reset(types.NewInt(), 4)
				for i, id := range []int64{1, 1, 2, 0} {
					ids.SetInt64(i, id)
				}
				ids.SetNull(3)
				b.Cols = append([]batch.Vec{ids}, b.Cols...)
				publishBatch(t, c, table, b, 1)
			} else {
				lines := map[string][2]string{"json": {`{"id":1,"name":"one"}` + "\n" + `{"id":2,"name":null}` + "\n" + `{"name":"none"}` + "\n", `{"id":1,"name":"uno"}` + "\n"},
					"csv": {"1,one\n2,\n", "1,uno\n"}}[format]
				putFile(t, mem, "/dim/dt=a/x."+format, lines[0])
				putFile(t, mem, "/dim/dt=b/x."+format, lines[1])
				putFile(t, mem, "/dim/_SUCCESS", "no data")
			}
			l, err := c.OpenLookup(context.Background(), table, []int{0}, []int{2, 1})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			got, err := namesOf(l, 2, 1, 3, 0)
			null := "a/NULL"
			if format == "csv" {
				null = "a/" // an empty field of a STRING is the empty string
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint([][]string{{null}, {"a/one", "b/uno"}, nil, nil}) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestLookupReload: new files are seen after the interval, whole.
func TestLookupReload(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	now := time.Unix(1_700_000_000, 0)
	c.now = func() time.Time { return now }
	table := tableOf(c, lookupColumns, []int{2}, map[string]string{"path": "/dim", "format": "json", fullcache.KeyInterval: "10 min"})
	l, err := c.OpenLookup(context.Background(), table, []int{0}, []int{2, 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := namesOf(l, 1); err == nil || !strings.Contains(err.Error(), "/dim does not exist") {
		t.Fatalf("a directory that is not there: %v", err)
	}
	expect := func(want ...string) {
		t.Helper()
		got, err := namesOf(l, 1)
		if err != nil || !slices.Equal(got[0], want) {
			t.Fatalf("found %v (%v), want %v", got, err, want)
		}
	}
	putFile(t, mem, "/dim/dt=a/1.json", `{"id":1,"name":"old"}`+"\n")
	expect("a/old")
	putFile(t, mem, "/dim/dt=b/2.json", `{"id":1,"name":"new"}`+"\n")
	if err := mem.Remove("/dim/dt=a/1.json"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(10*time.Minute - 1)
	expect("a/old")
	now = now.Add(1)
	expect("b/new")
}

// TestLookupOfBadRecords: a table with records that cannot be read is an error, which
// names the file, unless the table's own option says otherwise.
func TestLookupOfBadRecords(t *testing.T) {
	mismatch, malformed := `{"id":"x","name":"bad"}`, `{"id":2,`
	for _, c := range []struct {
		policy, second, fails string
		want                  string
	}{
		{"", mismatch, "/dim/dt=a/1.json, record at offset 22: type_mismatch, column id", ""},
		{"", malformed, "/dim/dt=a/1.json, record at offset 22: malformed", ""},
		{"fail", mismatch, "/dim/dt=a/1.json, record at offset 22", ""},
		{"null", malformed, "/dim/dt=a/1.json, record at offset 22: malformed", ""},
		{"null", mismatch, "", "[[a/one] [] [a/three]]"},
		{"drop", mismatch, "", "[[a/one] [] [a/three]]"},
		{"drop", malformed, "", "[[a/one] [] [a/three]]"},
		{"null-or-drop", malformed, "", "[[a/one] [] [a/three]]"},
	} {
		mem := vfs.NewMem()
		conn := newConnector(mem)
		putFile(t, mem, "/dim/dt=a/1.json", `{"id":1,"name":"one"}`+"\n"+c.second+"\n"+`{"id":3,"name":"three"}`+"\n")
		with := map[string]string{"path": "/dim", "format": "json"}
		if c.policy != "" {
			with["json.on-error"] = c.policy
		}
		l, err := conn.OpenLookup(context.Background(), tableOf(conn, lookupColumns, []int{2}, with), []int{0}, []int{2, 1})
		if err != nil {
			t.Fatal(err)
		}
		got, err := namesOf(l, 1, 2, 3)
		switch {
		case c.fails == "" && (err != nil || fmt.Sprint(got) != c.want):
			t.Errorf("%q of %s: %v, %v", c.policy, c.second, got, err)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%q of %s: %v, want %q", c.policy, c.second, err, c.fails)
		}
	}
}

// TestLookupOptions: limits, and what is refused.
func TestLookupOptions(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "{\"id\":%d,\"name\":\"n\"}\n", i)
	}
	putFile(t, mem, "/dim/dt=a/1.json", text.String())
	table := tableOf(c, lookupColumns, []int{2}, map[string]string{"path": "/dim", "format": "json", fullcache.KeyMaxBytes: "64kb"})
	l, err := c.OpenLookup(context.Background(), table, []int{0}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	var big *fullcache.TooBigError
	if _, err := namesOf(l, 1); !errors.As(err, &big) || big.Table != "t" || big.Max != 64<<10 {
		t.Errorf("too big: %v", err)
	}
	for key, value := range map[string]string{keyLookupCache: "PARTIAL", fullcache.KeyStrategy: "TIMED", fullcache.KeyInterval: "0 s", fullcache.KeyMaxBytes: "0", fullcache.KeyMode: "FIXED_RATE"} {
		with := map[string]string{"connector": "filesystem", "path": "/dim", "format": "json", key: value}
		v, errs := c.Spec().Resolve(with)
		if len(errs) == 0 && c.Spec().Validate(v) == nil {
			t.Errorf("%s = %s is taken", key, value)
		}
	}
}
