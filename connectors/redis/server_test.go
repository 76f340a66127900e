//go:build services

package redis

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// job is one run of a job that writes a table.
type job struct {
	t     testing.TB
	table *connector.Table
	sink  connector.Sink
	w     connector.Writer
	id    connector.ArtifactID
}

// start opens the table in a new run of the job, over the sealed files of fsys.
func start(t testing.TB, fsys vfs.FS, epoch uint64, columns []connector.Column, key []int, with map[string]string) *job {
	t.Helper()
	ctx := context.Background()
	c := New(fsys, "/staging")
	j := &job{t: t, table: tableOf(t, c, columns, key, with)}
	var err error
	if j.sink, err = c.OpenSink(ctx, j.table, conntest.OwnerOf(3, epoch)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.sink.Close() })
	j.id = connector.ArtifactID{Job: conntest.UUID(3), Table: conntest.UUID(4), Lane: connector.LaneID{Topic: conntest.UUID(5)}, Epoch: epoch}
	if j.w, err = j.sink.OpenWriter(ctx, connector.Attempt{ID: j.id}); err != nil {
		t.Fatal(err)
	}
	return j
}

// seal seals the rows that Check lets pass, and gives the others.
func (j *job) seal(b *batch.Batch) (a connector.Artifact, bad []batch.ValueError) {
	j.t.Helper()
	bad = j.w.(connector.RowChecker).Check(b, nil, nil)
	refused := map[int32]bool{}
	for _, x := range bad {
		refused[x.Row] = true
	}
	sel := batch.Sel{}
	for i := range b.Len {
		if !refused[int32(i)] {
			sel = append(sel, int32(i))
		}
	}
	if err := j.w.Write(b, sel, 0); err != nil {
		j.t.Fatal(err)
	}
	id := j.id
	j.id.Sequence++
	as, err := j.w.Seal(context.Background(), []connector.SealRequest{{Header: connector.Header{ID: id, Rows: int64(len(sel))}}})
	if err != nil {
		j.t.Fatal(err)
	}
	return as[0], bad
}

func (j *job) publish(as ...connector.Artifact) []error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return j.sink.Publish(ctx, as)
}

// settle publishes as a lane does, until the artefact is there.
func (j *job) settle(a connector.Artifact) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		if err = j.sink.Publish(ctx, []connector.Artifact{a})[0]; err == nil {
			return
		}
	}
	j.t.Fatal(err)
}

func people() []connector.Column {
	return []connector.Column{column("uid", types.NewBigInt()), column("name", types.NewString())}
}

func rows(names ...string) *batch.Batch {
	ids := make([]int64, len(names))
	for i := range ids {
		ids[i] = int64(i)
	}
	return batchOf(people(), nil, ids, names)
}

// TestEveryDataType: what the real server has after inserts, updates and deletes.
func TestEveryDataType(t *testing.T) {
	kinds := []batch.Kind{batch.Insert, batch.Insert, batch.UpdateBefore, batch.UpdateAfter, batch.Delete}
	for typ, c := range map[string]struct {
		with  map[string]string
		key   []int
		query []string
		want  string
	}{
		"hash":   {map[string]string{}, []int{0}, []string{"EVAL", "return {redis.call('HGETALL', 'hash:1'), redis.call('EXISTS', 'hash:2')}", "0"}, "name\nb\n0"},
		"string": {map[string]string{}, []int{0}, []string{"EVAL", "return {redis.call('GET', 'string:1'), redis.call('EXISTS', 'string:2')}", "0"}, `{"name":"b"}` + "\n0"},
		"set":    {map[string]string{}, []int{0, 1}, []string{"EVAL", "return {redis.call('SISMEMBER', 'set:1', 'a'), redis.call('SISMEMBER', 'set:1', 'b'), redis.call('EXISTS', 'set:2')}", "0"}, "1\n1\n0"},
		"zset":   {map[string]string{"score": "uid", "key": "zset:all"}, []int{1}, []string{"ZRANGE", "zset:all", "0", "-1", "WITHSCORES"}, "a\n1\nb\n1"},
	} {
		t.Run(typ, func(t *testing.T) {
			c.with["data-type"], c.with["ttl"] = typ, "1 h"
			if c.with["key"] == "" {
				c.with["key"] = typ + ":{uid}"
			}
			j := start(t, vfs.NewMem(), 1, people(), c.key, c.with)
			b := batchOf(people(), kinds, []int64{1, 2, 1, 1, 2}, []string{"a", "x", "a", "b", "x"})
			a, bad := j.seal(b)
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			for range 2 { // sent again, nothing changes
				j.settle(a)
			}
			if have := ask(t, c.query...); have != c.want {
				t.Errorf("the server has\n%s\nwant\n%s", have, c.want)
			}
			left := ask(t, "PTTL", strings.Replace(c.with["key"], "{uid}", "1", 1))
			if len(left) != len("3599999") {
				t.Errorf("the key lives for %s ms, want an hour", left)
			}
		})
		freshWorld(t)
	}
}

// TestServerFails takes one artefact through each fault of the server and the
// network, at each step; the end state is that of the input.
func TestServerFails(t *testing.T) {
	restart := func(t *testing.T) {
		shared.Kill()
		shared.Proxy.CloseAll()
		if err := shared.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	fault := func(kind services.FaultKind, after int64) func(*testing.T) {
		return func(*testing.T) {
			shared.Proxy.CloseAll()
			shared.Proxy.Break(services.Fault{Kind: kind, After: after})
		}
	}
	for what, c := range map[string]struct{ beforeSeal, beforePublish, after func(*testing.T) }{
		"killed before the rows are sealed": {beforeSeal: restart},
		"killed before they are sent":       {beforePublish: restart},
		"killed after they were sent":       {after: restart},
		"the answer to WATCH is lost":       {beforePublish: fault(services.LoseReply, 1)},
		"the answer to EXEC is lost":        {beforePublish: fault(services.LoseReply, 500)},
		"cut in the transaction":            {beforePublish: fault(services.CutRequest, 500)},
		"WATCH does not arrive":             {beforePublish: fault(services.Swallow, 1)},
		"EXEC does not arrive":              {beforePublish: fault(services.Swallow, 500)},
		"nobody answers EXEC":               {beforePublish: fault(services.Hang, 500)},
	} {
		t.Run(what, func(t *testing.T) {
			freshWorld(t)
			prefix := strings.ReplaceAll(what, " ", "-")
			j := start(t, vfs.NewMem(), 1, people(), []int{0}, map[string]string{"key": prefix + ":{uid}", "connect.timeout": "2 s", "request.timeout": "2 s"})
			call := func(f func(*testing.T)) {
				if f != nil {
					f(t)
				}
			}
			call(c.beforeSeal)
			one, _ := j.seal(rows("a", "b", "c"))
			two, _ := j.seal(rows("A", "b"))
			call(c.beforePublish)
			j.settle(one)
			call(c.after)
			j.settle(two)
			for id, want := range []string{"A", "b", "c"} {
				if have := ask(t, "HGET", prefix+":"+string(rune('0'+id)), "name"); have != want {
					t.Errorf("row %d is %q, want %q", id, have, want)
				}
			}
		})
	}
}

// TestKilledServerDuringTransactions kills the server while transactions are on
// their way, again and again; the last row of each key stays.
func TestKilledServerDuringTransactions(t *testing.T) {
	freshWorld(t)
	j := start(t, vfs.NewMem(), 1, people(), []int{0}, map[string]string{"key": "k:{uid}", "connect.timeout": "2 s", "request.timeout": "5 s"})
	var done sync.WaitGroup
	stop := make(chan struct{})
	begun := make(chan struct{}, 1)
	done.Go(func() {
		for range 4 {
			select {
			case <-stop:
				return
			case <-begun:
			}
			shared.Kill()
			shared.Proxy.CloseAll()
			if err := shared.Start(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	var last string
	for i := range 60 {
		last = strings.Repeat("x", i+1)
		names := make([]string, 500)
		for k := range names {
			names[k] = last
		}
		a, _ := j.seal(rows(names...))
		if i%12 == 5 {
			begun <- struct{}{}
		}
		j.settle(a)
	}
	close(stop)
	done.Wait()
	const script = "local n = 0 for i = 0, 499 do if redis.call('HGET', 'k:' .. i, 'name') == ARGV[1] then n = n + 1 end end return n"
	if have := ask(t, "EVAL", script, "0", last); have != "500" {
		t.Errorf("%s of 500 keys have their last row", have)
	}
}

// TestLateRequestsAreKeptOut: another process writes the fence while a transaction is
// between its look and its EXEC; nothing of it happens.
func TestLateRequestsAreKeptOut(t *testing.T) {
	freshWorld(t)
	j := start(t, vfs.NewMem(), 1, people(), []int{0}, map[string]string{"key": "late:{uid}"})
	a, _ := j.seal(rows("old"))
	client, _, err := connect(j.table.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lane := outbox.Lane{Name: "late", JobEpoch: 1, Epoch: 1}
	newer := outbox.Lane{Name: "late", JobEpoch: 2, Epoch: 2}
	other, _, err := connect(j.table.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	client.AddHook(&between{do: func(ctx context.Context) {
		ask(t, "HSET", "late:0", "name", "new")
		if err := other.Set(ctx, fencePrefix+"late", fenceValue(newer, "x"), fenceLife).Err(); err != nil {
			t.Error(err)
		}
	}})
	sn := &sender{client: client, request: time.Minute, wrong: newWrongKeys(time.Now), typ: typeHash}
	body, units, err := (&encoder{layout: must(newLayout(j.table))}).Append(nil, rows("old"), 0)
	if err != nil {
		t.Fatal(err)
	}
	err = sn.Send(context.Background(), lane, &outbox.Message{ID: a.Header.ID.String(), Rows: 1, Units: units, Body: body})
	if !errors.Is(err, connector.ErrFenced) {
		t.Errorf("a late transaction: %v", err)
	}
	if have := ask(t, "HGET", "late:0", "name"); have != "new" {
		t.Errorf("the key has %q, of the earlier process", have)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// between does something once, before a transaction is sent.
type between struct {
	once sync.Once
	do   func(context.Context)
}

func (h *between) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
func (h *between) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }
func (h *between) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if cmds[0].Name() == "multi" {
			h.once.Do(func() { h.do(ctx) })
		}
		return next(ctx, cmds)
	}
}

// TestKeysOfAnotherType: the rows at fault are named, and what was sealed behind them
// is read again behind the others, so that the last row of a key stays.
func TestKeysOfAnotherType(t *testing.T) {
	freshWorld(t)
	ask(t, "RPUSH", "mixed:1", "mine")
	j := start(t, vfs.NewMem(), 1, people(), []int{0}, map[string]string{"key": "mixed:{uid}"})
	first, second := rows("a", "b", "c"), rows("A", "B")
	one, _ := j.seal(first)
	two, _ := j.seal(second)
	for i, err := range j.publish(one, two) {
		if !errors.Is(err, connector.ErrRefused) {
			t.Fatalf("artefact %d: %v", i, err)
		}
	}
	if err := j.sink.Discard(context.Background(), []connector.Artifact{one, two}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*batch.Batch{first, second} {
		a, bad := j.seal(b)
		if len(bad) != 1 || bad[0].Row != 1 || !strings.Contains(bad[0].Message, `"mixed:1"`) {
			t.Fatalf("refused rows: %v", bad)
		}
		j.settle(a)
	}
	if a, c, l := ask(t, "HGET", "mixed:0", "name"), ask(t, "HGET", "mixed:2", "name"), ask(t, "LRANGE", "mixed:1", "0", "-1"); a != "A" || c != "c" || l != "mine" {
		t.Errorf("keys %q %q %q", a, c, l)
	}
}

// TestServerRefuses: what the server refuses for a time is tried again, what needs a
// person stops the lane once with a sentence.
func TestServerRefuses(t *testing.T) {
	freshWorld(t)
	j := start(t, vfs.NewMem(), 1, people(), []int{0}, map[string]string{"key": "r:{uid}"})
	for _, c := range []struct {
		set, back []string
		want      string
	}{
		{[]string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}, "OOM"},
		{[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}, "READONLY"},
		{[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}, "NOREPLICAS"},
	} {
		a, _ := j.seal(rows(c.want))
		ask(t, c.set...)
		err := j.publish(a)[0]
		outcome, rerr := j.sink.Resolve(context.Background(), []connector.Artifact{a})
		ask(t, c.back...)
		if err == nil || rerr != nil || outcome[0] != connector.Sealed || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "rows wait") {
			t.Errorf("%s: %v, %v %v", c.want, err, outcome, rerr)
		}
		j.settle(a)
		if have := ask(t, "HGET", "r:0", "name"); have != c.want {
			t.Errorf("the key has %q", have)
		}
	}
	ask(t, "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+@transaction", "+info", "+config|get")
	defer ask(t, "ACL", "DELUSER", "reader")
	k := start(t, vfs.NewMem(), 2, people(), []int{0}, map[string]string{"key": "r:{uid}", "username": "reader", "password": "pw"})
	a, _ := k.seal(rows("x"))
	err := k.publish(a)[0]
	var stop *outbox.StopError
	if !errors.As(err, &stop) || !strings.Contains(err.Error(), "grant them, then resume") {
		t.Errorf("without the right to write: %v", err)
	}
	for _, want := range []connector.Outcome{connector.Unknown, connector.Sealed} {
		if o, err := k.sink.Resolve(context.Background(), []connector.Artifact{a}); err != nil || o[0] != want {
			t.Errorf("outcome %v %v, want %v", o, err, want)
		}
	}
	ask(t, "ACL", "SETUSER", "reader", "+@all")
	k.settle(a)
	c := New(vfs.NewMem(), "/staging")
	bad := tableOf(t, c, people(), []int{0}, map[string]string{"username": "reader", "password": "secret-and-wrong"})
	if _, err := c.OpenSink(context.Background(), bad, conntest.OwnerOf(3, 9)); err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a wrong password: %v", err)
	}
}

// TestServerThatIsDownAtTheStart: the job starts, and rows wait.
func TestServerThatIsDownAtTheStart(t *testing.T) {
	freshWorld(t)
	shared.Proxy.Refuse(true)
	shared.Proxy.CloseAll()
	j := start(t, vfs.NewMem(), 1, people(), []int{0}, map[string]string{"key": "down:{uid}", "connect.timeout": "1 s"})
	a, _ := j.seal(rows("x"))
	err := j.publish(a)[0]
	shared.Proxy.Refuse(false)
	if err == nil {
		t.Error("published without a server")
	}
	j.settle(a)
	if text := j.sink.(connector.SinkExplainer).ExplainSink()[0]; !strings.Contains(text, "does not answer yet") {
		t.Error(text)
	}
	if have := ask(t, "HGET", "down:0", "name"); have != "x" {
		t.Errorf("the key has %q", have)
	}
}
