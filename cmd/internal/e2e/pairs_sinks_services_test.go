//go:build services

package e2e

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/hive/metastore"
)

// pairSink is one of the two systems that one job writes into. A cycle has tables of
// its own, whose names end with the cycle's.
type pairSink struct {
	name string
	// into changes the WITH clauses of the shipped job, and nothing else.
	into func(sql, cycle string) string
	// prepare makes what must be there before the job starts.
	prepare func(w *world, cycle string)
	// rows are a table's as the system itself has them; arrive, which may be nil, is
	// called before the first of them.
	arrive func(w *world, cycle string)
	rows   func(w *world, cycle, table string) multiset
	// servers are what can be killed.
	servers []pairServer
}

type pairServer struct {
	name  string
	kill  func()
	start func(context.Context) error
}

// jobTables are the names of the tables that the shipped job makes.
var jobTables = regexp.MustCompile("(CREATE (?:WIDE )?TABLE|INSERT INTO|LIKE) (`?)(\\w+)(`?)")

// jobInserts are its INSERTs.
var jobInserts = regexp.MustCompile(`(?ms)^INSERT INTO .*?;\n`)

// jobPath is where the shipped job says where a table lies.
var jobPath = regexp.MustCompile(`'path' = '\$\{OUT:-\./lake\}/(\w+)'\) LIKE`)

// jobStorage is the whole WITH clause of the two tables that name no other one.
var jobStorage = regexp.MustCompile(`WITH \(\s*'connector' = 'filesystem',\s*'path' = '\$\{OUT:-\./lake\}/(\w+)'[^)]*\)`)

// intoPair is the shipped job with every table twice, once in each system, written by
// the INSERTs of one STATEMENT SET. Files and blocks are small, so that there are
// commits for kills to meet.
func intoPair(sql string, pair [2]*pairSink, cycle string) string {
	const often = "SET 'execution.checkpointing.interval' = '500 ms';\n" +
		// Lateness by idleness depends on time; the rows must not.
		"SET 'table.exec.source.idle-timeout' = '0 ms';\n" +
		"SET 'start.retry-timeout' = '2 min';\n"
	first := strings.Index(sql, "CREATE TABLE")
	sets, sql := sql[:first], strings.Replace(sql[first:], "'10 min'", "'1 s'", 1)
	var tables, inserts strings.Builder
	for i, sink := range pair {
		text := sink.into(sql, cycle)
		if i == 1 {
			text = jobTables.ReplaceAllString(text, "$1 $2${3}_too$4")
		}
		for _, insert := range jobInserts.FindAllString(text, -1) {
			inserts.WriteString(insert)
		}
		tables.WriteString(jobInserts.ReplaceAllString(text, "") + "\n")
	}
	return sets + often + tables.String() + "EXECUTE STATEMENT SET BEGIN\n" + inserts.String() + "END;\n"
}

// hdfsSink are tables of a Hive Metastore that lie in HDFS.
func hdfsSink(t *testing.T) *pairSink {
	h, _ := startHDFS(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	m, err := services.StartMetastore(ctx, services.MetastoreOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	client := metastore.New(metastore.Options{Addresses: []string{m.Address}})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return &pairSink{
		name: "Hive on HDFS",
		into: func(sql, cycle string) string {
			return (&warehouse{Metastore: m}).hiveTables(withoutCoverage(sql), cycle)
		},
		prepare: func(w *world, cycle string) {
			w.writeToHDFS(h, h.Addresses[0], "/"+cycle)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := client.CreateDatabase(ctx, &metastore.Database{Name: cycle, Location: w.out}); err != nil {
				t.Fatal(err)
			}
		},
		arrive: func(w *world, _ string) { w.fetch() },
		rows: func(w *world, cycle, table string) multiset {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			got, err := client.PartitionNames(ctx, cycle, table)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(w.lake, table)
			parts := map[string]bool{}
			for _, f := range tableFiles(t, dir) {
				part, err := filepath.Rel(dir, filepath.Dir(f))
				if err != nil {
					t.Fatal(err)
				}
				parts[filepath.ToSlash(part)] = true
			}
			if want := slices.Sorted(maps.Keys(parts)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
				t.Errorf("table %s: the metastore has the partitions %v, the directory %v", table, got, want)
			}
			return readTable(t, dir)
		},
		servers: []pairServer{
			{"the NameNode", h.NameNodes[0].Kill, func(ctx context.Context) error {
				if err := h.NameNodes[0].Start(ctx); err != nil {
					return err
				}
				return h.Await(ctx, 0, 1)
			}},
			{"the DataNode", h.DataNodes[0].Kill, h.DataNodes[0].Start},
			{"the metastore", m.Kill, m.Start},
		},
	}
}

// clickHouseSink are tables of ClickHouse.
func clickHouseSink(t *testing.T) *pairSink {
	c := clickHouse(t)
	return &pairSink{
		name: "ClickHouse",
		into: func(sql, cycle string) string {
			sql = intoClickHouse(sql, c.URL())
			sql = regexp.MustCompile(`'table-name' = '(\w+)'`).ReplaceAllString(sql, "'table-name' = '${1}_"+cycle+"'")
			return strings.ReplaceAll(sql, "'request.timeout' = '10 s'", "'request.timeout' = '30 s', 'sink.buffer-flush.interval' = '1 s'")
		},
		prepare: func(*world, string) {},
		rows:    func(_ *world, cycle, table string) multiset { return clickHouseTable(t, c, table+"_"+cycle) },
		servers: []pairServer{{"ClickHouse", func() { c.Kill(); c.Proxy.CloseAll() }, c.Start}},
	}
}

// kafkaSink are topics of a cluster, read by a client of their own.
func kafkaSink(t *testing.T, k *services.Kafka) *pairSink {
	return &pairSink{
		name: "Kafka",
		into: func(sql, cycle string) string {
			sql = regexp.MustCompile(`PARTITIONED BY \(dt, hr\)\s+`).ReplaceAllString(sql, "")
			sql = jobPath.ReplaceAllString(sql, "'topic' = '${1}_"+cycle+"') LIKE")
			return jobStorage.ReplaceAllString(sql, "WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = '"+k.Addrs()+
				"', 'properties.transaction.timeout.ms' = '30000', 'topic' = '${1}_"+cycle+"', 'format' = 'json')")
		},
		prepare: func(w *world, cycle string) {
			admin := kadm.NewClient(kafkaClient(t, k))
			b, err := os.ReadFile(filepath.Join(w.dir, "job.sql"))
			if err != nil {
				t.Fatal(err)
			}
			var topics []string
			for _, m := range jobTables.FindAllStringSubmatch(string(b), -1) {
				if strings.HasPrefix(m[1], "CREATE") {
					topics = append(topics, m[3]+"_"+cycle)
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			made, err := admin.CreateTopics(ctx, 2, 1, nil, topics...)
			if err == nil {
				err = made.Error()
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		rows: func(_ *world, cycle, table string) multiset {
			rows := multiset{}
			for _, r := range kafkaRecords(t, k, table+"_"+cycle) {
				rows[kafkaRow(t, r.Value)]++
			}
			return rows
		},
		servers: []pairServer{{"the broker", k.Brokers[0].Kill, k.Brokers[0].Start}},
	}
}
