//go:build services

package hdfs_test

import (
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
