//go:build !linux

package kafkaproto

import "net"

// ownerOf knows nobody where the system does not tell: clients log in.
func ownerOf(*net.UnixConn) (uid uint32, ok bool) { return 0, false }
