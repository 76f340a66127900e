// Package exitcode is the one place that decides how the process ends.
//
//	0  ok
//	1  the job or the test failed
//	2  invalid input: usage, SQL, options
//	3  environment: unreachable, denied, port, disk, directory in use
//	4  partly done
//	130, 143  a second SIGINT or SIGTERM
//
// Commands return errors of this package's kinds (or errors that carry one);
// main asks [Of].
package exitcode
