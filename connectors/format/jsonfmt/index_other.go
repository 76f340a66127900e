//go:build !amd64

package jsonfmt

// indexBlocks leaves all blocks to the portable code.
func indexBlocks(_, _ []byte) int { return 0 }
