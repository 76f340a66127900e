package spill

// filter says which hashes a run may have: a Bloom filter of 10 bits a key and 7
// probes, all in one 512-bit line. About one hash in a hundred that is not there
// passes.
type filter []uint64

const (
	filterBits   = 10
	filterProbes = 7
	lineWords    = 8
)

// newFilter makes one for up to keys hashes; nil for none: everything passes.
func newFilter(keys int) filter {
	if keys == 0 {
		return nil
	}
	lines := (keys*filterBits + 64*lineWords - 1) / (64 * lineWords)
	return make(filter, lines*lineWords)
}

// line is the first word of a hash's line, and what its probes are taken from. The
// hashes of a task have the highest byte in common: the line comes from all bits.
func (f filter) line(hash uint64) (at int, bits uint64) {
	x := hash * 0x9e3779b97f4a7c15
	x ^= x >> 32
	return int(x%uint64(len(f)/lineWords)) * lineWords, hash*0xc2b2ae3d27d4eb4f | 1
}

func (f filter) add(hashes []uint64) {
	if f == nil {
		return
	}
	for _, h := range hashes {
		at, bits := f.line(h)
		for range filterProbes {
			bit := bits >> 55
			f[at+int(bit>>6)] |= 1 << (bit & 63)
			bits *= 0xd6e8feb86659fd93
		}
	}
}

func (f filter) has(hash uint64) bool {
	if f == nil {
		return true
	}
	at, bits := f.line(hash)
	for range filterProbes {
		bit := bits >> 55
		if f[at+int(bit>>6)]&(1<<(bit&63)) == 0 {
			return false
		}
		bits *= 0xd6e8feb86659fd93
	}
	return true
}
