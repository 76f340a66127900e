//go:build services

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// clickHouse starts a server for one test.
func clickHouse(t testing.TB) *services.ClickHouse {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := services.StartClickHouse(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-c.Done():
			t.Errorf("ClickHouse ended by itself:\n%s", c.Log())
		default:
		}
		c.Close()
	})
	return c
}

func query(t testing.TB, c *services.ClickHouse, statement string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := c.Query(ctx, statement)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// clickHouseTable reads a table as ClickHouse itself has it, but for the column
// that holds the blocks' ids.
func clickHouseTable(t testing.TB, c *services.ClickHouse, table string) multiset {
	t.Helper()
	var names, exprs []string
	for line := range strings.Lines(query(t, c, "SELECT name, type FROM system.columns WHERE database = 'default' AND table = '"+table+"' AND name != '_mr_artifact' ORDER BY name IN ('dt', 'hr'), position")) {
		name, typ, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		names = append(names, name)
		name = "`" + name + "`"
		if strings.Contains(typ, "DateTime64") {
			name = "toUnixTimestamp64Micro(" + name + ")"
		}
		exprs = append(exprs, name)
	}
	out := query(t, c, "SELECT "+strings.Join(exprs, ", ")+" FROM `"+table+"` SETTINGS output_format_json_quote_64bit_integers = 0 FORMAT JSONCompactEachRow")
	rows := multiset{}
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	for {
		var values []any
		err := d.Decode(&values)
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		fields := make([]string, len(values))
		for i, v := range values {
			fields[i] = names[i] + "=NULL"
			if v != nil {
				fields[i] = fmt.Sprintf("%s=%v", names[i], v)
			}
		}
		rows[strings.Join(fields, " ")]++
	}
}

// TestKilledJobIntoClickHouse kills the real binary with SIGKILL at random moments
// and, beside it, kills the server, loses its answers and cuts its connections.
func TestKilledJobIntoClickHouse(t *testing.T) {
	c := clickHouse(t)
	sql, err := os.ReadFile("testdata/kill_clickhouse.sql")
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]int{}
	rng := rand.New(rand.NewPCG(1, 2))
	disturb := func(*world, *process, int) {
		after := int64(2_000 + rng.IntN(40_000))
		switch rng.IntN(6) {
		case 0:
			c.Proxy.Break(services.Fault{Kind: services.LoseReply, After: after})
			faults["answers lost"]++
		case 1:
			c.Proxy.Break(services.Fault{Kind: services.CutRequest, After: after})
			faults["connections cut"]++
		case 2:
			c.Kill()
			c.Proxy.CloseAll()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := c.Start(ctx); err != nil {
				t.Fatal(err)
			}
			faults["server kills"]++
		}
	}
	text := func(string) string { return strings.ReplaceAll(string(sql), "${URL}", c.URL()) }
	killRunOf(t, killRunOptions{kills: 10, events: 8_000, sql: text, during: disturb, calm: c.Proxy.Mend, verify: func(w *world, want *outcome) {
		w.run("ledger", "show", "--check").must(t, 0)
		for table, rows := range want.rows {
			compare(t, table, clickHouseTable(t, c, table), rows)
		}
		w.verifyLedger(want)
		w.verifyDead(want)
	}})
	t.Logf("beside the kills: %v", faults)
}

// intoClickHouse changes the WITH clauses of the shipped job, and nothing else.
func intoClickHouse(sql, url string) string {
	with := func(table string) string {
		return "WITH ('connector' = 'clickhouse', 'url' = '" + url + "', 'table-name' = '" + table + "', 'sink.create-table' = 'true', 'request.timeout' = '10 s')"
	}
	sql = regexp.MustCompile(`'path' = '\$\{OUT:-\./lake\}/(\w+)'\) LIKE`).ReplaceAllString(sql, "'table-name' = '$1') LIKE")
	return regexp.MustCompile(`WITH \(\s*'connector' = 'filesystem',\s*'path' = '\$\{OUT:-\./lake\}/(\w+)'[^)]*\)`).ReplaceAllStringFunc(sql, func(s string) string {
		if strings.Contains(s, "/actor_hour'") {
			return with("actor_hour")
		}
		return with("event_table")
	})
}

// TestGitHubJobIntoClickHouse runs the shipped job, with other WITH clauses, and
// kills it where a connection breaks: before a block arrives, in the middle of one,
// before and after its answer. Then every table has the rows of a run into Parquet
// files that nobody disturbed.
func TestGitHubJobIntoClickHouse(t *testing.T) {
	const events = 4_000
	sql, want, _ := undisturbed(t, events)
	c := clickHouse(t)
	w, args := githubWorld(t, events)
	w.file("job.sql", intoClickHouse(sql, c.URL()))
	args = append(args, "OUT="+w.lake)
	kills := 0
	for _, after := range []int64{4_000, 12_000, 30_000} {
		for _, kind := range []services.FaultKind{services.CutRequest, services.LoseReply, services.Hang} {
			_, struck := c.Proxy.Struck()
			c.Proxy.Break(services.Fault{Kind: kind, After: after})
			p := w.start(args...)
			select {
			case <-struck:
				kills++
			case <-p.ended:
			}
			p.kill()
		}
	}
	c.Proxy.Mend()
	w.run(args...).must(t, 0)
	w.run("ledger", "show", "--check").must(t, 0)
	if kills < 3 {
		t.Errorf("only %d kills", kills)
	}
	rows := 0
	for _, table := range slices.Sorted(maps.Keys(want)) {
		compare(t, table, clickHouseTable(t, c, table), want[table])
		rows += want[table].total()
	}
	t.Logf("%d kills, %d rows in %d tables are equal", kills, rows, len(want))
}
