// Package offsets holds exact sets of log offsets.
//
// A [Set] is what a committed artefact, a dead letter or a skip set says about
// one source partition: not "up to here" but exactly which offsets. Sets are
// nearly always a few long runs, so they are kept as sorted, disjoint,
// non-adjacent ranges and encoded as varint deltas.
//
//	encoding: uvarint n, then n times { uvarint gap, uvarint length-1 }
//	          gap = first offset minus the end of the range before (0 at the start)
//
// A Set is a value: operations return new sets and never change their operands,
// except for [Set.Add], which appends in place. Offsets are not negative.
package offsets
