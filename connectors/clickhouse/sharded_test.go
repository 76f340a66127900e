package clickhouse

import (
	"context"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
)

// TestHurryReachesEveryShard: once a Distributed table is about to be closed, requests
// to the servers of all its shards, and to its own, are bounded.
func TestHurryReachesEveryShard(t *testing.T) {
	one := func() *server {
		s := &server{}
		s.soon, s.hurry = context.WithCancel(context.Background())
		return s
	}
	s := &sharded{server: one(), sinks: []*sink{{server: one()}, {server: one()}}}
	var h connector.Hurrier = s
	h.Hurry()
	for i, srv := range []*server{s.server, s.sinks[0].server, s.sinks[1].server} {
		if srv.soon.Err() == nil {
			t.Errorf("server %d was not told", i)
		}
	}
}
