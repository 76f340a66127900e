// Package pace tells the garbage collector how much head room the process needs.
//
// Go's collector runs when the heap has grown by as much as is live: the right trade
// while what is live is small, and twice the memory once it is state of running jobs.
// State is columns, which the collector does not look into, so that a collection costs
// about the same however much of it there is. So the head room is what a process
// without state would have, and a quarter of the state:
//
//	state     0    32 MiB   128 MiB   256 MiB   1 GiB
//	GOGC    100        50        33        29      26
//
// What it is not: a limit. GOMEMLIMIT works beside it, and a GOGC that is set in the
// environment is left as it is.
//
// # Concurrency
//
// Everything may be called from anywhere.
package pace
