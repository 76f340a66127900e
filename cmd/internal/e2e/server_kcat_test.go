//go:build services

package e2e

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// TestServerWithKcat: librdkafka's own client.
func TestServerWithKcat(t *testing.T) {
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	_, addr := w.server("--auto-create", "1")
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(kcat, append([]string{"-b", addr, "-q"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("kcat %v: %v\n%s", args, err, stderr.String())
		}
		return string(out)
	}
	want := ""
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		value := strings.Repeat(codec, 100) + "\n"
		run(value, "-P", "-t", "k", "-z", codec)
		want += value
	}
	if got := run("", "-C", "-t", "k", "-o", "beginning", "-e"); got != want {
		t.Errorf("read back %d bytes, want %d", len(got), len(want))
	}
	if got := run("", "-G", "readers", "-X", "auto.offset.reset=earliest", "-e", "k"); got != want {
		t.Errorf("the group read %d bytes, want %d", len(got), len(want))
	}
	if got := run("", "-G", "readers", "-X", "auto.offset.reset=earliest", "-e", "k"); got != "" {
		t.Errorf("the group read %d bytes again", len(got))
	}
	if got := run("", "-Q", "-t", "k:0:-1"); !strings.Contains(got, "offset 5") {
		t.Errorf("the end is %q, want offset 5", got)
	}
}
