// Command kafkabench measures `millrace server` beside Apache Kafka, in turns, on one
// machine and one disk.
//
//	make bench-kafka ARGS="-scenario throughput -records 1000 -batches 16384 -partitions 12"
//
// Both are driven by the same clients: Kafka's own ProducerPerformance and
// ConsumerPerformance for rates and latencies, franz-go for what those have no tool
// for (ten thousand topics in turn, readers of old records that decode nothing).
//
// Scenario many has a third, which shows the server alone (-clients prepared): its
// requests are encoded before the clock starts, so it costs next to nothing.
//
// Scenarios:
//
//	throughput  produce, then consume what was produced; MB/s, CPU seconds of the
//	            server per GB, its memory; between repetitions the disk's own rate
//	many        one record into each of many partitions, round and round
//	scan        latency of a producer with and without readers of old records
//	idle        memory of a server with ten topics that nobody uses
//	restart     time from the start of a server after SIGKILL until it answers, with
//	            everything that was written in the journal and in no segment
//
// A repetition of throughput is a fresh server on an empty directory, one of each
// system after another; the order turns around with every repetition. First some
// records go to a topic of their own, which warms a JVM up; then come the measured
// ones. The CPU seconds of a phase are those of the server's process from the start
// of the phase until the server is at rest again: what it puts off is counted. What
// the kernel does on its own account, such as writing pages back later, is in no
// process's CPU seconds. Afterwards the directory is deleted and the disk synced, so
// that nobody pays for the one before.
//
// A system is one of
//
//	millrace        every write on disk before it is acknowledged (the default)
//	millrace-os     topics with millrace.durability=os: no sync before acknowledging
//	kafka           Apache Kafka with its default: no sync
//	kafka-flush     topics with flush.messages=1: a sync for each append
//	ceiling         a server of the bench without disk and checks, which shows what the
//	                clients can do
//
// Kafka has a heap of 1 GiB and its JVM's defaults, the tools a heap of 512 MiB.
// Everything listens on loopback.
//
// It is no test: the machine decides what it says. Its parts that compute are tested.
package main
