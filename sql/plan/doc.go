// Package plan turns statements into logical plans.
//
// A plan is a tree of [Node]s whose columns have ids that are unique within
// the job; expressions (runtime/expr) refer to columns by id, not by place, so
// that rules can move nodes without renumbering. Lowering replaces ids by
// ordinals.
//
//	Insert
//	  Project   casts to the table's types
//	    Aggregate  keys, window
//	      Tumble
//	        Project  computed columns
//	          Scan
//
// Binding resolves names and types, inserts implicit casts, and decides what a
// column is beyond its type: row time (kept by bare references, lost by any
// expression), window bound, determinism, Flink's type of a widened SUM.
//
// Faults go to a diag.List with the place in the text; a node or expression
// that could not be bound is nil and whatever depends on it stays silent.
// Views and CTEs are macros: each reference binds the query anew.
//
// Nodes are immutable once bound; rules make new ones. A Binder belongs to one
// goroutine.
package plan
