// Package partialcache keeps the rows of keys that were looked up, for connectors
// whose tables are asked by key: Flink's 'lookup.cache' = 'PARTIAL' and 'NONE'.
//
// A [Cache] is a connector.Lookup. Of a batch's keys it asks the connector's load
// function for those that it does not have, all at once, and answers from both. It
// reads nothing itself, and it does not keep whole tables: that is connectors/fullcache,
// whose Table a load gives. The options are declared here for both, where a connector
// has both.
//
// Rows are kept as bytes, one slice a key, in the encoding of runtime/batch; the key
// that was used the longest time ago leaves first. A key without rows is kept, too,
// unless the options say otherwise.
//
// # Invariants
//
//   - Invariant 8: there are at most as many rows as the options say; a key without
//     rows counts as one.
//   - A load that fails is tried again as often as the options say; then the lookup
//     fails, and nothing of it is kept.
//
// # Concurrency
//
// A Cache is safe for concurrent use. Two lookups may load the same key at once.
package partialcache
