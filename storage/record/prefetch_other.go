//go:build !amd64

package record

const lineBytes = 64

// prefetch does nothing here.
func prefetch(*byte, int) {}
