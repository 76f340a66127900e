// Package conntest is the acceptance suite of connectors: what the runtime
// relies on, run against a real connector over a system that can be made to
// fail.
//
// [RunSink] takes a sink through the commit cycle of the runtime (write, seal,
// intent, publish, committed) and checks that rows are visible exactly once
// after repeated calls, another owner, a fenced attempt that is still alive,
// an error at each operation and a power cut before each operation.
//
//	func TestAcceptance(t *testing.T) {
//		conntest.RunSink(t, func(t testing.TB) conntest.World { return newWorld(t) })
//	}
//
// A [World] is the outside system with the connector in front of it. A world
// that is also a [FaultWorld] is taken through faults and crashes, too. [RunReplacer]
// does so with parts that replace a table partition, [RunAside] with rows that are late
// and have a place of their own.
//
// It is not a test of formats or of reading: each connector tests those itself.
// The suite has no state; seeds are fixed and printed.
package conntest
