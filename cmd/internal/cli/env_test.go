package cli

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/millrace/millrace/jobs/node"
	"github.com/millrace/millrace/storage/vfs"
)

// released lets go of the data directory once somebody was refused it.
type released struct {
	vfs.FS
	refused int
	release func() error
}

func (r *released) Lock(path string) (io.Closer, error) {
	c, err := r.FS.Lock(path)
	if err != nil {
		if r.refused++; r.refused == 3 {
			err = errors.Join(err, r.release())
		}
	}
	return c, err
}

// A command that meets another one for a moment waits for it.
func TestCommandsAtTheSameMomentDoNotFailEachOther(t *testing.T) {
	ctx := context.Background()
	fs, dir := vfs.NewOS(), t.TempDir()
	owner, err := node.Open(ctx, node.Options{Dir: dir, FS: fs, Command: "jobs ls", Brief: true, Connectors: connectors})
	if err != nil {
		t.Fatal(err)
	}
	shared := &released{FS: fs, release: owner.Close}
	e := NewEnv("test")
	e.data, e.FS = dir, shared
	n, err := e.open(ctx, "run")
	if err != nil {
		t.Fatal(err)
	}
	if shared.refused < 3 {
		t.Fatalf("the directory was free after %d refusals: the test shows nothing", shared.refused)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}
