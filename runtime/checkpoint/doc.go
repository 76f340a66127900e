// Package checkpoint makes the keyed stages of a job consistent with their
// input: one point through all channels at which state is saved, results are
// sealed and positions are fixed, all in one manifest.
//
// [Coordinator] decides, as a pure state machine: events in, actions out, no
// clock and no I/O. runtime/keyed does what it says. One checkpoint n:
//
//	inject n     barriers enter the channels between two hand-overs
//	ack          each task has saved its state and sealed its results
//	write n      a [Manifest] with everything n needs, durable in a [Store]
//	record n     into the ledger, as one batch: positions and counts of the
//	             input, what was emitted, intents, publishing{n, ids}
//	publish n    each artefact becomes visible, then "committed" in the ledger
//	remove       the oldest manifests go, five stay
//
// Publishing goes on while the next checkpoint is made: manifest n lists what
// was sealed at n and every earlier artefact without "committed".
//
// What it is not: it moves no data and knows no sink.
//
// # Invariants
//
//   - Invariant 1: positions of keyed input move in the ledger only after the
//     manifest that holds them is durable.
//   - Invariant 2: nothing is published before the ledger has publishing{n, ids},
//     and that not before manifest n is durable. So a restart publishes or
//     resolves exactly what the newest manifest lists, and an older one is used
//     only while nothing above it began to be published ([Restore]).
//   - Invariant 9: a [Store] that was opened by a higher epoch takes no manifest
//     of a lower one.
//   - Invariant 8: no barrier is injected while more than
//     [Config.MaxUnpublished] checkpoints wait for their publishing. State is written
//     ([Files]) and read ([Candidate.ReadState]) part by part, once.
//
// # Concurrency
//
// A Coordinator belongs to one goroutine. A Store is safe for concurrent use.
package checkpoint
