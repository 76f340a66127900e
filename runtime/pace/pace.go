// Package pace tells the garbage collector how much head room the process needs.
//
// Go's collector runs when the heap has grown by as much as is live: the right trade
// while what is live is small, and twice the memory once it is state of running jobs.
// State is columns, which the collector does not look into, so that a collection costs
// about the same however much of it there is. So the head room is what a process
// without state would have, and a quarter of the state:
//
//	state     0    32 MiB   128 MiB   256 MiB   1 GiB
//	GOGC    100        50        33        29      26
//
// What it is not: a limit. GOMEMLIMIT works beside it, and a GOGC that is set in the
// environment is left as it is.
//
// # Concurrency
//
// Everything may be called from anywhere.
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
