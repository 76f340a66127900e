package record

// prefetch begins to bring lines of memory into the processor's cache, and does not
// wait for them.
//
//go:noescape
func prefetch(first *byte, lines int)
