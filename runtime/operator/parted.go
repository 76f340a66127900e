package operator

import (
	"io"
	"slices"

	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// parted puts pieces of saved state into parts, each behind a head.
type parted struct {
	to *state.Payload
	// limit is about the length of a part.
	limit int64
	// head is that of a part of n pieces; more: there is another part.
	head   func(n int, more bool) []byte
	pieces []savedPiece
	n      int // pieces in the part
	size   int64
}

// savedPiece is bytes, or what is encoded when it is written, or blocks of a run from one
// to, not including, another, each behind the bytes.
type savedPiece struct {
	bytes    []byte
	encode   func(dst []byte) []byte
	run      *spill.Run
	from, to int
	size     int64
}

// bytes adds a piece that is in memory.
func (p *parted) bytes(b []byte) { p.add(savedPiece{bytes: b, size: int64(len(b))}, 1) }

// later adds a piece of about so many bytes that encode appends when it is written, from
// any goroutine.
func (p *parted) later(size int64, encode func(dst []byte) []byte) {
	p.add(savedPiece{encode: encode, size: size}, 1)
}

// run adds the blocks of a run, each a piece behind head, and holds it until the payload
// is released.
func (p *parted) run(r *spill.Run, head []byte) {
	r.Retain()
	p.to.OnRelease(r.Release)
	for from := 0; from < r.Blocks(); {
		x := savedPiece{bytes: head, run: r, from: from, to: from}
		for x.to < r.Blocks() && (x.to == from || p.size+x.size < p.limit) {
			x.size += int64(len(head)) + r.BlockBytes(x.to)
			x.to++
		}
		from = x.to
		p.add(x, x.to-x.from)
	}
}

func (p *parted) add(x savedPiece, n int) {
	p.pieces = append(p.pieces, x)
	p.n += n
	if p.size += x.size; p.size >= p.limit {
		p.flush(true)
	}
}

// finish ends the last part, which may have no pieces.
func (p *parted) finish() { p.flush(false) }

func (p *parted) flush(more bool) {
	p.to.Cut()
	p.to.Append(p.head(p.n, more))
	for _, x := range p.pieces {
		if x.encode != nil {
			p.to.AppendLater(x.encode)
			continue
		}
		if x.run == nil {
			p.to.Append(x.bytes)
			continue
		}
		p.to.AppendStored(x.size, func(w io.Writer, buf []byte) ([]byte, error) {
			return x.run.ReadAll(x.from, x.to, buf, func(block []byte) error {
				if _, err := w.Write(x.bytes); err != nil {
					return err
				}
				_, err := w.Write(block)
				return err
			})
		})
	}
	p.pieces, p.n, p.size = nil, 0, 0
}

// chunk is how many of n keys of state of so many bytes are a piece.
func (p *parted) chunk(n int, bytes int64) int {
	return int(max(p.limit/2*int64(n)/max(bytes, 1), 1))
}

// saveParts adds the table as several ones, each behind head; together they are what save
// would append once.
func (t *aggTable) saveParts(to *parted, head []byte) {
	slots := slotsOf(0, t.keys.Len(), nil)
	n := to.chunk(len(slots), t.bytes())
	if len(slots) == 0 && len(t.runs) == 0 {
		to.bytes(t.save(slices.Clone(head)))
	}
	for ; len(slots) > 0; slots = slots[min(n, len(slots)):] {
		to.bytes(t.saveSlots(slices.Clone(head), slots[:min(n, len(slots))]))
	}
	for _, r := range t.runs {
		to.run(r, head)
	}
}
