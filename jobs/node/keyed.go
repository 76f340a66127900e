package node

import (
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/keyed"
	"github.com/millrace/millrace/runtime/ledger"
)

// keyedStages makes the keyed stages of a job over its checkpoints, giving up
// those above discardAfter; 0 gives up none.
func keyedStages(store checkpoint.Store, discardAfter uint64) engine.KeyedFactory {
	return &keyed.Factory{
		Store:   func(ledger.Scope) checkpoint.Store { return store },
		Options: keyed.Options{DiscardAfter: discardAfter},
	}
}
