// Package control is how a command talks to the process that owns a data
// directory. [API] is everything that can be asked; the owner implements it
// (jobs/node) and serves it on DIR/control.sock ([Serve]); every other command given
// the same directory gets the same API through a client ([Dial]).
//
//	HTTP/1.1 over a Unix socket; one path per call, POST, JSON in, JSON out.
//	Streams of rows and records are frames (uvarint length + bytes), the last
//	frame empty, then a JSON trailer {"error":...}, so that a broken stream is
//	never taken for a finished one.
//
// A socket path longer than the kernel's limit is reached through
// /proc/self/fd of its folder.
//
// What it is not: the Kafka protocol (kafka.sock), a public REST API, or
// reachable over a network. Who can open the socket is decided by the data
// directory's permissions.
package control
