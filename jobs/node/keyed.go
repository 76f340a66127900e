package node

import (
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/engine"
)

// keyedStages makes the keyed stages of a job over its checkpoints.
func keyedStages(store checkpoint.Store, discardAfter uint64) engine.KeyedFactory {
	return nil
}
