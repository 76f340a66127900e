// Package scanrange has the options that say where reading a topic starts and ends,
// scan.startup.* and scan.bounded.*: their values, the form of offsets, and what
// contradicts what. The log's and Kafka's connectors have the same ones, with Flink's
// names; where a mode stands in a topic is each connector's own.
package scanrange
