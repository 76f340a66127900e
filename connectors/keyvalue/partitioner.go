package keyvalue

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/millrace/millrace/runtime/connector"
)

// KeyPartitioner is the option that says which partition of its topic a row goes to,
// and the others are its values.
const (
	KeyPartitioner = "sink.partitioner"
	ByKey          = "default"
	RoundRobin     = "round-robin"
	Fixed          = "fixed"
)

// PartitionerOption declares it; others says what ByKey and RoundRobin do.
func PartitionerOption(others string) connector.Option {
	return connector.Option{Key: KeyPartitioner, Type: connector.OptEnum, Default: ByKey, Enum: []string{ByKey, RoundRobin, Fixed},
		Doc: "Which partition a row goes to: " + others + "; `fixed` gives all rows of a lane, or of a subtask of a keyed stage, to one partition, so that as many partitions have rows as there are lanes at most."}
}

// FixedPlace is the number, of 31 bits, whose remainder by the number of partitions is
// where all rows of an artefact's lane or subtask go: the same after every restart.
func FixedPlace(id connector.ArtifactID) int32 {
	if id.Keyed {
		return int32(id.Subtask & 0x7fffffff)
	}
	h := fnv.New32a()
	h.Write(binary.BigEndian.AppendUint32(id.Lane.Topic[:len(id.Lane.Topic):len(id.Lane.Topic)], id.Lane.Set))
	return int32(h.Sum32() & 0x7fffffff)
}
