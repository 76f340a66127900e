// Command cluster runs the GitHub events job (examples/github-events) into real
// servers: its tables as tables of a Hive Metastore with their files in HDFS, and
// the same tables in ClickHouse. Then it asks each system how many rows it has.
//
//	go run ./examples/cluster -millrace bin/millrace
//
// The servers are started on free loopback ports by connectors/conntest/services,
// from artefacts that are fetched once; everything ends with the command. Nothing
// of the job changes but its WITH clauses: job.go has how.
//
// It is an example and no benchmark: one DataNode, one replica, small heaps.
package main
