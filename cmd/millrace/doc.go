// Command millrace is the one binary: log store, SQL jobs, and the commands to
// look after both. See cmd/internal/cli for the commands.
package main
