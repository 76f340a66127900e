// Package kafka is the connector 'kafka': topics of a Kafka cluster as tables to
// read. Option names are those of Flink's connector; franz-go speaks to the
// brokers.
//
// # Reading
//
// One split is one partition. A reader has its own connections and no consumer
// group: the job's positions say where each partition goes on, and the group's
// offsets are a mirror. One goroutine a broker fetches record batches; the reader
// decodes them in the lane's time, by the same code as the embedded log's:
//
//	lead ----- which broker leads what, is it still the same log
//	  |
//	serve(b) - Fetch to broker b by topic id, leader epoch and offset;
//	  |        cut into whole batches, checksums verified
//	queue      at most one answer of each broker
//	  |
//	Next ----- unpack, leave out aborted transactions, decode, fill the batch
//
// Invariant 8: a broker is asked again when everything of its last answer was
// taken, so a reader holds at most two answers of `fetch.max.bytes` of a broker,
// and one unpacked batch (64 MiB at most).
//
// Only what committed transactions wrote is read. Control batches, aborted
// records and gaps that compaction left move the position like records do, so a
// bounded read ends even where its last offsets hold no record.
//
// # Positions
//
// A position is (topic id, partition, leader epoch, offset). The fetch names the
// topic by its id, so that a topic that was made again is never read by mistake;
// whenever a partition is led anew, and at the start, the leader is asked where
// the epoch of the last batch ends. What does not fit is a
// connector.MismatchError, never a reset:
//
//	position                                 Lost              Earliest
//	below the log's start                    start - position  start
//	above the log's end                      -1                start
//	above the end of its leader epoch        -1                that end
//	in an epoch the log has not reached      -1                start
//	of a topic deleted or made again         -1                start of the new one
//	in front of a batch whose checksum is    rest of the batch behind the batch
//	wrong three times
//
// # Failures
//
// Requests that fail, partitions without a leader and brokers that do not answer
// are tried again, with pauses of 50 ms to 2 s. After
// `properties.default.api.timeout.ms` without an answer the reader ends with an
// *Error that is Retryable, so that the lane says what it waits for and starts
// again. Meanwhile the partition is not taken for idle. Wrong passwords,
// certificates and rights end it at once and are not Retryable.
//
// # Concurrency
//
// Connector and source are safe for concurrent use; a reader belongs to one
// goroutine at a time. Under fetcher.mu nothing is waited for but the condition.
//
// It is not a sink, and joins no group.
package kafka
