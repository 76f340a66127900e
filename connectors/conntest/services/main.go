package services

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Main runs m, the tests of a package that share a server, which start starts in an empty
// directory that goes afterwards, within a time. It gives the exit code of the process.
func Main[S interface{ Close() }](m interface{ Run() int }, within time.Duration, start func(ctx context.Context, dir string) (S, error)) int {
	dir, err := os.MkdirTemp("", "millrace-services-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	server, err := start(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Close()
	return m.Run()
}
