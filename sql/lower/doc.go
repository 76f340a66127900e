// Package lower turns logical plans into a job graph (runtime/graph).
//
// Column ids become ordinals. A table that several statements read becomes one
// source with the columns that any of them needs; the INSERTs into one table
// become one sink with several inputs. In front of each keyed operator stands
// an exchange by its keys.
//
//	Insert(Aggregate(Scan a))   Source a > Exchange > WindowAggregate > Sink t
//	Insert(Project(Scan a))            \ > Project ------------------> Sink u
//
// It decides nothing about SQL: faults found here are mistakes of the planner,
// except those of graph.Validate that name a state path.
package lower
