// Package exchange moves rows into keyed stages: by key group, through bounded
// channels, together with watermarks and barriers.
//
// An [Inbox] is the entrance of one task (one subtask of one stage). It has one
// channel for everything that lanes hand over, and one for each task of another
// stage in front of it:
//
//	lanes ---- Inlet --+
//	lanes ---- Inlet --+-- Gate --> channel 0 --+
//	                                            +-- Inbox --> task
//	task of another stage ------> channel 1.. --+
//
// [Gate] is where lanes enter, one a job. Under its lock a hand-over is put into
// all channels it concerns, positions and watermarks move, and a barrier enters
// all channels at once. So positions and rows always agree, and no lane is ever
// waited for: one that is blocked, backing off or quarantined answers a barrier
// with its last hand-over position.
//
// # Event time
//
// A stage's watermark is the minimum over the partitions of all its lanes that
// are not idle; the Gate computes it and puts it behind the rows that it is
// about. Before every lane of a stage's sources has attached it does not move,
// when all partitions are idle it does not move beyond what they have said last. Marking a partition
// idle, or active again, happens under the same lock: the bound that Rejoin
// answers is the last watermark that was put into the channels, and from then on
// none above the partition's own follows.
//
// # Invariants
//
//   - Invariant 7: which rows are on which side of a watermark or barrier does not
//     depend on batch sizes or parallelism.
//   - Invariant 8: a channel holds at most its limit in bytes and one batch more;
//     watermarks and barriers take no room. HandOver and Send wait for room.
//   - Invariant 9: a lane epoch below the attached one hands nothing over.
//
// # Concurrency
//
// An Inbox is written by many goroutines and read by one. A Gate is safe for
// concurrent use; an Inlet belongs to one goroutine at a time.
package exchange
