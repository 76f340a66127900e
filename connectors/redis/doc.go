// Package redis is the connector `redis`: rows as keys of a Redis server, by primary
// key.
//
// It encodes rows as commands when they are written and sends the commands of a
// sealed artefact in one transaction; sealing, files and fencing on disk are
// connectors/outbox. The client library, which is confined to this package, carries
// commands and answers. Redis Cluster and Sentinel are refused by name.
//
//	Append    rows into commands: HSET, HDEL, SET, DEL, SADD, SREM, ZADD, ZREM, PEXPIRE
//	Seal      the commands into a file, synced (outbox)
//	Send      WATCH fence, GET fence, MULTI, SET fence, the commands, EXEC
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
//     it changed, and its EXEC does nothing.
//   - Invariant 6: a value that Redis cannot hold exactly, and a key that would not be
//     told from another row's, are refused by Check.
//
// # Concurrency
//
// A sink is safe for concurrent use. An encoder belongs to one writer.
package redis
