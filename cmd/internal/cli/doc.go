// Package cli is the command tree: flags, arguments, what goes to stdout and
// what to stderr. A command asks the owner of the data directory through
// control.API, which is either this process (jobs/node) or the one that owns
// the directory now; it does not know which.
//
// One file a verb or noun. Every command's RunE returns an error that
// cmd/internal/exitcode classifies; nothing here calls os.Exit.
package cli
