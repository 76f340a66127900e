// Package lanetest is a world for lanes to be tested in: a topic, tables, dead
// letters and a ledger's store that outlive the processes which use them, and
// processes that crash at any step.
//
// Everything durable is in a [World]. A [Process] is one life of a program: it
// gives sources, sinks, dead letters and a store that work on the world, counts
// their operations and can crash at the n-th, before or after its effect; from
// then on every operation of that process fails and nothing of it reaches the
// world. What was not made durable (open files) is gone, as after SIGKILL.
//
// It is for tests only: rows are slow Go values.
//
// # Concurrency
//
// World and Process are safe for concurrent use, as sinks must be.
package lanetest
