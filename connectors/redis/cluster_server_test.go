//go:build services

package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

func manyPeople(n int, suffix string) (*batch.Batch, batch.Vec) {
	ids, names := make([]int64, n), make([]string, n)
	for i := range ids {
		ids[i], names[i] = int64(i), "name"+strconv.Itoa(i)+suffix
	}
	b := batchOf(people(), nil, ids, names)
	return b, b.Cols[0]
}

// expectPeople looks all up, one row each.
func expectPeople(t *testing.T, with map[string]string, n int, suffix string, ids batch.Vec) {
	t.Helper()
	got := patiently(t, openLookup(t, people(), []int{0}, with, []int{0}, []int{1}), ids)
	for i, rows := range got {
		if want := "name" + strconv.Itoa(i) + suffix; i < n && fmt.Sprint(rows) != fmt.Sprint([]string{want}) {
			t.Fatalf("person %d is %q, want %s", i, rows, want)
		}
	}
	if len(got) != n {
		t.Fatalf("%d answers, want %d", len(got), n)
	}
}

// TestCluster: rows of one artefact go to the nodes of their slots and are found there,
// by key and by a scan of all nodes; a slot that has moved is followed; an earlier
// process is fenced in each slot; a key of another type is its row's matter; a node
// that is killed and comes back has every row.
func TestCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c, err := services.StartRedisCluster(ctx, t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	with := func(more ...string) map[string]string {
		w := map[string]string{keyMode: modeCluster, keyNodes: c.Addresses(), keyKey: "p:{uid}", keyConnect: "2 s", keyRequest: "20 s"}
		for i := 0; i < len(more); i += 2 {
			w[more[i]] = more[i+1]
		}
		return w
	}
	const n = 500
	fsys := vfs.NewMem()
	j := start(t, fsys, 1, people(), []int{0}, with())
	b, ids := manyPeople(n, "")
	a, bad := j.seal(b)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	j.settle(a)
	for i, node := range c.Nodes {
		out, err := node.Ask(ctx, "EVAL", "return #redis.call('KEYS', 'p:*')", "0")
		if err != nil {
			t.Fatal(err)
		}
		if k, _ := strconv.Atoi(out); k < n/6 {
			t.Errorf("node %d has %s keys of %d", i, out, n)
		}
	}
	expectPeople(t, with(), n, "", ids)
	expectPeople(t, with("lookup.cache", "FULL", "lookup.full-cache.periodic-reload.interval", "1 h"), n, "", ids)

	scanWhileSlotMoves(ctx, t, c, j.table, n)

	// A slot without keys goes to another node; its first row comes after that.
	slot := int(slotOf([]byte("p:100000")))
	owner := 2
	for i := range 3 {
		if slot < 16384*(i+1)/3 {
			owner = i
			break
		}
	}
	to, err := c.Nodes[(owner+1)%3].Ask(ctx, "CLUSTER", "MYID")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range c.Nodes {
		// The one it goes to first: no node is left without an owner that says so.
		if _, err := node.Ask(ctx, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", strings.TrimSpace(to)); err != nil {
			t.Fatal(err)
		}
	}
	moved, _ := j.seal(batchOf(people(), nil, []int64{100000}, []string{"moved"}))
	j.settle(moved)
	if out, err := c.Nodes[(owner+1)%3].Ask(ctx, "HGET", "p:100000", "name"); err != nil || out != "moved" {
		t.Errorf("the row of the slot that has moved: %q, %v", out, err)
	}

	// Rows that come while a slot moves wait for it, whichever of its keys has gone first:
	// none is written beside the key that is still to come, and the lane does not stop.
	at := (owner + 1) % 3
	for i, first := range []string{"p:", fencePrefix} {
		name := "moved again " + strconv.Itoa(i)
		again, _ := j.seal(batchOf(people(), nil, []int64{100000}, []string{name}))
		moveSlot(ctx, t, slot, c.Nodes[at], c.Nodes[(at+1)%3], c.Nodes, first, func() {
			var stop *outbox.StopError
			if err := j.publish(again)[0]; err == nil || errors.As(err, &stop) || errors.Is(err, connector.ErrRefused) {
				t.Errorf("published while %s* has gone and the rest has not: %v", first, err)
			}
		})
		at = (at + 1) % 3
		j.settle(again)
		if out, err := c.Nodes[at].Ask(ctx, "HGET", "p:100000", "name"); err != nil || out != name {
			t.Errorf("after the move the row is %q, %v, want %q", out, err, name)
		}
	}

	// A later run writes; what the earlier one sends afterwards is kept out.
	j2 := start(t, vfs.NewMem(), 2, people(), []int{0}, with())
	b2, _ := manyPeople(n, "b")
	a2, _ := j2.seal(b2)
	j2.settle(a2)
	client, _, err := connect(j.table.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	old := &clusterSender{client: client.(*goredis.ClusterClient), request: 20 * time.Second, wrong: newWrongKeys(time.Now), typ: typeHash, tags: slotTags()}
	lane := outbox.Lane{Name: "fence", JobEpoch: 2, Epoch: 7}
	body, units, err := (&encoder{layout: layoutOf(t, j.table)}).Append(nil, b2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Send(ctx, lane, &outbox.Message{ID: "new", Units: units, Body: body}); err != nil {
		t.Fatal(err)
	}
	for _, late := range []outbox.Lane{{Name: "fence", JobEpoch: 1, Epoch: 9}, {Name: "fence", JobEpoch: 2, Epoch: 6}} {
		if err := old.Send(ctx, late, &outbox.Message{ID: "old", Units: units, Body: body}); !errors.Is(err, connector.ErrFenced) {
			t.Errorf("epoch %d of run %d may write: %v", late.Epoch, late.JobEpoch, err)
		}
	}

	// A key of another type is refused by name, and the others are written.
	for _, node := range c.Nodes {
		_, _ = node.Ask(ctx, "DEL", "p:3")
		_, _ = node.Ask(ctx, "SET", "p:3", "text")
	}
	b3, _ := manyPeople(n, "c")
	a3, _ := j2.seal(b3)
	if err := j2.publish(a3)[0]; !errors.Is(err, connector.ErrRefused) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Fatalf("a key of another type: %v", err)
	}
	for _, node := range c.Nodes {
		_, _ = node.Ask(ctx, "DEL", "p:3")
	}

	// A node that is killed in between, and back with its append-only file.
	j3 := start(t, vfs.NewMem(), 3, people(), []int{0}, with())
	c.Nodes[1].Kill()
	b4, _ := manyPeople(n, "d")
	a4, _ := j3.seal(b4)
	if err := j3.publish(a4)[0]; err == nil {
		t.Fatal("published without a node")
	}
	if err := c.Nodes[1].Start(ctx); err != nil {
		t.Fatal(err)
	}
	j3.settle(a4)
	expectPeople(t, with(), n, "d", ids)
	if _, err := New(vfs.NewMem(), "/staging").OpenSink(ctx, tableOf(t, New(vfs.NewMem(), ""), people(), []int{0}, map[string]string{keyURL: "redis://" + c.Nodes[0].Direct()}), conntest.OwnerOf(1, 1)); err == nil || !strings.Contains(err.Error(), "is a node of a cluster") {
		t.Errorf("a node of a cluster as a server: %v", err)
	}
}

// moveSlot moves a slot from a node to another one as redis-cli does, key by key, those
// with a prefix first; between calls f when they have gone.
func moveSlot(ctx context.Context, t *testing.T, slot int, from, to *services.Redis, all []*services.Redis, prefix string, between func()) {
	t.Helper()
	do := func(r *services.Redis, command ...string) string {
		t.Helper()
		out, err := r.Ask(ctx, command...)
		if err != nil || strings.HasPrefix(out, "ERR") {
			t.Fatalf("%v: %q, %v", command, out, err)
		}
		return strings.TrimSpace(out)
	}
	number, target := strconv.Itoa(slot), do(to, "CLUSTER", "MYID")
	do(to, "CLUSTER", "SETSLOT", number, "IMPORTING", do(from, "CLUSTER", "MYID"))
	do(from, "CLUSTER", "SETSLOT", number, "MIGRATING", target)
	host, port, _ := strings.Cut(to.Direct(), ":")
	move := func(prefix string) {
		for key := range strings.FieldsSeq(do(from, "CLUSTER", "GETKEYSINSLOT", number, "100")) {
			if strings.HasPrefix(key, prefix) {
				do(from, "MIGRATE", host, port, key, "0", "10000", "REPLACE")
			}
		}
	}
	move(prefix)
	between()
	move("")
	for _, r := range append([]*services.Redis{to, from}, all...) {
		do(r, "CLUSTER", "SETSLOT", number, "NODE", target)
	}
}

// scanWhileSlotMoves: a key that moves from a node that is still to be scanned to one
// that was is found all the same. The slot comes back afterwards.
func scanWhileSlotMoves(ctx context.Context, t *testing.T, c *services.RedisCluster, table *connector.Table, n int) {
	t.Helper()
	client, _, err := connect(table.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	l, err := newLookup(table, []int{0}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	l.client = client
	owner := func(name string) int { return (int(slotOf([]byte(name)))*3 + 2) / 16384 }
	names := map[string]bool{}
	var back func()
	err = l.scan(ctx, func(some []string) error {
		for _, name := range some {
			names[name] = true
		}
		for i := 0; back == nil; i++ {
			if name := "p:" + strconv.Itoa(i); owner(name) != owner(some[0]) {
				slot, from, to := int(slotOf([]byte(name))), c.Nodes[owner(name)], c.Nodes[owner(some[0])]
				moveSlot(ctx, t, slot, from, to, c.Nodes, "", func() {})
				back = func() { moveSlot(ctx, t, slot, to, from, c.Nodes, "", func() {}) }
			}
		}
		return nil
	})
	if err != nil || len(names) != n {
		t.Errorf("%d keys of %d are found while a slot moves, %v", len(names), n, err)
	}
	back()
}

// TestSentinel: rows go to the primary; when it is killed they wait until a replica has
// taken its place, and go there.
func TestSentinel(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := services.StartRedisSentinel(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	with := func() map[string]string {
		return map[string]string{keyMode: modeSentinel, keySentinels: s.Sentinel.Direct(), keyMaster: "mymaster", keyDatabase: "2", keyKey: "p:{uid}", keyConnect: "2 s", keyRequest: "20 s"}
	}
	j := start(t, vfs.NewMem(), 1, people(), []int{0}, with())
	b, ids := manyPeople(50, "")
	a, _ := j.seal(b)
	j.settle(a)
	expectPeople(t, with(), 50, "", ids)
	s.Primary.Kill()
	b2, _ := manyPeople(50, "b")
	a2, _ := j.seal(b2)
	j.settle(a2)
	expectPeople(t, with(), 50, "b", ids)
	if out, err := s.Replica.Ask(ctx, "-n", "2", "HGET", "p:7", "name"); err != nil || out != "name7b" {
		t.Errorf("the replica has %q, %v", out, err)
	}
	if _, err := New(vfs.NewMem(), "/staging").OpenSink(ctx, tableOf(t, New(vfs.NewMem(), ""), people(), []int{0}, map[string]string{keyURL: "redis://" + s.Sentinel.Direct()}), conntest.OwnerOf(1, 1)); err == nil || !strings.Contains(err.Error(), "is a Sentinel") {
		t.Errorf("a Sentinel as a server: %v", err)
	}
}

func layoutOf(t *testing.T, table *connector.Table) *layout {
	t.Helper()
	l, err := newLayout(table)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
