//go:build services

package redis

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// openLookup opens a table of the shared server for lookups.
func openLookup(t testing.TB, columns []connector.Column, key []int, with map[string]string, keys, wanted []int) connector.Lookup {
	t.Helper()
	c := New(vfs.NewMem(), "")
	l, err := c.OpenLookup(context.Background(), tableOf(t, c, columns, key, with), keys, wanted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// patiently looks keys up as a lane does, until there is an answer.
func patiently(t testing.TB, l connector.Lookup, cols ...batch.Vec) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		var got [][]string
		if got, err = found(l, cols...); err == nil {
			return got
		}
	}
	t.Fatal(err)
	return nil
}

func expectFound(t testing.TB, got [][]string, want ...[]string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestServerGivesWhatWasWritten: the sink's transaction, then lookups, for each data
// type and each type of a value.
func TestServerGivesWhatWasWritten(t *testing.T) {
	freshWorld(t)
	columns, objects := everyType()
	columns[0].Type = columns[0].Type.NotNull()
	var all []int
	for c := range columns {
		all = append(all, c)
	}
	b := rowsOf(t, columns, objects...)
	want := make([][]string, b.Len+1)
	for i := range b.Len {
		want[i] = []string{text(b.Cols, i)}
	}
	asked := rowsOf(t, columns[:1], `{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`)
	for _, typ := range []string{typeHash, typeString} {
		with := map[string]string{"data-type": typ, "key": "every-" + typ + ":{id}"}
		j := start(t, vfs.NewMem(), 1, columns, []int{0}, with)
		a, bad := j.seal(b)
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		j.settle(a)
		got, err := found(openLookup(t, columns, []int{0}, with, []int{0}, all), asked.Cols[0])
		if err != nil {
			t.Fatal(err)
		}
		expectFound(t, got, want...)
		freshWorld(t)
	}
	scored := []connector.Column{column("room", types.NewString().NotNull()), column("uid", types.NewInt().NotNull()), column("pts", types.NewDouble())}
	rooms := rowsOf(t, scored, `{"room":"a","uid":1,"pts":0.1}`, `{"room":"a","uid":2,"pts":"-Infinity"}`, `{"room":"b","uid":2,"pts":1e300}`)
	nobody := rowsOf(t, scored, `{"room":"b","uid":1}`, `{"room":"a","uid":2}`, `{"room":"c","uid":2}`)
	for typ, want := range map[string][]string{typeSet: {"a|1", "a|2", "a|2"}, typeZSet: {"-Infinity|a|2", "0.1|a|1", "-Infinity|a|2"}} {
		with := map[string]string{"data-type": typ, "key": typ + ":{room}"}
		columns, wanted := scored[:2], []int{0, 1}
		if typ == typeZSet {
			with["score"], columns, wanted = "pts", scored, []int{2, 0, 1}
		}
		j := start(t, vfs.NewMem(), 1, columns, []int{0, 1}, with)
		a, bad := j.seal(batchTo(rooms, columns))
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		j.settle(a)
		l := openLookup(t, columns, []int{0, 1}, with, []int{0}, wanted)
		got, err := found(l, rowsOf(t, scored, `{"room":"a","uid":0}`, `{"room":"c","uid":0}`).Cols[0])
		if err != nil {
			t.Fatal(err)
		}
		expectFound(t, got, want[:2], nil)
		if got, err = found(openLookup(t, columns, []int{0, 1}, with, []int{0, 1}, wanted), nobody.Cols[0], nobody.Cols[1]); err != nil {
			t.Fatal(err)
		}
		expectFound(t, got, nil, want[2:], nil)
		freshWorld(t)
	}
}

// batchTo are the first columns of a batch.
func batchTo(b *batch.Batch, columns []connector.Column) *batch.Batch {
	out := *b
	out.Schema, out.Cols = &batch.Schema{Fields: b.Schema.Fields[:len(columns)]}, b.Cols[:len(columns)]
	return &out
}

// TestKeysThatExpire: a key that has lived its time has no row, but for a cache that may
// keep it.
func TestKeysThatExpire(t *testing.T) {
	ask(t, "HSET", "brief:1", "name", "one")
	asked := rowsOf(t, people(), `{"uid":1}`)
	with := func(more ...string) map[string]string {
		out := map[string]string{"key": "brief:{uid}"}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	plain := openLookup(t, people(), []int{0}, with(), []int{0}, []int{1})
	kept := openLookup(t, people(), []int{0}, with("lookup.cache", "PARTIAL", "lookup.partial-cache.max-rows", "10"), []int{0}, []int{1})
	for _, l := range []connector.Lookup{plain, kept} {
		got, err := found(l, asked.Cols[0])
		if err != nil {
			t.Fatal(err)
		}
		expectFound(t, got, []string{"one"})
	}
	ask(t, "PEXPIRE", "brief:1", "1")
	deadline := time.Now().Add(time.Minute)
	for {
		got, err := found(plain, asked.Cols[0])
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%q, %v", got, err)
		}
		if got[0] == nil {
			break
		}
	}
	got, err := found(kept, asked.Cols[0])
	if err != nil {
		t.Fatal(err)
	}
	expectFound(t, got, []string{"one"})
}

// TestLookupsWhileTheServerFails: each fault is an error, after which the same rows are
// found; none is taken for a key that is not there.
func TestLookupsWhileTheServerFails(t *testing.T) {
	const n = 2000
	fill := fmt.Sprintf("for i = 0, %d do redis.call('HSET', 'many:' .. i, 'name', 'n' .. i) end", n-1)
	ask(t, "EVAL", fill, "0")
	var objects []string
	want := make([][]string, n+1)
	for i := range n {
		objects = append(objects, fmt.Sprintf(`{"uid":%d}`, i))
		want[i] = []string{fmt.Sprintf("n%d", i)}
	}
	asked := rowsOf(t, people(), append(objects, `{"uid":-1}`)...)
	with := map[string]string{"key": "many:{uid}", "connect.timeout": "2 s", "request.timeout": "3 s", "lookup.max-retries": "0"}
	l := openLookup(t, people(), []int{0}, with, []int{0}, []int{1})
	look := func(t *testing.T) {
		t.Helper()
		expectFound(t, patiently(t, l, asked.Cols[0]), want...)
	}
	look(t)
	fault := func(kind services.FaultKind, after int64) func(*testing.T) {
		return func(*testing.T) {
			shared.Proxy.CloseAll()
			shared.Proxy.Break(services.Fault{Kind: kind, After: after})
		}
	}
	for _, c := range []struct {
		what    string
		strikes bool
		fault   func(*testing.T)
	}{
		{"the server is down", false, func(t *testing.T) {
			shared.Kill()
			shared.Proxy.CloseAll()
			if _, err := found(l, asked.Cols[0]); err == nil {
				t.Error("found without a server")
			}
			if err := shared.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
		}},
		{"the first answer is lost", true, fault(services.LoseReply, 1)},
		{"an answer in the middle is lost", true, fault(services.LoseReply, 20_000)},
		{"a request is cut", true, fault(services.CutRequest, 20_000)},
		{"it does not answer in time", false, func(t *testing.T) {
			hasty := maps.Clone(with)
			hasty["request.timeout"] = "200 ms"
			l := openLookup(t, people(), []int{0}, hasty, []int{0}, []int{1})
			ask(t, "CLIENT", "PAUSE", "2000", "ALL")
			if _, err := found(l, asked.Cols[0]); err == nil || !strings.Contains(err.Error(), "timeout") && !strings.Contains(err.Error(), "deadline") {
				t.Errorf("while the server pauses: %v", err)
			}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			before, _ := shared.Proxy.Struck()
			c.fault(t)
			look(t)
			if after, _ := shared.Proxy.Struck(); c.strikes && after != before+1 {
				t.Errorf("%d faults befell it", after-before)
			}
		})
	}
	t.Run("killed again and again", func(t *testing.T) {
		done := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < 4 && err == nil; i++ {
				shared.Kill()
				shared.Proxy.CloseAll()
				err = shared.Start(context.Background())
			}
			done <- err
		}()
		for running := true; running; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
			look(t)
		}
	})
}

// TestLookupsThatNeedAPerson: a password, a right, the type of a key; the sentence says
// what to do, and the next lookup finds the rows.
func TestLookupsThatNeedAPerson(t *testing.T) {
	freshWorld(t)
	ask(t, "HSET", "p:1", "name", "one")
	ask(t, "RPUSH", "p:2", "x")
	one, two := rowsOf(t, people(), `{"uid":1}`), rowsOf(t, people(), `{"uid":1}`, `{"uid":2}`)
	ask(t, "ACL", "SETUSER", "blind", "on", ">pw", "~*", "+info", "+hset")
	defer ask(t, "ACL", "DELUSER", "blind")
	with := func() map[string]string { return map[string]string{"key": "p:{uid}"} }
	limited := with()
	limited["username"], limited["password"] = "blind", "pw"
	l := openLookup(t, people(), []int{0}, limited, []int{0}, []int{1})
	if _, err := found(l, one.Cols[0]); err == nil || !strings.Contains(err.Error(), "the user needs HMGET") || strings.Contains(err.Error(), "pw") {
		t.Errorf("without the right to read: %v", err)
	}
	ask(t, "ACL", "SETUSER", "blind", "+hmget")
	expectFound(t, patiently(t, l, one.Cols[0]), []string{"one"})
	if _, err := found(l, two.Cols[0]); err == nil || !strings.Contains(err.Error(), `key "p:2" holds another type than hash`) {
		t.Errorf("a key of another type: %v", err)
	}
	ask(t, "DEL", "p:2")
	expectFound(t, patiently(t, l, two.Cols[0]), []string{"one"}, nil)
	c := New(vfs.NewMem(), "")
	wrong := with()
	wrong["username"], wrong["password"] = "blind", "secret-and-wrong"
	if _, err := c.OpenLookup(context.Background(), tableOf(t, c, people(), []int{0}, wrong), []int{0}, []int{1}); err == nil ||
		!strings.Contains(err.Error(), "check 'username' and 'password'") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a wrong password: %v", err)
	}
	ask(t, "CONFIG", "SET", "requirepass", "needed")
	anonymous := New(vfs.NewMem(), "")
	_, err := anonymous.OpenLookup(context.Background(), tableOf(t, anonymous, people(), []int{0}, with()), []int{0}, []int{1})
	ask(t, "-a", "needed", "--no-auth-warning", "CONFIG", "SET", "requirepass", "")
	if err == nil || !strings.Contains(err.Error(), "NOAUTH") || !strings.Contains(err.Error(), "set 'username' and 'password'") {
		t.Errorf("without a password: %v", err)
	}
}
