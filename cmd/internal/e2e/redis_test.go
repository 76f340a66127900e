//go:build services

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// redisTable reads the keys of a table, hashes or strings of JSON, as Redis itself
// has them; columns are the fields in order behind the key's column.
func redisTable(t testing.TB, r *services.Redis, table, key string, columns ...string) multiset {
	t.Helper()
	const script = "local out = {} for _, k in ipairs(redis.call('KEYS', ARGV[1])) do " +
		"if redis.call('TYPE', k).ok == 'string' then out[#out+1] = {k, redis.call('GET', k)} else out[#out+1] = {k, redis.call('HGETALL', k)} end end " +
		"return cjson.encode(out)"
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := r.Ask(ctx, "EVAL", script, "0", table+":*")
	if err != nil {
		t.Fatal(err)
	}
	if out == "{}" {
		return multiset{}
	}
	var keys [][2]json.RawMessage
	if err := json.Unmarshal([]byte(out), &keys); err != nil {
		t.Fatal(err)
	}
	rows := multiset{}
	for _, k := range keys {
		var name string
		if err := json.Unmarshal(k[0], &name); err != nil {
			t.Fatal(err)
		}
		values := map[string]string{}
		var flat []string
		if json.Unmarshal(k[1], &flat) == nil {
			for i := 0; i < len(flat); i += 2 {
				values[flat[i]] = flat[i+1]
			}
		} else {
			var text string
			object := map[string]any{}
			if err := json.Unmarshal(k[1], &text); err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&object); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for c, v := range object {
				if v != nil {
					values[c] = fmt.Sprint(v)
				}
			}
		}
		fields := []string{key + "=" + microsText(strings.TrimPrefix(name, table+":"))}
		for _, c := range columns {
			v, ok := values[c]
			if !ok {
				v = "NULL"
			}
			fields = append(fields, c+"="+microsText(v))
		}
		rows[strings.Join(fields, " ")]++
	}
	return rows
}

// TestKilledJobIntoRedis kills the real binary with SIGKILL at random moments and,
// beside it, kills the server, loses its answers and cuts its connections.
func TestKilledJobIntoRedis(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	r, err := services.StartRedis(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	sql, err := os.ReadFile("testdata/kill_redis.sql")
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]int{}
	rng := rand.New(rand.NewPCG(1, 2))
	disturb := func(*world, *process, int) {
		after := int64(500 + rng.IntN(40_000))
		switch rng.IntN(4) {
		case 0:
			r.Proxy.Break(services.Fault{Kind: services.LoseReply, After: after})
			faults["answers lost"]++
		case 1:
			r.Proxy.Break(services.Fault{Kind: services.CutRequest, After: after})
			faults["connections cut"]++
		case 2:
			r.Kill()
			r.Proxy.CloseAll()
			if err := r.Start(ctx); err != nil {
				t.Fatal(err)
			}
			faults["server kills"]++
		}
	}
	text := func(string) string { return strings.ReplaceAll(string(sql), "${URL}", r.URL()) }
	columns := map[string][]string{
		"events": {"event_id", "type", "actor_id", "actor_login"}, "star": {"event_id", "actor_id", "repo_name"},
		"push_minute": {"window_start", "window_end", "pushes", "commits", "top_actor"},
	}
	killRunOf(t, killRunOptions{kills: 6, events: 4_000, sql: text, during: disturb, calm: r.Proxy.Mend, verify: func(w *world, want *outcome) {
		w.run("ledger", "show", "--check").must(t, 0)
		for table, rows := range want.rows {
			c, ok := columns[table]
			if !ok {
				delete(want.rows, table)
				delete(want.accounts, table)
				continue
			}
			once := multiset{}
			for row := range rows {
				once[row] = 1
			}
			compare(t, table, redisTable(t, r, table, c[0], c[1:]...), once)
		}
		w.verifyLedger(want)
	}})
	t.Logf("beside the kills: %v", faults)
}
