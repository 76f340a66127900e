package node

import (
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/keyed"
	"github.com/millrace/millrace/runtime/ledger"
)

// keyedStages makes the keyed stages of a job over its checkpoints.
func keyedStages(store checkpoint.Store) engine.KeyedFactory {
	return &keyed.Factory{Store: func(ledger.Scope) checkpoint.Store { return store }}
}
