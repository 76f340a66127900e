// Package scanrange has the options that say which topics a table reads, and where
// reading them starts and ends: topic, topic-pattern, scan.startup.* and
// scan.bounded.*; their values, the form of offsets, and what contradicts what. The
// log's and Kafka's connectors have the same ones, with Flink's names; where a mode
// stands in a topic is each connector's own.
package scanrange
