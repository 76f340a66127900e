// Package jobs runs SQL jobs inside a Go program: the program brings connectors,
// functions of its own and a data directory, and the SQL files say what to do.
//
//	report, err := jobs.Run(ctx, jobs.Options{
//		Files:      []jobs.File{{Name: "job.sql", Text: text}},
//		Dir:        "data",
//		Connectors: connectors,
//		Functions:  functions,
//	})
//
// It is the simple door to jobs/node, for programs that run one job and end with
// it. Who wants queries, dead letters and their replay, or several jobs beside each
// other, opens a node.Node. Who wants all of the command line with functions of
// their own uses cmd/command.
//
// Run may be called from any goroutine; a data directory belongs to one at a time.
package jobs
