// Package services starts the real servers that tests, examples and comparisons
// talk to: as child processes on free loopback ports, from artefacts of the public
// package registries.
//
//	hdfs, err := services.StartHDFS(ctx, services.HDFSOptions{DataNodes: 3, Dir: t.TempDir()})
//	defer hdfs.Close()
//
// One file a server, over the few parts here:
//
//	cache.go    where artefacts are kept between runs; one fetch at a time
//	fetch.go    jars by Maven, packages by npm and Debian, modules by Go
//	process.go  start, wait for readiness, kill, stop, pause, restart, log
//	port.go     free loopback ports
//
// Rules. Artefacts have pinned versions and live outside the repository, in
// $XDG_CACHE_HOME/millrace (default ~/.cache/millrace): what was fetched once
// is not fetched again. A failed fetch or start is an error that says what
// to do; nothing is skipped. Servers listen on loopback alone. A server ends with
// the process that started it, also when that is killed. Its log is a file,
// whose end is part of the error when it does not come up.
//
// A server's value may be used by several goroutines; its ports stay the same over
// Kill and Start, so that clients meet the server again.
//
// It is no part of the product: nothing outside tests, examples and benchmarks
// imports it.
package services
