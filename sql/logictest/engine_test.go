package logictest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFilesOnEngine runs the corpus on the engine: what it gives must be what
// the direct evaluation gives, and the files say.
func TestFilesOnEngine(t *testing.T) {
	files, err := filepath.Glob("testdata/*.slt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	crashes := 0
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			e := &Engine{}
			(&Runner{Executor: e, Ways: Ways()}).Run(t, filepath.Base(f), string(text))
			if e.Runs == 0 {
				t.Error("no query ran on the engine")
			}
			crashes += e.Crashes
		})
	}
	if crashes == 0 {
		t.Error("no run crashed in between")
	}
	t.Logf("%d runs crashed in between", crashes)
}
