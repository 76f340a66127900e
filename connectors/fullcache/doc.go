// Package fullcache keeps a whole table in memory, by key, for connectors whose tables
// are small and cheap to read from their beginning: Flink's 'lookup.cache' = 'FULL'.
//
// A [Table] is rows as columns with a hash of their keys; it never changes once it is
// built. A [Cache] is a connector.Lookup over the table last loaded. It does not read
// anything itself: the connector gives it a load function.
//
// # Reloads
//
// The first lookup loads the table. With an interval, or a time of the day, the first
// lookup after it loads it again (nobody loads what nobody asks for), while other
// lookups are answered from the old one; then the new table takes its place in one step:
// a batch sees one table or the other, never both. A load that fails fails the lookup
// that caused it: the lane shows the error and tries again, so that a table that cannot
// be read any more is not taken for one that has not changed.
//
// # Invariants
//
//   - Invariant 8: a table beyond its limit of bytes is refused with an error that says
//     so. While a table is loaded again both are in memory.
//
// # Concurrency
//
// A Cache is safe for concurrent use. A Builder belongs to one goroutine.
package fullcache
