package main

import (
	"fmt"
	"os"

	"github.com/millrace/millrace/cmd/command"
	"github.com/millrace/millrace/cmd/internal/exitcode"
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	fsys, done, err := filesystem()
	if err != nil {
		fmt.Fprintln(os.Stderr, "millrace:", err)
		return int(exitcode.Input)
	}
	defer done()
	return command.Main(command.Options{Version: version, FS: fsys}, os.Args[1:])
}
