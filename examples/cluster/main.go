package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/hive/metastore"
	githubevents "github.com/millrace/millrace/examples/github-events"
)

// database is the metastore's.
const database = "github"

func main() {
	binary := flag.String("millrace", "bin/millrace", "the binary that runs the job")
	events := flag.Int("events", 4000, "how many events are in the topics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binary, *events); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// example is one run of the job: the binary, a directory for everything.
type example struct {
	binary, dir string
}

func run(ctx context.Context, binary string, events int) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return fmt.Errorf("finding the binary: %w", err)
	}
	dir, err := os.MkdirTemp("", "millrace-cluster-")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	x := example{binary, dir}

	fmt.Println("1. Start HDFS, a Hive Metastore and ClickHouse (the first time they are fetched: some minutes)")
	hdfs, err := services.StartHDFS(ctx, services.HDFSOptions{Dir: filepath.Join(dir, "hdfs")})
	if err != nil {
		return err
	}
	defer hdfs.Close()
	lake := "hdfs://" + hdfs.Addresses[0] + "/lake"
	fmt.Println("   HDFS             hdfs://" + hdfs.Addresses[0])
	meta, err := services.StartMetastore(ctx, services.MetastoreOptions{
		Dir: filepath.Join(dir, "metastore"), DefaultFS: "hdfs://" + hdfs.Addresses[0], Warehouse: lake + "/" + database})
	if err != nil {
		return err
	}
	defer meta.Kill()
	fmt.Println("   Hive Metastore   " + meta.URI)
	house, err := services.StartClickHouse(ctx, filepath.Join(dir, "clickhouse"))
	if err != nil {
		return err
	}
	defer house.Close()
	fmt.Println("   ClickHouse       " + house.URL())
	hive := metastore.New(metastore.Options{Addresses: []string{meta.Address}})
	defer hive.Close()
	if err := hive.CreateDatabase(ctx, &metastore.Database{Name: database}); err != nil {
		return fmt.Errorf("creating database %s: %w", database, err)
	}

	fmt.Printf("\n2. Fill %d topics with %d events\n", len(githubevents.Topics), events)
	sql, err := x.files()
	if err != nil {
		return err
	}
	if err := x.fill(ctx, events); err != nil {
		return err
	}

	fmt.Println("\n3. Run the job twice at once: into Hive on HDFS, and into ClickHouse")
	jobs := map[string]string{"hive.sql": intoHive(sql, meta.URI), "clickhouse.sql": intoClickHouse(sql, house.URL())}
	for name, text := range jobs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the job: %w", err)
		}
	}
	begin := time.Now()
	if _, err := x.millrace(ctx, nil, "run", "hive.sql", "clickhouse.sql", "-f", "ddl", "--set", "OUT="+lake, "--set", "BOUNDED=latest-offset"); err != nil {
		return err
	}
	if _, err := x.millrace(ctx, nil, "ledger", "show", "--check"); err != nil {
		return err
	}
	fmt.Printf("   ended by itself after %.1f s; the ledger is balanced\n", time.Since(begin).Seconds())

	fmt.Println("\n4. What the systems have")
	return x.compare(ctx, tablesOf(sql), lake, hive, house)
}

// files writes the example's files and returns the job.
func (x example) files() (string, error) {
	all := githubevents.Files()
	err := fs.WalkDir(all, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".sql") {
			return err
		}
		b, err := all.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(x.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
	if err != nil {
		return "", fmt.Errorf("writing the job's files: %w", err)
	}
	b, err := all.ReadFile("job.sql")
	return string(b), err
}

// fill makes the topics and the events in them.
func (x example) fill(ctx context.Context, events int) error {
	lines := map[string][]byte{}
	err := githubevents.Generate(githubevents.Options{Events: events}, func(e githubevents.Event) error {
		lines[e.Topic] = append(append(lines[e.Topic], e.Value...), '\n')
		return nil
	})
	if err != nil {
		return fmt.Errorf("making events: %w", err)
	}
	for _, topic := range githubevents.Topics {
		if _, err := x.millrace(ctx, nil, "topics", "create", topic); err != nil {
			return err
		}
		if len(lines[topic]) == 0 {
			continue
		}
		if _, err := x.millrace(ctx, lines[topic], "topics", "produce", topic, "-i", "jsonl"); err != nil {
			return err
		}
	}
	return nil
}

// millrace runs the binary in the example's directory and returns its output.
func (x example) millrace(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, x.binary, append(args, "--progress", "none")...)
	cmd.Dir, cmd.Stdin = x.dir, bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("millrace %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// compare prints each table's rows: those of the Parquet files in HDFS, those that
// the metastore's statistics say, and those that ClickHouse counts.
func (x example) compare(ctx context.Context, tables []string, lake string, hive *metastore.Client, house *services.ClickHouse) error {
	var parts []string
	for _, t := range tables {
		parts = append(parts, fmt.Sprintf("SELECT '%s' AS t, COUNT(*) AS n FROM `%s`", t, t))
	}
	query := strings.Join(parts, " UNION ALL ")
	out, err := x.millrace(ctx, nil, "sql", "-f", "ddl", "-f", "job.sql", "--set", "OUT="+lake, "-o", "csv", "-e", query)
	if err != nil {
		return err
	}
	files, err := counts(out)
	if err != nil {
		return fmt.Errorf("reading the tables in HDFS: %w", err)
	}
	if out, err = house.Query(ctx, query+" FORMAT CSV"); err != nil {
		return err
	}
	blocks, err := counts(out)
	if err != nil {
		return fmt.Errorf("reading ClickHouse's counts: %w", err)
	}
	slices.SortStableFunc(tables, func(a, b string) int { return int(files[b] - files[a]) })
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "TABLE\tPARQUET IN HDFS\tHIVE METASTORE\tPARTITIONS\tCLICKHOUSE\t")
	var differing []string
	for _, t := range tables {
		rows, partitions, err := statistics(ctx, hive, t)
		if err != nil {
			return fmt.Errorf("asking the metastore about table %s: %w", t, err)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", t, files[t], rows, partitions, blocks[t])
		if files[t] != rows || files[t] != blocks[t] {
			differing = append(differing, t)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(differing) > 0 {
		return fmt.Errorf("the systems differ about %s", strings.Join(differing, ", "))
	}
	fmt.Println("\nAll agree.")
	return nil
}

// counts reads lines of a name and a number; another line is a heading.
func counts(text string) (map[string]int64, error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for i, r := range records {
		n, err := strconv.ParseInt(r[len(r)-1], 10, 64)
		if err != nil && i > 0 {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if err == nil {
			out[r[0]] = n
		}
	}
	return out, nil
}

// statistics sums numRows over a table's partitions.
func statistics(ctx context.Context, hive *metastore.Client, table string) (rows int64, partitions int, err error) {
	names, err := hive.PartitionNames(ctx, database, table)
	if err != nil {
		return 0, 0, err
	}
	parts, err := hive.Partitions(ctx, database, table, names)
	if err != nil {
		return 0, 0, err
	}
	for _, p := range parts {
		n, err := strconv.ParseInt(p.Parameters["numRows"], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("numRows of partition %v: %w", p.Values, err)
		}
		rows += n
	}
	return rows, len(parts), nil
}
