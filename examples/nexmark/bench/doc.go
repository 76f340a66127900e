// Command bench measures the Nexmark queries in Millrace beside the real Flink:
// the same SQL over the same events, in turns, on one core each.
//
//	go run ./examples/nexmark/bench -millrace bin/millrace -events 5000000
//
// What counts is events per CPU second: of the whole Millrace process from its
// start to its end, and of the whole Flink process (both its roles are in one JVM)
// from the statement to the end of its job. Flink's start, and a first run of each
// query that warms the JVM up, are not counted. Millrace gets no first run. Each
// query has a JVM of its own.
//
// -source files reads JSON lines from one file, -source generator makes the events
// in the engine: apart, since a cheap generator would win. Flink has one in the
// public benchmark's jar alone: name it with -generator-jar.
//
// -alone measures Millrace without Flink, as for two builds of it in turns.
//
// -profile DIR writes CPU profiles of Millrace instead, one a query.
package main
