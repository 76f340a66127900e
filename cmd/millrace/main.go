package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millrace/millrace/cmd/internal/cli"
	"github.com/millrace/millrace/cmd/internal/exitcode"
)

// version is set by the build.
var version = "dev"

// sameRequest is how long after the first signal another one is the same
// request to stop: timeout(1) signals the process and then its group.
const sameRequest = 100 * time.Millisecond

func main() {
	ctx, cancel := context.WithCancel(context.Background())
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
	os.Exit(run(ctx))
}

func run(ctx context.Context) int {
	env := cli.NewEnv(version)
	fsys, done, err := filesystem()
	if err != nil {
		fmt.Fprintln(os.Stderr, "millrace:", err)
		return int(exitcode.Input)
	}
	defer done()
	env.FS = fsys
	return int(cli.Run(ctx, env, os.Args[1:]))
}
