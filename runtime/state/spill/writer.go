package spill

import (
	"hash/crc32"
)

// bufferBytes is the most that is written at once. The buffer grows up to it: most files are
// short, and it comes on top of the budget.
const bufferBytes = 256 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes runs into one file.
type Writer struct {
	s    *Store
	f    *file
	buf  []byte
	at   int64 // behind what is in buf
	run  *Run
	runs []*Run
}

// NewWriter begins a file.
func (s *Store) NewWriter() (*Writer, error) {
	f, err := s.create()
	if err != nil {
		return nil, err
	}
	return &Writer{s: s, f: f}, nil
}

// Begin begins a run. It gets a filter for up to keys hashes; 0: none, its blocks
// are found by range alone. The run may be read after Finish.
func (w *Writer) Begin(keys int) *Run {
	w.run = &Run{s: w.s, f: w.f, filter: newFilter(keys)}
	w.runs = append(w.runs, w.run)
	return w.run
}

// Block appends a block to the run with the hashes of its keys, ascending and not
// below those of the block before. Keys of one hash belong into one block.
func (w *Writer) Block(data []byte, hashes []uint64) error {
	r := w.run
	r.blocks = append(r.blocks, block{low: hashes[0], high: hashes[len(hashes)-1], off: w.at, n: uint32(len(data)), crc: crc32.Checksum(data, castagnoli)})
	r.filter.add(hashes)
	r.keys += len(hashes)
	r.bytes += int64(len(data))
	w.at += int64(len(data))
	if len(w.buf)+len(data) > bufferBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(data) > bufferBytes {
		return w.write(data)
	}
	w.buf = append(w.buf, data...)
	return nil
}

func (w *Writer) flush() error {
	err := w.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *Writer) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := w.f.Write(b)
	w.f.size += int64(n)
	w.s.bytes.Add(int64(n))
	w.s.total.Add(int64(n))
	if err != nil {
		return &Error{"writing", w.f.name, err}
	}
	return nil
}

// Finish makes the runs readable, each with one reference that is the caller's.
func (w *Writer) Finish() error {
	if err := w.flush(); err != nil {
		w.Abort()
		return err
	}
	for range w.runs {
		w.s.retain(w.f)
	}
	w.s.release(w.f)
	return nil
}

// Abort drops the file.
func (w *Writer) Abort() { w.s.release(w.f) }
