// Command bench measures the GitHub job beside the real Flink: topics of an Apache
// Kafka broker into Parquet on HDFS, both from the same broker into the same cluster,
// in turns, on one core each.
//
//	go run ./examples/github-events/bench -millrace bin/millrace -events 500000
//
// It runs the job's own SQL but for its wide table, which is a statement of
// Millrace's: 15 topics into 15 tables by day and hour, and all of them into one more.
// Tables' definitions differ in what the two call differently (doc of flinkSQL);
// codec, row groups and the form of timestamps are the same.
//
// What counts is events per CPU second: of the whole Millrace process from its start
// to its end, and of the whole Flink process (both its roles are in one JVM) from the
// statement to the end of its job. Flink's start, and a first run that warms the JVM
// up, are not counted. Millrace gets no first run. What either takes for a run without an
// event, for planning and compiling above all, is told apart, since it weighs much in
// short runs. Beside it stands what the servers
// took meanwhile: the broker, and NameNode and DataNode.
//
// After each run the tables are read back from HDFS by Millrace, whoever wrote them,
// and counted: rows of each table, and a sum over each column that binds it to its
// row's id. Both must agree table by table, and with the events that were made; then
// there is a ratio, else an error.
package main
