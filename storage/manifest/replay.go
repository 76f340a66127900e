package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// replayed is what reading a manifest file found.
type replayed struct {
	generation  uint64
	size        int64
	end         int64 // position after the last whole frame
	snapshotEnd int64 // position after the snapshot; 0 if it is not whole
	sequence    uint64
	healed      int  // frames or headers of which one copy was damaged
	halfTail    bool // the last frame's second copy is not good
	tail        frame
	tailPayload []byte
}

// reader reads a manifest file frame by frame through one window.
type reader struct {
	f    vfs.File
	path string
	size int64
	at   int64  // position of the window
	win  []byte // window of the file
	buf  []byte
}

const windowBytes = 256 << 10

// replay reads a whole manifest file and hands its entries to apply. inForce
// says that CURRENT names the file, so that its snapshot had been durable.
func replay(f vfs.File, path string, inForce bool, apply func(uint16, []byte) error) (*replayed, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	r := &reader{f: f, path: path, size: st.Size()}
	res := &replayed{size: r.size}
	if err := r.fileHeader(res); err != nil {
		return nil, err
	}
	for {
		h, payload, next, err := r.frame(res)
		if err != nil {
			return nil, err
		}
		if next == 0 {
			break
		}
		switch h.kind {
		case frameSnapshot, frameEdits:
			ok, err := eachEdit(payload, h.entries, apply)
			if err != nil {
				return nil, fmt.Errorf("applying manifest entry of frame %d: %w", h.sequence, err)
			}
			if !ok {
				return nil, &RotError{Path: path, Position: res.end, Sequence: h.sequence, Reason: "entries do not fill the frame"}
			}
		case frameSnapshotEnd:
			res.snapshotEnd = next
		case frameMark:
		default:
			return nil, fmt.Errorf("%w: frame type %d in %s", ErrVersion, h.kind, path)
		}
		res.end, res.sequence = next, h.sequence
	}
	if res.end < r.size || res.snapshotEnd == 0 {
		if err := r.judgeTail(res, inForce); err != nil {
			return nil, err
		}
	}
	return res, nil
}

func (r *reader) fileHeader(res *replayed) error {
	b, err := r.window(0, dataStart)
	if err != nil {
		return err
	}
	found := 0
	for at := 0; at+fileHeaderSize <= len(b); at += fileHeaderSize {
		g, ok, err := decodeFileHeader(b[at:])
		if err != nil {
			return fmt.Errorf("opening %s: %w", r.path, err)
		}
		if ok {
			res.generation = g
			found++
		}
	}
	if found == 0 {
		return &RotError{Path: r.path, Reason: "no readable file header"}
	}
	res.healed += 2 - found
	res.end = dataStart
	return nil
}

// frame reads the frame at res.end from whichever copy is good. next is 0 if
// neither is.
func (r *reader) frame(res *replayed) (h frame, payload []byte, next int64, err error) {
	pos, want := res.end, res.sequence+1
	h, payload, ok, err := r.copyAt(res, pos, want, 0)
	if err != nil {
		return h, nil, 0, err
	}
	if ok {
		second, _, good, err := r.copyAt(res, pos+h.size(), want, 1)
		if err != nil {
			return h, nil, 0, err
		}
		res.halfTail = false
		if !good || second.checksum != h.checksum || second.length != h.length {
			// Reading the second copy may have moved the window.
			if h, payload, _, err = r.copyAt(res, pos, want, 0); err != nil {
				return h, nil, 0, err
			}
			r.half(res, h, payload)
		} else if h, payload, _, err = r.copyAt(res, pos, want, 0); err != nil {
			return h, nil, 0, err
		}
		return h, payload, pos + 2*h.size(), nil
	}
	// The first copy is bad. With a good header it says where the second is;
	// otherwise the second is found by its place: it begins one size later.
	at, err := r.find(pos+frameHeaderSize, func(at int64, h frame) bool {
		return h.generation == res.generation && h.sequence == want && h.copy == 1 && at-pos == h.size()
	})
	if err != nil || at < 0 {
		return h, nil, 0, err
	}
	h, payload, ok, err = r.copyAt(res, at, want, 1)
	if err != nil || !ok {
		return h, nil, 0, err
	}
	r.half(res, h, payload)
	return h, payload, pos + 2*h.size(), nil
}

// half notes that one copy of a frame is bad. If it is the last frame, Open
// writes both copies again before anything is appended.
func (r *reader) half(res *replayed, h frame, payload []byte) {
	res.healed++
	res.halfTail = true
	res.tail, res.tailPayload = h, append(res.tailPayload[:0], payload...)
}

// copyAt reads one copy of a frame; ok says that it is the one wanted and good.
func (r *reader) copyAt(res *replayed, pos int64, sequence uint64, which uint8) (h frame, payload []byte, ok bool, err error) {
	b, err := r.window(pos, frameHeaderSize)
	if err != nil {
		return h, nil, false, err
	}
	h, ok = decodeFrame(b)
	if !ok || h.generation != res.generation || h.sequence != sequence || h.copy != which || pos+h.size() > r.size {
		return h, nil, false, nil
	}
	b, err = r.window(pos, h.size())
	if err != nil || int64(len(b)) < h.size() {
		return h, nil, false, err
	}
	payload = b[frameHeaderSize:h.size()]
	return h, payload, record.Checksum(payload) == h.checksum, nil
}

// judgeTail decides whether what stands at res.end, or is missing there, is a
// torn tail (nil) or rot.
func (r *reader) judgeTail(res *replayed, inForce bool) error {
	rot := &RotError{Path: r.path, Position: res.end, Sequence: res.sequence + 1}
	if inForce && res.snapshotEnd == 0 {
		rot.Reason = "the snapshot is not whole"
		return rot
	}
	at, err := r.find(res.end, func(_ int64, h frame) bool {
		return h.generation == res.generation && h.sequence > res.sequence && h.durable > res.end
	})
	if err != nil {
		return err
	}
	if at >= 0 {
		rot.Reason = fmt.Sprintf("bad in both copies, but durable before the frame at byte %d was written", at)
		return rot
	}
	return nil
}

// find returns the position of the first valid frame header at or after pos for
// which match is true, or -1.
func (r *reader) find(pos int64, match func(at int64, h frame) bool) (int64, error) {
	for pos+frameHeaderSize <= r.size {
		b, err := r.window(pos, min(windowBytes, r.size-pos))
		if err != nil {
			return 0, err
		}
		for at := 0; ; at++ {
			i := bytes.Index(b[at:], []byte(frameMagic))
			if i < 0 {
				break
			}
			at += i
			if h, ok := decodeFrame(b[at:]); ok && match(pos+int64(at), h) {
				return pos + int64(at), nil
			}
		}
		pos += max(int64(len(b))-frameHeaderSize+1, 1)
	}
	return -1, nil
}

// window returns up to n bytes at pos, fewer only at the end of the file. They
// stay valid until the next call.
func (r *reader) window(pos, n int64) ([]byte, error) {
	if pos >= r.size {
		return nil, nil
	}
	n = min(n, r.size-pos)
	if pos < r.at || pos+n > r.at+int64(len(r.win)) {
		want := min(max(n, windowBytes), r.size-pos)
		if int64(cap(r.buf)) < want {
			r.buf = make([]byte, want)
		}
		r.win = nil
		got, err := r.f.ReadAt(r.buf[:want], pos)
		if int64(got) < want {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("reading %s at %d: %w", r.path, pos, err)
		}
		r.at, r.win = pos, r.buf[:want]
	}
	return r.win[pos-r.at : pos-r.at+n], nil
}
