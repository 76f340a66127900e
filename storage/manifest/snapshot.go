package manifest

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/storage/vfs"
)

// snapshotFrameBytes is the size at which a frame of a snapshot is closed.
const snapshotFrameBytes = 256 << 10

// Snapshot rewrites the manifest: write emits the whole state, as it is after
// every edit appended so far, and a new file takes the place of the old one,
// durably, with everything appended before.
//
// Appends block meanwhile. The caller must hold whatever lock guards its state
// before it calls Snapshot, so that state and log cannot drift apart; write must
// not call the Log.
//
// If it fails while the new file is being written (a full disk, an error of
// write), the old file stays in force and the Log goes on. If it fails at the
// switch, the outcome is unknown and the Log must be opened anew.
func (l *Log) Snapshot(write func(emit func(kind uint16, payload []byte) error) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncing {
		l.wake.Wait()
	}
	if err := l.usable(); err != nil {
		return err
	}
	old, oldName := l.f, fileName(l.gen)
	if err := l.switchTo(l.gen+1, write); err != nil {
		return fmt.Errorf("rewriting manifest: %w", err)
	}
	l.synced = l.appended
	l.healed = false
	l.wake.Broadcast()
	// What is left of the old file is only garbage now, which Open removes: an
	// error of removing it must not fail the rewrite.
	_ = old.Close()
	_ = l.fs.Remove(l.fs.Join(l.dir, oldName))
	return nil
}

// switchTo writes a file of a new generation and puts it in force. mu is held or
// the Log not yet shared.
func (l *Log) switchTo(generation uint64, write func(emit func(uint16, []byte) error) error) error {
	path := l.fs.Join(l.dir, fileName(generation))
	f, err := l.fs.Create(path)
	if err != nil {
		return err
	}
	w := &snapshotWriter{f: f, generation: generation}
	err = w.run(write)
	if err == nil {
		if err = f.Sync(); err != nil {
			err = fmt.Errorf("syncing snapshot: %w", err)
		}
	}
	if err != nil {
		_ = f.Close()
		if rerr := l.discard(path); rerr != nil {
			return l.fail(errors.Join(err, rerr))
		}
		return err
	}
	// From here on the file is whole. Its name is made durable before CURRENT
	// points to it.
	if err = l.fs.SyncDir(l.dir); err == nil {
		err = vfs.WriteFileAtomic(l.fs, l.fs.Join(l.dir, currentName), encodeCurrent(generation))
	}
	if err != nil {
		_ = f.Close()
		// Invariant 3: it is not known which file a crash would leave in force.
		return l.fail(fmt.Errorf("switching %s: %w", currentName, err))
	}
	l.f, l.gen, l.sequence = f, generation, w.sequence
	l.written, l.durable, l.snapshot = w.pos, w.pos, w.pos
	l.buf = l.buf[:0]
	return nil
}

// discard removes a file that never came into force. It must be gone for good
// before the old file grows: see locate.
func (l *Log) discard(path string) error {
	if err := l.fs.Remove(path); err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return fmt.Errorf("removing unfinished manifest: %w", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return fmt.Errorf("removing unfinished manifest: %w", err)
	}
	return nil
}

// snapshotWriter writes a new file up to the end of its snapshot.
type snapshotWriter struct {
	f          vfs.File
	generation uint64
	sequence   uint64
	pos        int64
	payload    []byte
	entries    uint32
	buf        []byte
}

func (w *snapshotWriter) run(write func(emit func(uint16, []byte) error) error) error {
	head := make([]byte, dataStart)
	encodeFileHeader(head, w.generation)
	encodeFileHeader(head[fileHeaderSize:], w.generation)
	if err := w.write(head); err != nil {
		return err
	}
	if err := write(w.emit); err != nil {
		return err
	}
	if err := w.frame(frameSnapshot); err != nil {
		return err
	}
	w.entries = 1 // an end frame is written even without entries
	return w.frame(frameSnapshotEnd)
}

func (w *snapshotWriter) emit(kind uint16, payload []byte) error {
	if editHeaderSize+len(payload) > MaxBatchBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, editHeaderSize+len(payload), MaxBatchBytes)
	}
	w.payload = appendEdit(w.payload, kind, payload)
	w.entries++
	if len(w.payload) >= snapshotFrameBytes {
		return w.frame(frameSnapshot)
	}
	return nil
}

func (w *snapshotWriter) frame(kind frameType) error {
	if w.entries == 0 {
		return nil
	}
	w.sequence++
	h := frame{kind: kind, generation: w.generation, sequence: w.sequence, entries: w.entries}
	if kind == frameSnapshotEnd {
		h.entries = 0
	}
	w.buf = appendFrame(w.buf[:0], h, w.payload)
	w.payload, w.entries = w.payload[:0], 0
	return w.write(w.buf)
}

func (w *snapshotWriter) write(b []byte) error {
	if _, err := w.f.WriteAt(b, w.pos); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	w.pos += int64(len(b))
	return nil
}
