package logictest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFiles runs the corpus.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.slt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	r := &Runner{Executor: Direct{}, Ways: Ways()}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			r.Run(t, filepath.Base(f), string(text))
		})
	}
}
