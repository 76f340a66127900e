// Package offsets holds exact sets of log offsets.
//
// A [Set] is what a committed artefact, a dead letter or a skip set says about
// one source partition: not "up to here" but exactly which offsets. Sets are
// mostly a few long runs; where rows alternate between files they are very many
// short ones. So they are sorted, disjoint, non-adjacent ranges, kept as they
// are encoded, as varint deltas: two bytes a range where both are short.
//
//	encoding: uvarint n, then n times { uvarint gap, uvarint length-1 }
//	          gap = first offset minus the end of the range before (0 at the start)
//
// A Set is a value: operations return new sets and never change their operands,
// except for [Set.Add], which appends in place.
// [Set.Contains] decodes up to 64 ranges. Offsets are not negative.
package offsets
