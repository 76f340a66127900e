// Package redis is the connector `redis`: rows as keys of a Redis server, by primary
// key.
//
// It encodes rows as commands when they are written and sends the commands of a
// sealed artefact in one transaction; sealing, files and fencing on disk are
// connectors/outbox. The client library, which is confined to this package, carries
// commands and answers, to one server, to the primary that Sentinels name, or to a cluster.
//
//	Append    rows into commands: HSET, HDEL, SET, DEL, SADD, SREM, ZADD, ZREM, PEXPIRE
//	Seal      the commands into a file, synced (outbox)
//	Send      WATCH fence, GET fence, MULTI, SET fence, the commands, EXEC; to a
//	          cluster EVAL of a script for each slot: GET fence, SET fence, the commands
//
// A table that is looked up has its keys where the sink writes them: the same layout
// makes them of the join's keys. connectors/partialcache asks for what it does not
// keep, a reader makes rows of the answers:
//
//	HMGET                 a hash: a row while one of the table's fields is there
//	GET                   a string
//	SISMEMBER, ZSCORE     the member that is one of the join's keys
//	SCARD and SMEMBERS,   each member of a key, no more than a bound
//	ZCARD and ZRANGE
//	SCAN                  the names of a table that connectors/fullcache keeps whole;
//	                      the values of its keys are taken from the names
//
// The body of a sealed file is its commands one after another:
//
//	+----------+--------+-------+--------+-------+-----
//	| arguments| length | bytes | length | bytes | ...      lengths as uvarint
//	+----------+--------+-------+--------+-------+-----
//
// # Invariants
//
//   - Commands write absolute values, so that the same artefact sent again leaves the
//     same keys; artefacts of a lane are sent in order.
//   - Invariant 9: the fence key `__millrace:{job}:{table}:{lane}` holds the epoch of
//     who wrote last. A request of an earlier process that is still on its way finds
//     it changed, and its EXEC does nothing. In a cluster each slot has a fence of its
//     own, which the slot's script compares.
//   - Invariant 6: a value that Redis cannot hold exactly, and a key that would not be
//     told from another row's, are refused by Check. A lookup takes what is there
//     exactly, or fails: an answer that did not come is no missing key.
//   - Invariant 8: a pipeline, the members of a key and the rows of a batch are bounded.
//
// # Concurrency
//
// A sink and a lookup are safe for concurrent use. An encoder belongs to one writer, a
// reader to one load at a time.
package redis
