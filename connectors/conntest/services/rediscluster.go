package services

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// RedisCluster is a Redis Cluster of primaries without replicas, each with a third, or so,
// of the slots. Clients connect to the servers themselves: a cluster tells them where.
type RedisCluster struct {
	Nodes []*Redis
}

// StartRedisCluster starts a cluster of so many primaries in dir and waits until it takes
// keys.
func StartRedisCluster(ctx context.Context, dir string, primaries int) (*RedisCluster, error) {
	c := &RedisCluster{}
	fail := func(err error) (*RedisCluster, error) {
		c.Close()
		return nil, fmt.Errorf("starting a Redis Cluster: %w", err)
	}
	bus, err := Ports(primaries)
	if err != nil {
		return fail(err)
	}
	for i := range primaries {
		n, err := StartRedis(ctx, filepath.Join(dir, strconv.Itoa(i)), "cluster-enabled yes", "cluster-port "+strconv.Itoa(bus[i]),
			"cluster-node-timeout 60000", "cluster-require-full-coverage no")
		if err != nil {
			return fail(err)
		}
		c.Nodes = append(c.Nodes, n)
		if _, err := n.Ask(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(16384*i/primaries), strconv.Itoa(16384*(i+1)/primaries-1)); err != nil {
			return fail(err)
		}
	}
	for i, n := range c.Nodes[1:] {
		if _, err := n.Ask(ctx, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(c.Nodes[0].port), strconv.Itoa(bus[0])); err != nil {
			return fail(fmt.Errorf("node %d: %w", i+1, err))
		}
	}
	for _, n := range c.Nodes {
		if err := until(ctx, func() error {
			info, err := n.Ask(ctx, "CLUSTER", "INFO")
			if err == nil && !(strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_assigned:16384") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", primaries))) {
				err = errors.New(info)
			}
			return err
		}); err != nil {
			return fail(err)
		}
	}
	return c, nil
}

// Addresses are the nodes, as option `cluster-nodes` has them.
func (c *RedisCluster) Addresses() string {
	var out []string
	for _, n := range c.Nodes {
		out = append(out, n.Direct())
	}
	return strings.Join(out, ",")
}

// Close ends the servers.
func (c *RedisCluster) Close() {
	for _, n := range c.Nodes {
		n.Close()
	}
}

// RedisSentinel is a primary with a replica and a Sentinel that watches it as "mymaster".
type RedisSentinel struct {
	Primary, Replica *Redis
	Sentinel         *Redis
}

// StartRedisSentinel starts the three in dir and waits until the Sentinel knows both.
func StartRedisSentinel(ctx context.Context, dir string) (*RedisSentinel, error) {
	s := &RedisSentinel{}
	fail := func(err error) (*RedisSentinel, error) {
		s.Close()
		return nil, fmt.Errorf("starting Redis with Sentinel: %w", err)
	}
	var err error
	if s.Primary, err = StartRedis(ctx, filepath.Join(dir, "primary")); err != nil {
		return fail(err)
	}
	if s.Replica, err = StartRedis(ctx, filepath.Join(dir, "replica"), "replicaof 127.0.0.1 "+strconv.Itoa(s.Primary.port)); err != nil {
		return fail(err)
	}
	if s.Sentinel, err = startSentinel(ctx, filepath.Join(dir, "sentinel"), "sentinel monitor mymaster 127.0.0.1 "+strconv.Itoa(s.Primary.port)+" 1",
		"sentinel down-after-milliseconds mymaster 3000", "sentinel failover-timeout mymaster 20000"); err != nil {
		return fail(err)
	}
	err = until(ctx, func() error {
		out, err := s.Sentinel.Ask(ctx, "SENTINEL", "REPLICAS", "mymaster")
		if err == nil && !strings.Contains(out, strconv.Itoa(s.Replica.port)) {
			err = errors.New("the Sentinel does not know the replica: " + out)
		}
		if err == nil {
			if out, err = s.Replica.Ask(ctx, "INFO", "replication"); err == nil && !strings.Contains(out, "master_link_status:up") {
				err = errors.New("the replica is not in step: " + out)
			}
		}
		return err
	})
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// Close ends the servers.
func (s *RedisSentinel) Close() {
	for _, r := range []*Redis{s.Sentinel, s.Replica, s.Primary} {
		if r != nil {
			r.Close()
		}
	}
}

// until asks until there is no error, or ctx ends.
func until(ctx context.Context, f func() error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
