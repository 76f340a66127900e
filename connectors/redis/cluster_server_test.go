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

// clusterPeople is how many rows the tests of a cluster have.
const clusterPeople = 500

// clusterTest is a cluster of three primaries.
type clusterTest struct {
	*services.RedisCluster
	t   *testing.T
	ctx context.Context
}

// with are the options of a table in the cluster.
func (c *clusterTest) with(more ...string) map[string]string {
	w := map[string]string{keyMode: modeCluster, keyNodes: c.Addresses(), keyKey: "p:{uid}", keyConnect: "2 s", keyRequest: "20 s"}
	for i := 0; i < len(more); i += 2 {
		w[more[i]] = more[i+1]
	}
	return w
}

// ask sends a command to one node.
func (c *clusterTest) ask(node int, command ...string) string {
	c.t.Helper()
	out, err := c.Nodes[node].Ask(c.ctx, command...)
	if err != nil || strings.HasPrefix(out, "ERR") || strings.HasPrefix(out, "MOVED") {
		c.t.Fatalf("node %d: %v: %q, %v", node, command, out, err)
	}
	return strings.TrimSpace(out)
}

// firstOwner is the node that had a key's slot when the cluster was started.
func (c *clusterTest) firstOwner(key string) int {
	return (int(slotOf([]byte(key)))*len(c.Nodes) + len(c.Nodes) - 1) / slotCount
}

// TestCluster: rows of one artefact go to the nodes of their slots and are found there,
// by key and by a scan of all nodes; a slot that has moved is followed; an earlier
// process is fenced in each slot; a key of another type is its row's matter; a node
// that is killed and comes back has every row.
func TestCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	started, err := services.StartRedisCluster(ctx, t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	c := &clusterTest{started, t, ctx}
	j := start(t, vfs.NewMem(), 1, people(), []int{0}, c.with())
	b, ids := manyPeople(clusterPeople, "")
	a, bad := j.seal(b)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	j.settle(a)
	for i := range c.Nodes {
		if k, _ := strconv.Atoi(c.ask(i, "EVAL", "return #redis.call('KEYS', 'p:*')", "0")); k < clusterPeople/6 {
			t.Errorf("node %d has %d keys of %d", i, k, clusterPeople)
		}
	}
	expectPeople(t, c.with(), clusterPeople, "", ids)
	expectPeople(t, c.with("lookup.cache", "FULL", "lookup.full-cache.periodic-reload.interval", "1 h"), clusterPeople, "", ids)

	c.scanWhileSlotMoves(j.table)
	c.followsSlots(j)
	j2 := start(t, vfs.NewMem(), 2, people(), []int{0}, c.with())
	c.fencesEarlierRun(j2)
	c.refusesOtherType(j2)
	c.outlivesNode(ids)
	if _, err := New(vfs.NewMem(), "/staging").OpenSink(ctx, tableOf(t, New(vfs.NewMem(), ""), people(), []int{0}, map[string]string{keyURL: "redis://" + c.Nodes[0].Direct()}), conntest.OwnerOf(1, 1)); err == nil || !strings.Contains(err.Error(), "is a node of a cluster") {
		t.Errorf("a node of a cluster as a server: %v", err)
	}
}

// followsSlots: the first row of a slot without keys comes after the slot has moved. Rows
// that come while it moves wait for it, whichever of its keys has gone first: none is
// written beside the key that is still to come, and the lane does not stop.
func (c *clusterTest) followsSlots(j *job) {
	c.t.Helper()
	const key, id = "p:100000", 100000
	slot, at := int(slotOf([]byte(key))), (c.firstOwner(key)+1)%len(c.Nodes)
	c.setOwner(slot, at)
	moved, _ := j.seal(batchOf(people(), nil, []int64{id}, []string{"moved"}))
	j.settle(moved)
	if out := c.ask(at, "HGET", key, "name"); out != "moved" {
		c.t.Errorf("the row of the slot that has moved: %q", out)
	}
	for i, first := range []string{"p:", fencePrefix} {
		name := "moved again " + strconv.Itoa(i)
		again, _ := j.seal(batchOf(people(), nil, []int64{id}, []string{name}))
		next := (at + 1) % len(c.Nodes)
		c.moveSlot(slot, at, next, first, func() {
			var stop *outbox.StopError
			if err := j.publish(again)[0]; err == nil || errors.As(err, &stop) || errors.Is(err, connector.ErrRefused) {
				c.t.Errorf("published while %s* has gone and the rest has not: %v", first, err)
			}
		})
		at = next
		j.settle(again)
		if out := c.ask(at, "HGET", key, "name"); out != name {
			c.t.Errorf("after the move the row is %q, want %q", out, name)
		}
	}
}

// fencesEarlierRun: a later run writes; what an earlier one sends afterwards is kept out.
func (c *clusterTest) fencesEarlierRun(later *job) {
	c.t.Helper()
	b, _ := manyPeople(clusterPeople, "b")
	a, _ := later.seal(b)
	later.settle(a)
	client, _, err := connect(later.table.Options)
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	old := &clusterSender{client: client.(*goredis.ClusterClient), request: 20 * time.Second, wrong: newWrongKeys(time.Now), typ: typeHash, tags: slotTags()}
	lane := outbox.Lane{Name: "fence", JobEpoch: 2, Epoch: 7}
	body, units, err := (&encoder{layout: layoutOf(c.t, later.table)}).Append(nil, b, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := old.Send(c.ctx, lane, &outbox.Message{ID: "new", Units: units, Body: body}); err != nil {
		c.t.Fatal(err)
	}
	for _, late := range []outbox.Lane{{Name: "fence", JobEpoch: 1, Epoch: 9}, {Name: "fence", JobEpoch: 2, Epoch: 6}} {
		if err := old.Send(c.ctx, late, &outbox.Message{ID: "old", Units: units, Body: body}); !errors.Is(err, connector.ErrFenced) {
			c.t.Errorf("epoch %d of run %d may write: %v", late.Epoch, late.JobEpoch, err)
		}
	}
}

// refusesOtherType: a key of another type is refused by name, and the others are written.
func (c *clusterTest) refusesOtherType(j *job) {
	c.t.Helper()
	at := c.firstOwner("p:3")
	c.ask(at, "DEL", "p:3")
	c.ask(at, "SET", "p:3", "text")
	b, _ := manyPeople(clusterPeople, "c")
	a, _ := j.seal(b)
	if err := j.publish(a)[0]; !errors.Is(err, connector.ErrRefused) || !strings.Contains(err.Error(), "WRONGTYPE") {
		c.t.Fatalf("a key of another type: %v", err)
	}
	if out := c.ask(c.firstOwner("p:4"), "HGET", "p:4", "name"); out != "name4c" {
		c.t.Errorf("the row of another key is %q", out)
	}
	c.ask(at, "DEL", "p:3")
}

// outlivesNode: a node is killed, and comes back with its append-only file.
func (c *clusterTest) outlivesNode(ids batch.Vec) {
	c.t.Helper()
	j := start(c.t, vfs.NewMem(), 3, people(), []int{0}, c.with())
	c.Nodes[1].Kill()
	b, _ := manyPeople(clusterPeople, "d")
	a, _ := j.seal(b)
	if err := j.publish(a)[0]; err == nil {
		c.t.Fatal("published without a node")
	}
	if err := c.Nodes[1].Start(c.ctx); err != nil {
		c.t.Fatal(err)
	}
	j.settle(a)
	expectPeople(c.t, c.with(), clusterPeople, "d", ids)
}

// moveSlot moves a slot from a node to another one as redis-cli does, key by key, those
// with a prefix first; between is called when they have gone.
func (c *clusterTest) moveSlot(slot, from, to int, prefix string, between func()) {
	c.t.Helper()
	number := strconv.Itoa(slot)
	c.ask(to, "CLUSTER", "SETSLOT", number, "IMPORTING", c.ask(from, "CLUSTER", "MYID"))
	c.ask(from, "CLUSTER", "SETSLOT", number, "MIGRATING", c.ask(to, "CLUSTER", "MYID"))
	host, port, _ := strings.Cut(c.Nodes[to].Direct(), ":")
	move := func(prefix string) {
		for key := range strings.FieldsSeq(c.ask(from, "CLUSTER", "GETKEYSINSLOT", number, "100")) {
			if strings.HasPrefix(key, prefix) {
				c.ask(from, "MIGRATE", host, port, key, "0", "10000", "REPLACE")
			}
		}
	}
	move(prefix)
	between()
	move("")
	c.setOwner(slot, to)
}

// setOwner tells all nodes that a slot is at one of them, which hears it first: else it
// would be nobody's for a moment.
func (c *clusterTest) setOwner(slot, owner int) {
	c.t.Helper()
	id := c.ask(owner, "CLUSTER", "MYID")
	for _, node := range []int{owner, 0, 1, 2} {
		c.ask(node, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", id)
	}
}

// scanWhileSlotMoves: a key that moves from a node that is still to be scanned to one
// that was is found all the same. The slot comes back afterwards.
func (c *clusterTest) scanWhileSlotMoves(table *connector.Table) {
	c.t.Helper()
	client, _, err := connect(table.Options)
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	l, err := newLookup(table, []int{0}, []int{1})
	if err != nil {
		c.t.Fatal(err)
	}
	l.client = client
	names := map[string]bool{}
	var back func()
	err = l.scan(c.ctx, func(some []string) error {
		for _, name := range some {
			names[name] = true
		}
		for i := 0; back == nil; i++ {
			name := "p:" + strconv.Itoa(i)
			if from, to := c.firstOwner(name), c.firstOwner(some[0]); from != to {
				slot := int(slotOf([]byte(name)))
				c.moveSlot(slot, from, to, "", func() {})
				back = func() { c.moveSlot(slot, to, from, "", func() {}) }
			}
		}
		return nil
	})
	if err != nil || len(names) != clusterPeople {
		c.t.Errorf("%d keys of %d are found while a slot moves, %v", len(names), clusterPeople, err)
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
