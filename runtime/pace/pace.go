package pace

import (
	"os"
	"runtime/debug"
	"sync"
)

const (
	// rest is about what is live in a process without state.
	rest = 16 << 20
	// share of the state that is head room.
	share = 4
	// leastChange of GOGC is worth stopping the world for.
	leastChange = 3
)

var pacer struct {
	mu      sync.Mutex
	follows bool
	held    int64 // bytes of state
	percent int
	set     func(percent int) int
}

// Follow has the collector follow the state from now on, unless the environment has GOGC.
// It is the program's to call: a library does not change how its process collects.
func Follow() {
	if os.Getenv("GOGC") != "" {
		return
	}
	pacer.mu.Lock()
	defer pacer.mu.Unlock()
	pacer.follows, pacer.percent, pacer.set = true, 100, debug.SetGCPercent
	adjust()
}

// Hold says that so many bytes of state are held in addition, or, negative, let go.
func Hold(bytes int64) {
	pacer.mu.Lock()
	defer pacer.mu.Unlock()
	pacer.held += bytes
	adjust()
}

// percentOf is GOGC for bytes of state.
func percentOf(state int64) int {
	state = max(state, 0)
	return int(100 * (rest + state/share) / (rest + state))
}

func adjust() {
	if !pacer.follows {
		return
	}
	p := percentOf(pacer.held)
	if d := p - pacer.percent; d < leastChange && d > -leastChange {
		return
	}
	pacer.percent = p
	pacer.set(p)
}
