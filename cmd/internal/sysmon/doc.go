// Package sysmon makes the Go runtime's monitor thread wake up less often.
//
//	Relax() error
//
// The monitor takes processors away from goroutines that sit in system calls. A
// process that waits for the disk and the network all the time keeps it in its
// shortest sleep of 20 us: on a virtual machine that was a tenth to a fourth of the
// log server's processor time. The kernel may end that sleep later by the thread's
// timer slack, 50 us by default; Relax makes it Slack.
//
// What it is not: it changes no timers of the program, whose threads keep their
// slack, and nothing depends on it. Only Linux has it, and it takes CAP_SYS_NICE.
//
// Concurrency: Relax is called once, by a command that begins to serve.
package sysmon
