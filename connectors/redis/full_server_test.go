//go:build services

package redis

import (
	"context"
	"fmt"
	"testing"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// TestServerGivesAWholeTable: 5,000 keys among others, read by scans of the real
// server; a reading that the server does not end is no table.
func TestServerGivesAWholeTable(t *testing.T) {
	const n = 5000
	ask(t, "EVAL", fmt.Sprintf("for i = 0, %d do redis.call('HSET', 'whole[x]:' .. i, 'name', 'n' .. i, 'other', i); redis.call('SET', 'wholex:' .. i, 'no row') end "+
		"redis.call('HSET', 'whole[x]:007', 'name', 'no row'); redis.call('SADD', 'whole[x]:members', 'no row')", n-1), "0")
	var objects []string
	want := make([][]string, n+1)
	for i := range n {
		objects = append(objects, fmt.Sprintf(`{"uid":%d}`, i))
		want[i] = []string{fmt.Sprintf("n%d", i)}
	}
	asked := rowsOf(t, people(), append(objects, `{"uid":-1}`)...)
	with := map[string]string{"key": "whole[x]:{uid}", "lookup.cache": "FULL", fullcache.KeyInterval: "1 ms", "request.timeout": "5 s"}
	l := openLookup(t, people(), []int{0}, with, []int{0}, []int{1})
	expectFound(t, patiently(t, l, asked.Cols[0]), want...)

	shared.Kill()
	shared.Proxy.CloseAll()
	if _, err := found(l, asked.Cols[0]); err == nil {
		t.Error("found without a server")
	}
	if err := shared.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	ask(t, "HSET", "whole[x]:3", "name", "changed")
	want[3] = []string{"changed"}
	expectFound(t, patiently(t, l, asked.Cols[0]), want...)

	ask(t, "ZADD", "tops", "1.5", "ann", "2", "bob")
	ranked := []connector.Column{column("name", types.NewString().NotNull()), column("pts", types.NewDouble())}
	scores := openLookup(t, ranked, []int{0}, map[string]string{"data-type": "zset", "key": "tops", "score": "pts", "lookup.cache": "FULL"}, []int{1}, []int{0})
	expectFound(t, patiently(t, scores, rowsOf(t, ranked, `{"name":"","pts":2}`, `{"name":"","pts":3}`).Cols[1]), []string{"bob"}, nil)
}
