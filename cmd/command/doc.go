// Package command is the command line `millrace` for programs that bring functions
// of their own: the whole of it, with these functions known to every command.
//
//	func main() {
//		set, err := userfunc.NewSet(...)
//		if err != nil {
//			log.Fatal(err)
//		}
//		os.Exit(command.Main(command.Options{Functions: set}, os.Args[1:]))
//	}
//
// So such a program checks, explains, previews, tests and runs its SQL as the
// ready-made binary does, which is this package without functions. A command that
// goes to another process (by the same --data) meets the functions of that process.
//
// What it is not: a way to run jobs from Go code (jobs, jobs/node).
package command
