package node

import (
	"errors"
	"io/fs"

	"github.com/google/uuid"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/keyed"
	"github.com/millrace/millrace/runtime/ledger"
)

// keyedStages makes the keyed stages of a job over its checkpoints, giving up
// those above discardAfter; 0 gives up none. What they have no memory for goes into a
// directory of the run's own.
func (n *Node) keyedStages(store checkpoint.Store, discardAfter uint64) engine.KeyedFactory {
	return &keyed.Factory{
		Store:    func(ledger.Scope) checkpoint.Store { return store },
		Options:  keyed.Options{DiscardAfter: discardAfter},
		SpillFS:  n.opts.FS,
		SpillDir: n.opts.FS.Join(n.spillDir(), uuid.NewString()),
	}
}

// spillDir is where runs put state that they have no memory for. Nothing in it
// outlives the process: open removes what a crash has left.
func (n *Node) spillDir() string { return n.opts.FS.Join(n.opts.Dir, "spill") }

// emptySpill removes what is in spillDir, and leaves the directory: a fast disk of
// its own may be mounted there.
func (n *Node) emptySpill() error {
	names, err := n.opts.FS.List(n.spillDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, n.opts.FS.RemoveAll(n.opts.FS.Join(n.spillDir(), name)))
	}
	return err
}
