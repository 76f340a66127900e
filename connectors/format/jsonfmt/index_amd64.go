package jsonfmt

// indexBlocks fills the index of the whole 64-byte blocks of b and returns how
// many bytes of words it filled. It uses SSE2, which every amd64 has.
//
//go:noescape
func indexBlocks(b, words []byte) int
