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

// TestServerWithKcatByPlain: librdkafka logs in, and is denied what no rule allows.
func TestServerWithKcatByPlain(t *testing.T) {
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.run("users", "create", "ann", "--mechanism", "PLAIN", "--password-file", w.file("pw", "ann-secret")).must(t, 0)
	w.run("topics", "create", "k").must(t, 0)
	w.run("topics", "create", "hidden").must(t, 0)
	w.run("acls", "create", "--allow", "ann", "--operation", "read", "--operation", "write", "--topic", "k").must(t, 0)
	_, addr := w.server("--kafka-sasl", "PLAIN")
	run := func(password string, args ...string) (string, error) {
		cmd := exec.Command(kcat, append([]string{"-b", addr, "-q", "-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=PLAIN",
			"-X", "sasl.username=ann", "-X", "sasl.password=" + password, "-X", "message.timeout.ms=5000"}, args...)...)
		cmd.Stdin = strings.NewReader("hello\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("ann-secret", "-P", "-t", "k"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run("ann-secret", "-C", "-t", "k", "-o", "beginning", "-e"); err != nil || out != "hello\n" {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run("ann-secret", "-L"); err != nil || strings.Contains(out, "hidden") || !strings.Contains(out, `"k"`) {
		t.Errorf("listed (%v):\n%s", err, out)
	}
	if out, err := run("ann-secret", "-P", "-t", "hidden"); err == nil && !strings.Contains(out, "authorization") {
		t.Errorf("wrote to a hidden topic: %s", out)
	}
	if out, err := run("wrong", "-L"); err == nil {
		t.Errorf("a wrong password: %s", out)
	}
}
