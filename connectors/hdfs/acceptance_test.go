//go:build services

package hdfs_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
)

// TestAcceptance runs the suite for sinks over each format on a real cluster.
func TestAcceptance(t *testing.T) {
	for _, f := range []string{"parquet", "json", "csv"} {
		t.Run(f, func(t *testing.T) {
			conntest.RunSink(t, func(t testing.TB) conntest.World { return newWorld(t, f) })
		})
	}
}

// TestAnnouncedByManyAtOnce: lanes of one table announce a partition at the same
// time.
func TestAnnouncedByManyAtOnce(t *testing.T) {
	fsys, dir := openRoot(t), newDir()
	if err := fsys.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				f, err := fsys.Create(dir + "/_SUCCESS")
				if err == nil {
					err = errors.Join(f.Sync(), f.Close())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	names, err := fsys.List(dir)
	if err != nil || len(names) != 1 {
		t.Fatalf("there are %v, %v", names, err)
	}
}
