// Package watermark keeps event-time progress, one number a source partition.
//
// A partition's watermark is the maximum of its table's WATERMARK expression
// over all earlier rows in offset order, in milliseconds; it is updated after
// every row, before any filter, and stored with the position. So whether a row
// is late depends on its own partition alone, never on timing, batch size or
// other partitions (Invariant 7).
//
// [Assigner] computes it, [Idleness] says which partitions no longer hold
// windows back, [Late] is the one rule for what is late.
//
// Nothing here is safe for concurrent use; a lane owns its own.
package watermark
