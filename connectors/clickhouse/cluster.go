package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const distributedEngine = "Distributed"

// distribution is what a Distributed table says of the tables below it.
type distribution struct {
	cluster, database, table string
	// key is the sharding expression, "" where there is none.
	key string
	// shards in the order of their numbers.
	shards []shardOf
}

// shardOf is a shard of a cluster: the replicas' addresses.
type shardOf struct {
	number, weight int64
	hosts          []string
}

// parseDistributed reads the engine of a Distributed table as the server prints it.
func parseDistributed(full string) (d distribution, err error) {
	_, rest, ok := strings.Cut(full, "(")
	end := strings.LastIndexByte(rest, ')')
	if !ok || end < 0 {
		return d, fmt.Errorf("engine %q cannot be read", full)
	}
	args := splitTop(rest[:end])
	if len(args) < 3 {
		return d, fmt.Errorf("engine %q cannot be read", full)
	}
	for i, to := range []*string{&d.cluster, &d.database, &d.table} {
		text := strings.TrimSpace(args[i])
		if p := (typeParser{s: text}); len(text) > 0 && text[0] == '\'' {
			if text, err = p.quoted('\''); err != nil {
				return d, fmt.Errorf("engine %q: %w", full, err)
			}
		}
		if text = strings.Trim(text, "`"); text == "" || strings.ContainsAny(text, "{}()") {
			return d, fmt.Errorf("not_yet: engine %s, whose cluster, database or table is not named", full)
		}
		*to = text
	}
	if len(args) > 3 {
		d.key = strings.TrimSpace(args[3])
	}
	return d, nil
}

// distribution reads where the rows of a Distributed table lie.
func (s *server) distribution(ctx context.Context, def *definition) (distribution, error) {
	full := def.full
	if i := strings.Index(full, " SETTINGS "); i > 0 {
		full = full[:i]
	}
	d, err := parseDistributed(full)
	if err != nil {
		return d, err
	}
	err = s.retried(ctx, func(ctx context.Context) error {
		d.shards = nil
		rows, err := s.conn.Query(ctx, "SELECT toInt64(shard_num), toInt64(shard_weight), host_name, toInt64(port) FROM system.clusters WHERE cluster = "+
			quoteText(d.cluster)+" ORDER BY shard_num, replica_num")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var number, weight, port int64
			var host string
			if err := rows.Scan(&number, &weight, &host, &port); err != nil {
				return err
			}
			if n := len(d.shards); n == 0 || d.shards[n-1].number != number {
				d.shards = append(d.shards, shardOf{number: number, weight: weight})
			}
			if strings.Contains(host, ":") {
				host = "[" + host + "]"
			}
			sh := &d.shards[len(d.shards)-1]
			sh.hosts = append(sh.hosts, fmt.Sprintf("%s:%d", host, port))
		}
		return rows.Err()
	})
	if err != nil {
		return d, fmt.Errorf("reading cluster %s: %w", d.cluster, err)
	}
	if len(d.shards) == 0 {
		return d, fmt.Errorf("the server knows no cluster %s", d.cluster)
	}
	return d, nil
}

// slots are the shards by the remainder of the sharding key: each as often as its
// weight says.
func (d *distribution) slots() ([]int, error) {
	var out []int
	for i, sh := range d.shards {
		for range sh.weight {
			out = append(out, i)
		}
	}
	const most = 1 << 20
	if len(out) == 0 || len(out) > most {
		return nil, fmt.Errorf("the weights of cluster %s add up to %d", d.cluster, len(out))
	}
	return out, nil
}

// same reports that two readings of a cluster place rows alike.
func (d *distribution) same(o *distribution) bool {
	return d.cluster == o.cluster && d.database == o.database && d.table == o.table && d.key == o.key &&
		slices.EqualFunc(d.shards, o.shards, func(a, b shardOf) bool {
			return a.number == b.number && a.weight == b.weight && slices.Equal(a.hosts, b.hosts)
		})
}

var errCluster = errors.New("the cluster, or the sharding key of the table, has changed: restart the job")
