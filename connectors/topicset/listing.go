package topicset

import (
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

const keyDiscovery = "scan.topic-partition-discovery.interval"

// DiscoveryOption says how often partitions are looked for; asked: who is asked.
func DiscoveryOption(asked string) connector.Option {
	return connector.Option{Key: keyDiscovery, Type: connector.OptDuration,
		Doc: "How long a list of partitions is good for, `0` for ever. New partitions are read from their first record on. Without it " + asked +
			" is asked every `source.monitor-interval` of the job, and never more often than that."}
}

// Listing is what Partitions gave, for as long as it is good. The zero value is ready;
// it is safe for concurrent use.
type Listing struct {
	mu     sync.Mutex
	listed []connector.Partition
	asked  time.Time
}

// List gives the partitions that are known, or asks for them.
func (l *Listing) List(v connector.Values, ask func() ([]connector.Partition, error)) ([]connector.Partition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed != nil && v.Has(keyDiscovery) {
		if d := v.Duration(keyDiscovery); d == 0 || time.Since(l.asked) < d {
			return slices.Clone(l.listed), nil
		}
	}
	out, err := ask()
	if err != nil {
		return nil, err
	}
	l.listed, l.asked = out, time.Now()
	return slices.Clone(out), nil
}
