package logictest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// randomWay chooses how to run: batches of 1 to 8,192 rows, one to five tasks,
// checkpoints all the time, now and then or only at the end, a crash somewhere.
func randomWay(rng *rand.Rand) Way {
	rows := []int{1, 1 + rng.IntN(8), 1 + rng.IntN(128), 8192}[rng.IntN(4)]
	every := []time.Duration{time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond, -1}[rng.IntN(4)]
	o := RunOptions{BatchRows: rows, Parallelism: 1 + rng.IntN(5), CheckpointInterval: every, NoSharing: rng.IntN(4) == 0}
	name := fmt.Sprintf("batches of %d, %d tasks, checkpoints every %s", rows, o.Parallelism, every)
	if rng.IntN(2) == 0 {
		o.Restart, o.CrashAt = true, 1+rng.IntN(12)
		name += fmt.Sprintf(", crash after operation %d", o.CrashAt)
	}
	if rng.IntN(3) == 0 {
		o.Spill = true
		name += ", spilled"
	}
	w := Way{Name: name, Run: o, NoOptimizer: rng.IntN(4) == 0, Backfill: rng.IntN(4) == 0}
	if w.NoOptimizer {
		w.Name += ", optimizer off"
	}
	if w.Backfill {
		w.Name += ", backfill"
	}
	return w
}

// TestTortureFilesInRandomWays runs the corpus on the engine in ways made by chance,
// others for each file: the rows are those that the files say (Invariant 7).
// MILLRACE_TORTURE asks for many ways.
func TestTortureFilesInRandomWays(t *testing.T) {
	seed, ways := uint64(20261130), 1
	if os.Getenv("MILLRACE_TORTURE") != "" {
		ways = 40
	}
	files, err := filepath.Glob("testdata/*.slt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	e := &Engine{}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			r := &Runner{Executor: e, Ways: []Way{Ways()[0]}} // the first one makes the tables
			for range ways {
				r.Ways = append(r.Ways, randomWay(rng))
			}
			r.Ways[0].Run = r.Ways[1].Run
			r.Run(t, filepath.Base(f), string(text))
		})
	}
	t.Logf("seed %d: %d runs on the engine, %d crashes", seed, e.Runs, e.Crashes)
}
