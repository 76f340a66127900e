package services

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Ports returns n loopback TCP ports that are free now. They are taken from below
// the range that outgoing connections use, so that a server that was killed finds
// its port free when it comes back.
func Ports(n int) ([]int, error) {
	const first, last = 10_000, 31_999
	ports := make([]int, 0, n)
	start := int(time.Now().UnixNano()/1000) % (last - first)
	for i := 0; i < last-first && len(ports) < n; i++ {
		port := first + (start+i)%(last-first)
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("looking for %d free ports: only %d between %d and %d", n, len(ports), first, last)
	}
	return ports, nil
}

// AcceptsTCP is a readiness test: something accepts connections at addr.
func AcceptsTCP(addr string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		d := net.Dialer{Timeout: time.Second}
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return c.Close()
	}
}
