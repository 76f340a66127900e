package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/jobs"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/vfs"
)

//go:embed job.sql
var job string

func main() {
	in := flag.String("in", "orders.ndjson", "the orders, one JSON object a line")
	out := flag.String("out", "out", "where the tables and the data directory go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "user-functions:", err)
		os.Exit(1)
	}
}

// run runs the job over a file and says how many rows each table got.
func run(ctx context.Context, in, out string) error {
	set, err := functions()
	if err != nil {
		return err
	}
	if in, err = filepath.Abs(in); err != nil {
		return fmt.Errorf("finding the orders: %w", err)
	}
	report, err := jobs.Run(ctx, jobs.Options{
		Files:      []jobs.File{{Name: "job.sql", Text: job}},
		Dir:        filepath.Join(out, "data"),
		Connectors: connectors,
		Functions:  set,
		Set:        map[string]string{"IN": in, "OUT": out},
	})
	if err != nil {
		return err
	}
	for _, t := range report.Ledger {
		fmt.Printf("%s: %d rows read, %d dead\n", t.Table, t.Read, t.Dead)
	}
	return nil
}

func connectors(log *client.Client, fsys vfs.FS) (*connector.Registry, error) {
	return all.Registry(all.Deps{Log: log, FS: fsys})
}
