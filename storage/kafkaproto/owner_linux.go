package kafkaproto

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ownerOf reports the user of the process at the other end of a Unix socket, if
// it is this process's user or root.
func ownerOf(c *net.UnixConn) (uid uint32, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil || err != nil {
		return 0, false
	}
	return cred.Uid, cred.Uid == 0 || int(cred.Uid) == os.Geteuid()
}
