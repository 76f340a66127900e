//go:build services

package hive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/connector"
)

// TestMetastoreAuthorizes: the metastore allows what the calls' user has the rights for in
// the warehouse, which is of Hive itself, not of a metastore that stands alone. A table that
// may not be made, and partitions that may not be added, are errors that say for whom and
// what to do; files are committed all the same, and announced once the right is there.
func TestMetastoreAuthorizes(t *testing.T) {
	l := startLake(t, services.MetastoreOptions{Old: true, Authorizes: true})
	user := map[string]string{keyUser: "nobody"}
	says := func(err error) {
		t.Helper()
		for _, part := range []string{`user "nobody"`, keyUser, "chown"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("got %v, want that it says %s", err, part)
			}
		}
	}
	w := l.world("denied", l.URI)
	_, err := w.conn.OpenSink(context.Background(), w.table(conntest.Columns(), []int{2}, user), conntest.OwnerOf(1, 1))
	says(err)
	var r connector.Retryable
	if errors.As(err, &r) && r.Retryable() {
		t.Error("a right that is missing is waited for")
	}
	w.open(t, 1) // made by who may
	s := openWith(t, w, user)
	parts := write(t, s, 1, 0, 10)
	for _, err := range s.CommitPartitions(context.Background(), parts) {
		says(err)
	}
	if n := len(w.Visible(t)); n != 10 {
		t.Errorf("%d rows are visible, want 10", n)
	}
	for _, dir := range append([]string{""}, parts...) {
		if err := os.Chmod(filepath.Join(w.dir(), dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	announce(t, s, parts...)
	w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
}
