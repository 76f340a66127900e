//go:build services

package clickhouse

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
)

// TestRights takes the right to INSERT from the user of a running job, and gives it
// back: the lane stops with a sentence that says what to look at, keeps its block, and
// each row is there once when it is resumed.
func TestRights(t *testing.T) {
	for method, kind := range tableKinds {
		t.Run(method, func(t *testing.T) {
			allow := func(rights string) {
				t.Helper()
				if err := shared.Allow(t.Context(), "writer", "secret", rights+" ON *.*"); err != nil {
					t.Fatal(err)
				}
			}
			allow("SELECT, INSERT")
			f := newFaultTable(t, kind[0], kind[1], map[string]string{keyUser: "writer", keyPassword: "secret"})
			f.complete(f.seal(0, 10))
			as := f.seal(10, 10)
			allow("SELECT")
			err := f.publish(as)
			var r connector.Retryable
			if err == nil || !strings.Contains(err.Error(), "grants") || !errors.As(err, &r) || r.Retryable() || errors.Is(err, connector.ErrRefused) {
				t.Fatalf("publishing without the right to INSERT: %v", err)
			}
			f.want(10)
			allow("SELECT, INSERT")
			f.complete(as)
			f.want(20)
		})
	}
}
