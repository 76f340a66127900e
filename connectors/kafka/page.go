package kafka

// Parts of the documentation pages: what happens on each failure.
const (
	sourceFaults = "| the brokers are down, restart, move leaders, or hang | fetches are tried again; after `properties.default.api.timeout.ms` the lane says what it waits for and starts again at its position. Meanwhile the partition does not count as idle |\n" +
		"| Millrace is killed | the job goes on at its own positions; the group's offsets are behind them at most |\n" +
		"| a transaction in the topic is open, or was aborted | reading waits in front of the first and leaves out the rows of the second |\n" +
		"| retention removed records that were not read, an unclean leader election cut the log back, the topic was deleted, or made again | the lane stops and says which offsets are gone; `millrace jobs resume JOB --lane LANE --skip-lost` accepts that |\n" +
		"| a record batch has a wrong checksum | it is fetched again; after three times the lane stops in front of it, as above |\n" +
		"| a record does not decode | by the format's `on-error`: a dead letter, unless it says otherwise |\n"

	sinkFaults = "| the brokers are down, restart, move leaders, or hang; there are too few replicas in step | rows wait, the transaction is tried again; the lane goes on when they answer |\n" +
		"| the answer to a commit is lost | the lane's producer is initialized anew, and `__millrace_commits` read: what it names is there, anything else is written again |\n" +
		"| Millrace is killed with a transaction open | the next run ends it, and publishes or reads again what is not named. Until then other readers wait in front of it, for `properties.transaction.timeout.ms` at most |\n" +
		"| a broker starts again and loses the end of a transaction that it had committed | it is ended as it was decided before anything else is written; where nobody knows that any more the lane waits and names topic, partition and offset ([details](../reliability.md#the-kafka-sink)) |\n" +
		"| another run of the job has taken over, or another producer has the same transactional id | the older run is fenced and ends; of the other it is looked up what is there, and tried again |\n" +
		"| a row is above the topic's `max.message.bytes`, or `properties.max.request.size` | it becomes a dead letter; rows of before the limit was lowered are written again under the new one |\n" +
		"| the topic was deleted, or made again | the lane stops; nothing goes into the new topic until the job is started again |\n" +
		"| `__millrace_commits` was deleted, or made again | the lane stops: what had been published cannot be told any more |\n" +
		"| with `sink.delivery-guarantee` = `at-least-once`: any of these | rows may be there twice |\n"

	bothFaults = "| a right is missing, or revoked | the lane stops with resource, operation and the command that gives it, before the first row where the brokers tell |\n" +
		"| password, certificate or host name are wrong | no row is read or written; the error names the option to look at |\n"

	head       = "| what fails | what happens |\n|---|---|\n"
	faultsHead = "### What happens on each failure\n\nReading:\n\n" + head
	faultsFoot = "\nThe tests behind the second table are in [reliability](../reliability.md#the-kafka-sink)."

	// faultsDoc are the tables of connector kafka.
	faultsDoc = faultsHead + sourceFaults + bothFaults + "\nWriting:\n\n" + head + sinkFaults + bothFaults + faultsFoot

	// upsertFaultsDoc are those of connector upsert-kafka.
	upsertFaultsDoc = faultsHead + sourceFaults +
		"| compaction removed older records of a key | nothing: the newest is what counts |\n" + bothFaults +
		"\nWriting:\n\n" + head + sinkFaults +
		"| Millrace is killed after changes were sealed | those of keyed stages are kept with the checkpoint: they are published then, in their order |\n" + bothFaults + faultsFoot
)
