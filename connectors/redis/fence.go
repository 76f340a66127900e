package redis

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/runtime/connector"
)

// fencePrefix starts the names of the keys that keep late requests of earlier
// processes out; fenceLife is how long one outlives its last use.
const (
	fencePrefix = "__millrace:"
	fenceLife   = 7 * 24 * time.Hour
)

// fenceValue is what a fence holds when an artefact was sent: a version, the run of the
// job, the lane's epoch and the artefact.
func fenceValue(lane outbox.Lane, id string) string {
	return fmt.Sprintf("1:%d:%d:%s", lane.JobEpoch, lane.Epoch, id)
}

// parseFence reads a fence; ok is false when it is of another version, or none.
func parseFence(text string) (run, epoch uint64, ok bool) {
	var id string
	_, err := fmt.Sscanf(text, "1:%d:%d:%s", &run, &epoch, &id)
	return run, epoch, err == nil
}

// fencedBy is the error of who sends when a later process has written.
func fencedBy(run, epoch uint64, lane outbox.Lane) error {
	return fmt.Errorf("%w: epoch %d of run %d has written, this is epoch %d of run %d", connector.ErrFenced, epoch, run, lane.Epoch, lane.JobEpoch)
}

// unknownFence is what a person has to look at when parseFence is not ok; key names the
// fence.
func unknownFence(key, text string) error {
	return fmt.Errorf("%s holds %q, which is no fence of a version that this program knows: remove it if no other job writes the table, then resume", key, text)
}
