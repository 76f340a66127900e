package operator

// byteSlab keeps many byte strings in few pieces of memory. They stay where they are.
type byteSlab struct {
	list [][]byte
	free []byte // what is left of the last piece
	size int64  // of all pieces
}

const (
	leastSlab = 1 << 10
	mostSlab  = 256 << 10
)

// add copies b behind the others.
func (s *byteSlab) add(b []byte) { s.list = append(s.list, s.keep(b)) }

// keep is a copy of b that is not in the list.
func (s *byteSlab) keep(b []byte) []byte {
	if len(b) > cap(s.free)-len(s.free) {
		s.free = make([]byte, 0, max(int(min(s.size, mostSlab)), leastSlab, len(b)))
		s.size += int64(cap(s.free))
	}
	from := len(s.free)
	s.free = append(s.free, b...)
	return s.free[from:len(s.free):len(s.free)]
}

func (s *byteSlab) at(i int32) []byte { return s.list[i] }

// reset empties the list; what it had is overwritten.
func (s *byteSlab) reset() {
	s.list, s.free, s.size = s.list[:0], s.free[:0], int64(cap(s.free))
}

func (s *byteSlab) bytes() int64 { return s.size + int64(24*cap(s.list)) }
