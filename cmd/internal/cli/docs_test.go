package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGeneratedDocsAreFresh fails when `make docs` has to be run.
func TestGeneratedDocsAreFresh(t *testing.T) {
	pages, err := GeneratedDocs()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join("../../../docs", filepath.FromSlash(name)))
		if err != nil || string(got) != want {
			t.Errorf("docs/%s is stale (%v): run make docs", name, err)
		}
	}
	for _, dir := range []string{"connectors", "errors"} {
		entries, err := os.ReadDir(filepath.Join("../../../docs", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join("../../../docs", dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			// A page about a kind of path, not a connector, is written by hand.
			if dir == "connectors" && !bytes.HasPrefix(b, []byte("# Connector `")) {
				continue
			}
			if _, ok := pages[dir+"/"+e.Name()]; !ok {
				t.Errorf("docs/%s/%s is generated no more: remove it", dir, e.Name())
			}
		}
	}
}
