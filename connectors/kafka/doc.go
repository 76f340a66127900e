// Package kafka is the connector 'kafka': topics of a Kafka cluster as tables to
// read and to write. Option names are those of Flink's connector; franz-go speaks to the
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
// # Writing
//
// A writer has one bucket, an artefact is one transaction, whatever partitions
// its rows go to:
//
//	InitProducerId   once an attempt; fences whoever had the lane's id before
//	read             __millrace_commits up to its end: who owns the job, what the
//	                 lane has published
//	begin, rows, record of the lane with the artefact's id, commit
//
// Invariant 2: an artefact is published iff the lane's record in that topic, which
// is the last one of its transaction, names it. Invariant 3: after a commit without
// an answer the producer is given up; Resolve initializes another one, which ends
// what is open or half committed, and only then reads. Formats are those of
// docs/format/kafka-commits.md.
//
// What was sealed lives in this process. After a crash an artefact that is not
// named was never visible, and its rows are read again
// (connector.ReplayableSeals); those of keyed stages, which are not, are carried in
// the payload. An intent of a lane has one artefact, so it is never published in
// part.
//
// Whoever initializes a lane's producer could be an older run that is still alive.
// So a run claims the job's record first, and looks at it after each
// initialization: the one with the lower epoch has lost, whatever producer ids say.
// Nobody reads past an open transaction; therefore a run that starts initializes
// the lanes of those before it.
//
// How the newest transaction of a lane ended is asked before its producer is
// initialized, since brokers that start again may call it complete without telling
// the partitions; what hangs there is ended the same way before the lane writes. A
// producer that lives on asks when it connects to a broker anew (ending.go).
//
// With 'sink.delivery-guarantee' = 'at-least-once' there are no transactions, no
// records of the job, and no fences across processes.
//
// # Concurrency
//
// A sink is safe for concurrent use, a writer belongs to one goroutine at a time.
// Whoever holds a laneState's sem may use its producer; commitLog.sem is taken
// after it. Connector and source are safe for concurrent use; a reader belongs to one
// goroutine at a time. Under fetcher.mu nothing is waited for but the condition.
//
// Tables of 'upsert-kafka' are read from the earliest record on, each row as what the row
// of its key is from now on, each record without a value as a deletion; the keyed runtime
// makes the changes of it.
//
// It joins no group and creates no topic but its own, and that of a Teller.
package kafka
