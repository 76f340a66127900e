package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millrace/millrace/cmd/internal/cli"
	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/pace"
	"github.com/millrace/millrace/storage/vfs"
)

// Options of Main; the zero value works.
type Options struct {
	// Version is what `version` prints; "" is "dev".
	Version string
	// Functions are the program's own functions; nil: none.
	Functions *userfunc.Set
	// FS is where data directories and local tables lie; nil: the operating
	// system's.
	FS vfs.FS
}

// sameRequest is how long after the first signal another one is the same
// request to stop: timeout(1) signals the process and then its group.
const sameRequest = 100 * time.Millisecond

// Main runs one command over the process's streams and returns its exit code. It
// takes SIGINT and SIGTERM for the rest of the process: the first one stops the
// command in good order, a second one ends the process at once. It also sets how much
// the collector lets the heap grow (runtime/pace), unless the environment has GOGC.
func Main(o Options, args []string) int {
	pace.Follow()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		asked := time.Now()
		cancel()
		second := <-signals
		for time.Since(asked) < sameRequest {
			second = <-signals
		}
		// A second signal leaves at once; what is committed stays, the rest is
		// read again at the next start.
		code := exitcode.Interrupted
		if second == syscall.SIGTERM {
			code = exitcode.Terminated
		}
		fmt.Fprintln(os.Stderr, "millrace: left at once")
		os.Exit(int(code))
	}()
	if o.Version == "" {
		o.Version = "dev"
	}
	env := cli.NewEnv(o.Version)
	env.FS, env.Functions = o.FS, o.Functions
	return int(cli.Run(ctx, env, args))
}
