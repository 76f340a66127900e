package quota

import (
	"sync"
	"time"
)

// A rate is over so many samples of such a length, Kafka's defaults.
const (
	samples = 11
	sample  = time.Second
	window  = samples * sample
)

// maxRequestThrottle bounds the wait for request time, as Kafka does.
const maxRequestThrottle = sample

// sweepAt is the number of meters at which those without recent use are dropped.
// Clients choose their ids, so their number is not ours.
const sweepAt = 4096

// maxMeters bounds them even so: beyond it new clients share one meter a kind.
const maxMeters = 16 * sweepAt

// Meters measures rates.
type Meters struct {
	now func() time.Time

	mu      sync.Mutex
	start   time.Time
	meters  map[scope]*meter
	sweepAt int
}

// meter is a ring of samples; a slot whose turn is not of this round is empty.
type meter struct {
	first int64 // turn of the first use
	last  int64
	turn  [samples]int64
	sum   [samples]float64
}

// NewMeters returns meters by a clock.
func NewMeters(now func() time.Time) *Meters {
	return &Meters{now: now, start: now(), meters: map[scope]*meter{}, sweepAt: sweepAt}
}

// Record counts an amount (bytes, or nanoseconds of RequestPercent) and returns
// how long the client is to wait. Without a limit nothing is counted.
func (m *Meters) Record(t Table, k Kind, user, client string, amount float64) time.Duration {
	limit, s := t.limit(k, user, client)
	if limit == 0 {
		return 0
	}
	if k == RequestPercent {
		limit = limit / 100 * float64(time.Second)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	elapsed := max(m.now().Sub(m.start), 0)
	turn := int64(elapsed / sample)
	x := m.meters[s]
	if x == nil || x.last+samples <= turn {
		if x == nil && len(m.meters) >= m.sweepAt {
			m.sweep(turn)
		}
		if x == nil && len(m.meters) >= maxMeters {
			s = scope{kind: k}
			x = m.meters[s]
		}
	}
	if x == nil || x.last+samples <= turn {
		x = &meter{first: turn}
		for i := range x.turn {
			x.turn[i] = -1
		}
		m.meters[s] = x
	}
	x.last = turn
	slot := turn % samples
	if x.turn[slot] != turn {
		x.turn[slot], x.sum[slot] = turn, 0
	}
	x.sum[slot] += amount
	total, oldest := 0.0, turn
	for i, at := range x.turn {
		if at > turn-samples && at >= 0 {
			total += x.sum[i]
			oldest = min(oldest, at)
		}
	}
	// A young meter counts as one of ten full samples, so that the first request is
	// no burst.
	span := max(elapsed-time.Duration(oldest)*sample, (samples-1)*sample)
	rate := total / span.Seconds()
	if rate <= limit {
		return 0
	}
	wait := time.Duration((rate - limit) / limit * float64(span))
	if k == RequestPercent {
		return min(wait, maxRequestThrottle)
	}
	return wait
}

// sweep drops meters that measure nothing any more; the mutex is held.
func (m *Meters) sweep(turn int64) {
	for s, x := range m.meters {
		if x.last+samples <= turn {
			delete(m.meters, s)
		}
	}
	m.sweepAt = max(sweepAt, 2*len(m.meters))
}
