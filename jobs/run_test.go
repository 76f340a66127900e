package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/blackhole"
	"github.com/millrace/millrace/connectors/datagen"
	"github.com/millrace/millrace/jobs"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/vfs"
)

func options(t *testing.T, sql string, fs ...userfunc.Function) jobs.Options {
	t.Helper()
	set, err := userfunc.NewSet(fs...)
	if err != nil {
		t.Fatal(err)
	}
	return jobs.Options{
		Files: []jobs.File{{Name: "job.sql", Text: `CREATE TABLE a (x BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000');
CREATE TABLE b (x BIGINT) WITH ('connector' = 'blackhole');
` + sql}},
		Dir: t.TempDir(), Functions: set,
		Connectors: func(*client.Client, vfs.FS) (*connector.Registry, error) {
			return connector.NewRegistry(datagen.New(nil), blackhole.New())
		},
	}
}

// TestRunUntilDone: a job without an end runs until its context is done, and what it
// had read is committed.
func TestRunUntilDone(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	enough := userfunc.Scalar1("SEEN", func(x int64) (int64, error) {
		cancel()
		return x, nil
	}, userfunc.Options{})
	report, err := jobs.Run(ctx, options(t, "INSERT INTO b SELECT SEEN(x) FROM a;", enough))
	if err != nil || !errors.Is(ctx.Err(), context.Canceled) {
		t.Fatalf("%v, %v", err, ctx.Err())
	}
	if len(report.Ledger) != 1 || report.Ledger[0].Read == 0 || report.Ledger[0].Read != report.Ledger[0].Written {
		t.Errorf("%+v", report.Ledger)
	}
}

// TestRunRefuses: faulty files and options.
func TestRunRefuses(t *testing.T) {
	_, err := jobs.Run(context.Background(), options(t, "INSERT INTO b SELECT SEEN(x) FROM a;"))
	var found *control.Error
	if !errors.As(err, &found) || !strings.Contains(found.Rendered, `function "SEEN" not found`) {
		t.Errorf("%v", err)
	}
	if _, err := jobs.Run(context.Background(), jobs.Options{}); err == nil {
		t.Error("it ran without files")
	}
}
