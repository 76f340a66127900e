package conntest

import (
	"math/rand/v2"
	"sync"
	"syscall"

	"github.com/millrace/millrace/storage/vfs"
)

// Faulty is the part of a FaultWorld that counts operations and lets them fail; worlds
// embed one. It is a vfs.Injector, and safe for concurrent use.
type Faulty struct {
	mu          sync.Mutex
	ops         int
	fail, crash int
	crashed     bool
}

// NewFaulty lets everything pass.
func NewFaulty() *Faulty { return &Faulty{fail: -1, crash: -1} }

// Step counts an operation and says whether it fails.
func (f *Faulty) Step() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := f.ops
	f.ops++
	f.crashed = f.crashed || op == f.crash
	if f.crashed || op == f.fail {
		return syscall.EIO
	}
	return nil
}

// Down fails, without counting, once the power is cut.
func (f *Faulty) Down() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
		return syscall.EIO
	}
	return nil
}

// Inject implements vfs.Injector: every operation on files is one.
func (f *Faulty) Inject(vfs.Op) error { return f.Step() }

// Operations implements FaultWorld.
func (f *Faulty) Operations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// Recount counts from 0 again: what came before was the world's own beginning.
func (f *Faulty) Recount() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = 0
}

// FailAt implements FaultWorld.
func (f *Faulty) FailAt(op int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = op
}

// CrashAt implements FaultWorld.
func (f *Faulty) CrashAt(op int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crash = op
}

// PowerCut is what a power cut keeps of what was not synced: nothing, a half, or all.
func PowerCut(seed uint64) vfs.CrashOptions {
	return vfs.CrashOptions{UnsyncedPercent: int(seed%3) * 50, Rand: rand.New(rand.NewPCG(seed, 1))}
}
