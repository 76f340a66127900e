//go:build !amd64

package record

// prefetch does nothing here.
func prefetch(*byte, int) {}
