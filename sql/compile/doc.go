// Package compile is the front end's one door: SQL text in, checked statements
// and job graphs out.
//
//	files --syntax.Parse--> trees --plan.Bind--> logical plans
//	      --optimizer.Run--> plans --lower.Job--> runtime/graph.Job
//
// A file is a job: all INSERTs of the files given form one graph.Job, and
// everything binds before anything may start; diagnostics of all statements
// come back together. Nothing here opens a connection or reads data.
//
// FOR EACH TABLE is written out while binding: its body is bound once for each table
// of the set, and what is wrong in all of them is said once.
//
// A [Session] carries tables and settings from one Compile to the next (the
// shell); without one each Compile starts empty. A Session belongs to one
// goroutine; everything in a [Unit] is immutable.
package compile
