package lane

import (
	"fmt"
	"time"
)

// deadBurst is over how long 'dead.max-rate' is taken: one poisoned batch among
// good ones stops no lane.
const deadBurst = 10 * time.Second

// deadRate is a bucket of dead rows that a lane may still have: it fills at
// 'dead.max-rate' and holds what comes in deadBurst. It has no clock.
type deadRate struct {
	perSecond int64 // 0: no limit
	left      float64
	at        time.Time
}

func newDeadRate(perSecond int64, now time.Time) deadRate {
	return deadRate{perSecond: perSecond, left: float64(perSecond) * deadBurst.Seconds(), at: now}
}

// take takes rows out of the bucket, or reports that there are too many.
func (r *deadRate) take(rows int64, now time.Time) bool {
	if r.perSecond == 0 {
		return true
	}
	most := float64(r.perSecond) * deadBurst.Seconds()
	r.left = min(most, r.left+now.Sub(r.at).Seconds()*float64(r.perSecond))
	r.at = now
	if float64(rows) > r.left {
		return false
	}
	r.left -= float64(rows)
	return true
}

// DeadRateError stops a lane that has too many dead rows: rather than the rows,
// the job or its input is wrong. Everything before them is committed, and none of
// them has become a dead letter.
type DeadRateError struct {
	Table     string
	PerSecond int64
	// Rows are those that were too many, First one of them.
	Rows  int64
	First DeadEntry
}

func (e *DeadRateError) Error() string {
	where := ""
	if e.First.Column != "" {
		where = ", column " + e.First.Column
	}
	return fmt.Sprintf("table %s: more than %d rows a second are dead ('dead.max-rate', over %v): %d more, such as offset %d of topic %s partition %d (%s%s: %s); "+
		"correct the job and start it again, or have them as dead letters by resuming the lane or with a higher 'dead.max-rate'",
		e.Table, e.PerSecond, deadBurst, e.Rows, e.First.Offset, e.First.Topic, e.First.Partition, e.First.Reason, where, e.First.Message)
}
