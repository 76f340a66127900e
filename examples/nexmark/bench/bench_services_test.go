//go:build services

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestFewEvents takes what needs no Flink through next to no events: what it measures is
// not looked at. With the generator there is none to compare with, and profiles, over
// events in a file, are Millrace's alone.
func TestFewEvents(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "millrace")
	if out, err := exec.Command("go", "build", "-o", binary, "../../../cmd/millrace").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	run := func(queries string, change func(*config)) string {
		t.Helper()
		c := &config{millrace: binary, dir: filepath.Join(dir, "bench"), out: filepath.Join(dir, "report"), source: "files", events: 5000, rate: 1000, runs: 1, heap: 1024}
		change(c)
		if err := c.pick(queries); err != nil {
			t.Fatal(err)
		}
		if err := c.run(ctx); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(c.out)
		if err != nil && c.profile == "" {
			t.Fatal(err)
		}
		return string(text)
	}
	text := run("0", func(c *config) { c.source = "generator" })
	if want := `(?m)^\| q0 \| 5000 \| .* \| no generator \| \| `; !regexp.MustCompile(want).MatchString(text) {
		t.Errorf("nothing like %s in\n%s", want, text)
	}
	profiles := filepath.Join(dir, "profiles")
	run("5", func(c *config) { c.profile = profiles })
	if info, err := os.Stat(filepath.Join(profiles, "q5.pprof")); err != nil || info.Size() == 0 {
		t.Errorf("a profile: %v", err)
	}
}
