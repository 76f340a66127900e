package vfs

import (
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"
)

// memBlock is the unit in which a file's memory is copied, in bytes; memSector
// the unit in which a crash keeps or loses unsynced bytes.
const (
	memBlock  = 4096
	memSector = 512
)

// memData is a file's bytes now and as a crash would leave them. A block that
// both share is never written in place, so clones may share it too. A nil block
// is all zeros.
type memData struct {
	now, durable         []*[memBlock]byte
	size, durableSize    int64
	dirty                map[int]struct{} // blocks where now and durable may differ
	truncatedSinceSynced bool
}

func (d *memData) block(i int) *[memBlock]byte {
	if i < len(d.now) {
		return d.now[i]
	}
	return nil
}

func (d *memData) durableBlock(i int) *[memBlock]byte {
	if i < len(d.durable) {
		return d.durable[i]
	}
	return nil
}

// writable returns block i of the current content for writing.
func (d *memData) writable(i int) *[memBlock]byte {
	for len(d.now) <= i {
		d.now = append(d.now, nil)
	}
	if d.dirty == nil {
		d.dirty = map[int]struct{}{}
	}
	b := d.now[i]
	if b == nil || b == d.durableBlock(i) {
		c := new([memBlock]byte)
		if b != nil {
			*c = *b
		}
		b = c
		d.now[i] = b
	}
	d.dirty[i] = struct{}{}
	return b
}

func (d *memData) writeAt(p []byte, off int64) {
	for len(p) > 0 {
		b := d.writable(int(off / memBlock))
		n := copy(b[off%memBlock:], p)
		p = p[n:]
		off += int64(n)
	}
	d.size = max(d.size, off)
}

func (d *memData) zero(off, length int64) {
	end := off + length
	for off < end {
		i := int(off / memBlock)
		n := min(memBlock-off%memBlock, end-off)
		if n == memBlock {
			for len(d.now) <= i {
				d.now = append(d.now, nil)
			}
			if d.dirty == nil {
				d.dirty = map[int]struct{}{}
			}
			d.now[i] = nil
			d.dirty[i] = struct{}{}
		} else {
			clear(d.writable(i)[off%memBlock : off%memBlock+n])
		}
		off += n
	}
	d.size = max(d.size, end)
}

func (d *memData) readAt(p []byte, off int64) int {
	if off >= d.size {
		return 0
	}
	p = p[:min(int64(len(p)), d.size-off)]
	for n := 0; n < len(p); {
		at := off + int64(n)
		part := p[n:]
		part = part[:min(int64(len(part)), memBlock-at%memBlock)]
		if b := d.block(int(at / memBlock)); b == nil {
			clear(part)
		} else {
			copy(part, b[at%memBlock:])
		}
		n += len(part)
	}
	return len(p)
}

func (d *memData) truncate(size int64) {
	if size < d.size {
		blocks := int((size + memBlock - 1) / memBlock)
		if rest := size % memBlock; rest != 0 && d.block(blocks-1) != nil {
			clear(d.writable(blocks - 1)[rest:])
		}
		if blocks < len(d.now) {
			d.now = append([]*[memBlock]byte(nil), d.now[:blocks]...)
		}
		d.truncatedSinceSynced = true
	}
	d.size = size
}

// sync makes the current content durable.
func (d *memData) sync() {
	if d.truncatedSinceSynced {
		d.durable = append([]*[memBlock]byte(nil), d.now...)
	} else {
		for len(d.durable) < len(d.now) {
			d.durable = append(d.durable, nil)
		}
		for i := range d.dirty {
			d.durable[i] = d.block(i)
		}
	}
	d.durableSize = d.size
	d.truncatedSinceSynced = false
	clear(d.dirty)
}

// crash returns the durable content plus what else the options keep.
func (d *memData) crash(o CrashOptions) memData {
	blocks := append([]*[memBlock]byte(nil), d.durable...)
	size := d.durableSize
	if o.UnsyncedPercent > 0 {
		if d.size != size && o.survives() {
			size = d.size
		}
		n := int((size + memBlock - 1) / memBlock)
		for len(blocks) < n {
			blocks = append(blocks, nil)
		}
		blocks = blocks[:n]
		// Every block of the file takes part in order, so that the random
		// numbers do not depend on the order of a map.
		for i := range blocks {
			if _, ok := d.dirty[i]; !ok && !d.truncatedSinceSynced {
				continue
			}
			cur, dur := d.block(i), d.durableBlock(i)
			if cur == dur {
				continue
			}
			c := new([memBlock]byte)
			for s := 0; s < memBlock; s += memSector {
				from := dur
				if o.survives() {
					from = cur
				}
				if from != nil {
					copy(c[s:s+memSector], from[s:])
				}
			}
			blocks[i] = c
		}
	}
	// Bytes behind the end read as zeros if the file grows again.
	if rest := size % memBlock; rest != 0 {
		if i := int(size / memBlock); i < len(blocks) && blocks[i] != nil {
			c := *blocks[i]
			clear(c[rest:])
			blocks[i] = &c
		}
	}
	return memData{
		now: blocks, size: size,
		durable: append([]*[memBlock]byte(nil), blocks...), durableSize: size,
	}
}

type memInfo struct {
	name    string
	size    int64
	dir     bool
	modTime time.Time
}

func (n *memNode) info(name string) memInfo {
	return memInfo{name: path.Base(name), size: n.file.size, dir: n.dir, modTime: n.modTime}
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.modTime }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type memFile struct {
	m      *MemFS
	n      *memNode
	name   string
	write  bool
	closed bool
	cursor int64
}

// enter locks the filesystem and says whether the file can be used.
func (f *memFile) enter(op string, writing bool) error {
	f.m.mu.Lock()
	var err error
	switch {
	case f.closed:
		err = ErrClosed
	case f.n.dir:
		err = syscall.EISDIR
	case writing && !f.write:
		err = syscall.EBADF
	}
	if err != nil {
		f.m.mu.Unlock()
		return pathErr(op, f.name, err)
	}
	return nil
}

func (f *memFile) Name() string { return f.name }

func (f *memFile) Read(p []byte) (int, error) {
	if err := f.enter("read", false); err != nil {
		return 0, err
	}
	defer f.m.mu.Unlock()
	n := f.n.file.readAt(p, f.cursor)
	f.cursor += int64(n)
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.enter("read", false); err != nil {
		return 0, err
	}
	defer f.m.mu.Unlock()
	n := f.n.file.readAt(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	if err := f.enter("write", true); err != nil {
		return 0, err
	}
	defer f.m.mu.Unlock()
	f.n.file.writeAt(p, f.cursor)
	f.n.modTime = time.Now()
	f.cursor += int64(len(p))
	return len(p), nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.enter("write", true); err != nil {
		return 0, err
	}
	defer f.m.mu.Unlock()
	f.n.file.writeAt(p, off)
	f.n.modTime = time.Now()
	return len(p), nil
}

func (f *memFile) Preallocate(offset, length int64) error {
	if err := f.enter("preallocate", true); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	f.n.file.zero(offset, length)
	return nil
}

func (f *memFile) Truncate(size int64) error {
	if err := f.enter("truncate", true); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	f.n.file.truncate(size)
	f.n.modTime = time.Now()
	return nil
}

func (f *memFile) Sync() error {
	if err := f.enter("sync", false); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	f.n.file.sync()
	return nil
}

func (f *memFile) SyncData() error { return f.Sync() }

func (f *memFile) Stat() (FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return nil, pathErr("stat", f.name, ErrClosed)
	}
	return f.n.info(f.name), nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return pathErr("close", f.name, ErrClosed)
	}
	f.closed = true
	return nil
}
