package fn_test

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the generated docs")

// TestFunctionsPageIsNotStale compares docs/sql/functions.md with the
// declarations; -update writes it.
func TestFunctionsPageIsNotStale(t *testing.T) {
	const page = "../../../docs/sql/functions.md"
	want := library(t).Docs()
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: go test ./runtime/expr/fn -run FunctionsPage -update", page)
	}
}
