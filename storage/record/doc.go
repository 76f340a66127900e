// Package record reads and writes Kafka v2 record batches, byte for byte.
//
// It is the one place that knows the batch layout. Batches are kept raw from
// the producer to the disk to the consumer; the log rewrites only the base
// offset and the leader epoch, which the batch checksum does not cover.
//
//	+--------------+--------+-------+-------+--------+------------+-----------------+
//	| base offset  | length | epoch | magic | crc32c | attributes | last offset     |
//	| 8            | 4      | 4     | 1 (2) | 4      | 2          | delta 4         |
//	+--------------+--------+-------+-------+--------+------------+-----------------+
//	| base time 8 | max time 8 | producer id 8 | producer epoch 2 | base sequence 4 |
//	+-------------+------------+---------------+------------------+-----------------+
//	| count 4 | records, compressed as one piece if attributes say so               |
//	+---------+---------------------------------------------------------------------+
//
// All integers are big-endian. The checksum (CRC-32C) covers everything from
// the attributes to the end, so base offset, length, leader epoch and magic are
// NOT protected by it; storage/segment adds a checksum over them.
//
// What it is not: it knows nothing of partitions, files or the network, and it
// does not convert the message formats 0 and 1 (they are refused).
//
// Invariants:
//   - Decoding never panics, never reads outside its input and never allocates
//     more than the decoder's bound, whatever the bytes are.
//   - A nil key or value (length -1) and an empty one (length 0) stay apart.
//   - Iterating records allocates nothing: keys, values and headers are views
//     into the batch, or into the decoder's buffer when it was compressed.
//
// Concurrency: Header, Batch and Iter are plain values. A Decoder and a Builder
// belong to one goroutine at a time.
package record
