package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "seed of the random kills; 0: one from the clock")
	tortureLog = flag.String("torture.log", "", "append the outcome of long runs to this file")
	pairKills  = flag.Int("pair.kills", 0, "kills of the job for each pair of systems; 0: 6, or 40 with MILLRACE_TORTURE")
	update     = flag.Bool("update", false, "write golden files again")
)

// binaries are built at most once a test process, into a folder that TestMain
// removes.
var binaries struct {
	dir           string
	plain, faults func() (string, error)
}

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "millrace-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// A child that runs as another user must be able to execute it.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries.dir = dir
	binaries.plain = sync.OnceValues(func() (string, error) { return build("millrace") })
	binaries.faults = sync.OnceValues(func() (string, error) { return build("millrace-faults", "-tags", "faults") })
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// prebuilt is a binary to test instead of building one.
const prebuilt = "MILLRACE_E2E_BINARY"

// build compiles cmd/millrace with extra arguments.
func build(name string, args ...string) (string, error) {
	if path := os.Getenv(prebuilt); path != "" && len(args) == 0 {
		return path, nil
	}
	out := filepath.Join(binaries.dir, name)
	cmd := exec.Command("go", append(append([]string{"build"}, args...), "-o", out, "github.com/millrace/millrace/cmd/millrace")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, text.String())
	}
	return out, nil
}

// millrace is the binary as users have it.
func millrace(t testing.TB) string {
	t.Helper()
	bin, err := binaries.plain()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// millraceWithFaults is the same main over a filesystem that fails on request.
func millraceWithFaults(t testing.TB) string {
	t.Helper()
	bin, err := binaries.faults()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// torture reports whether long runs are asked for.
func torture() bool { return os.Getenv("MILLRACE_TORTURE") != "" }
