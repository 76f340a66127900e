//go:build services

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every scenario runs on the server, with next to no data: what it says is not looked
// at, only that it says something.
func TestScenarios(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "millrace")
	if out, err := exec.Command("go", "build", "-o", binary, "../../millrace").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for name, args := range map[string]string{
		"throughput": "-systems millrace-os,ceiling -repetitions 1 -batches 16384 -partitions 3 -bytes 200000 -warm-bytes 20000 -disk-bytes 1048576",
		"many":       "-partitions 3,300 -clients franz,prepared -repetitions 1 -bytes 100000",
		"scan":       "-systems millrace -partitions 3 -repetitions 1 -bytes 200000 -seconds 1 -rate 100 -batches 16384",
		"idle":       "-systems millrace",
		"restart":    "-partitions 3,300 -repetitions 1 -bytes 100000",
	} {
		var out strings.Builder
		b := &bench{out: &out, progress: os.Stderr}
		err := b.parse(append(strings.Fields(args), "-scenario", name, "-millrace", binary, "-dir", t.TempDir()))
		if err == nil {
			err = b.run(ctx)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, s := range b.choose(millrace) {
			if !strings.Contains(out.String(), s) {
				t.Errorf("%s: nothing of %s in\n%s", name, s, out.String())
			}
		}
	}
}
