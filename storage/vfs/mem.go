package vfs

import (
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MemFS is a filesystem in memory that knows what is durable. Besides FS it has
// CrashClone, which returns the filesystem that a machine would find after a
// power cut at this moment.
type MemFS struct {
	mu    sync.Mutex
	root  *memNode
	locks map[string]bool
}

// NewMem returns an empty filesystem that holds only the directories "/" and
// ".", which are the same.
func NewMem() *MemFS {
	return &MemFS{root: newMemDir(), locks: map[string]bool{}}
}

// CrashOptions say what else survives than what was synced.
type CrashOptions struct {
	// UnsyncedPercent is the chance, 0 to 100, that an unsynced 512-byte sector
	// survives and that one more unsynced change of names, in the order of the
	// changes of its directory, does. 0 keeps only what was synced.
	UnsyncedPercent int
	// Rand makes the choices; it may be nil if UnsyncedPercent is 0 or 100.
	Rand *rand.Rand
}

func (o CrashOptions) survives() bool {
	switch {
	case o.UnsyncedPercent <= 0:
		return false
	case o.UnsyncedPercent >= 100:
		return true
	default:
		return o.Rand.IntN(100) < o.UnsyncedPercent
	}
}

// memNode is a file or a directory. All fields are guarded by MemFS.mu.
type memNode struct {
	dir     bool
	modTime time.Time
	file    memData
	// entries is what processes see; durable is what a crash leaves; pending
	// lists the changes between the two, oldest first.
	entries map[string]*memNode
	durable map[string]*memNode
	pending []*nameChange
}

// nameChange is one unsynced change of a directory: the name now means node, or
// nothing. A rename within a directory is one change with two names.
type nameChange struct {
	name    string
	node    *memNode
	oldName string // also removed by this change, if not empty
	// other is set when oldName is not removed but exchanged: it means other now.
	other *memNode
	// target is set on the half of a rename that takes the old name away from
	// another directory: it cannot survive without target, the other half.
	target    *nameChange
	targetDir *memNode
	done      bool // durable
}

func newMemDir() *memNode {
	return &memNode{dir: true, entries: map[string]*memNode{}, durable: map[string]*memNode{}}
}

func (d *memNode) change(c *nameChange) {
	if c.oldName != "" {
		delete(d.entries, c.oldName)
	}
	if c.node == nil {
		delete(d.entries, c.name)
	} else {
		d.entries[c.name] = c.node
	}
	if c.other != nil {
		d.entries[c.oldName] = c.other
	}
	d.pending = append(d.pending, c)
}

func applyName(m map[string]*memNode, c *nameChange) {
	if c.oldName != "" {
		delete(m, c.oldName)
	}
	if c.node == nil {
		delete(m, c.name)
	} else {
		m[c.name] = c.node
	}
	if c.other != nil {
		m[c.oldName] = c.other
	}
}

// syncNames makes the first n pending changes of the directory durable.
func (d *memNode) syncNames(n int) {
	todo := d.pending[:n]
	d.pending = append([]*nameChange(nil), d.pending[n:]...)
	for _, c := range todo {
		if c.target != nil && !c.target.done {
			for i, t := range c.targetDir.pending {
				if t == c.target {
					c.targetDir.syncNames(i + 1)
					break
				}
			}
		}
		applyName(d.durable, c)
		c.done = true
	}
}

func splitPath(name string) []string {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

// lookup returns the node of a path, nil if it is not there.
func (m *MemFS) lookup(name string) *memNode {
	n := m.root
	for _, p := range splitPath(name) {
		if !n.dir {
			return nil
		}
		if n = n.entries[p]; n == nil {
			return nil
		}
	}
	return n
}

// parent returns the directory that holds the path and the base name.
func (m *MemFS) parent(op, name string) (*memNode, string, error) {
	parts := splitPath(name)
	if len(parts) == 0 {
		return nil, "", pathErr(op, name, syscall.EINVAL)
	}
	d := m.lookup(strings.Join(parts[:len(parts)-1], "/"))
	if d == nil {
		return nil, "", pathErr(op, name, ErrNotExist)
	}
	if !d.dir {
		return nil, "", pathErr(op, name, syscall.ENOTDIR)
	}
	return d, parts[len(parts)-1], nil
}

func pathErr(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Join implements FS.
func (m *MemFS) Join(elem ...string) string { return path.Join(elem...) }

// Dir implements FS.
func (m *MemFS) Dir(name string) string { return path.Dir(name) }

// Base implements FS.
func (m *MemFS) Base(name string) string { return path.Base(name) }

func (m *MemFS) create(op, name string, exclusive bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent(op, name)
	if err != nil {
		return nil, err
	}
	n := d.entries[base]
	switch {
	case n != nil && exclusive:
		return nil, pathErr(op, name, ErrExist)
	case n != nil && n.dir:
		return nil, pathErr(op, name, syscall.EISDIR)
	case n != nil:
		n.file.truncate(0)
	default:
		n = &memNode{modTime: time.Now()}
		d.change(&nameChange{name: base, node: n})
	}
	return &memFile{m: m, n: n, name: name, write: true}, nil
}

// Create implements FS.
func (m *MemFS) Create(name string) (File, error) { return m.create("create", name, false) }

// CreateNew implements FS.
func (m *MemFS) CreateNew(name string) (File, error) { return m.create("create", name, true) }

func (m *MemFS) open(name string, write bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.lookup(name)
	if n == nil {
		return nil, pathErr("open", name, ErrNotExist)
	}
	if n.dir && write {
		return nil, pathErr("open", name, syscall.EISDIR)
	}
	return &memFile{m: m, n: n, name: name, write: write}, nil
}

// Open implements FS.
func (m *MemFS) Open(name string) (File, error) { return m.open(name, false) }

// OpenReadWrite implements FS.
func (m *MemFS) OpenReadWrite(name string) (File, error) { return m.open(name, true) }

// Remove implements FS.
func (m *MemFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	n := d.entries[base]
	if n == nil {
		return pathErr("remove", name, ErrNotExist)
	}
	if n.dir && len(n.entries) > 0 {
		return pathErr("remove", name, syscall.ENOTEMPTY)
	}
	d.change(&nameChange{name: base})
	return nil
}

// RemoveAll implements FS.
func (m *MemFS) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent("removeall", name)
	if err != nil || d.entries[base] == nil {
		return nil
	}
	d.change(&nameChange{name: base})
	return nil
}

func (m *MemFS) rename(oldName, newName string, replace bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	od, ob, err := m.parent("rename", oldName)
	if err != nil {
		return err
	}
	nd, nb, err := m.parent("rename", newName)
	if err != nil {
		return err
	}
	n := od.entries[ob]
	if n == nil {
		return pathErr("rename", oldName, ErrNotExist)
	}
	if old := nd.entries[nb]; old != nil {
		switch {
		case !replace:
			return pathErr("rename", newName, ErrExist)
		case old == n:
			return nil
		case old.dir != n.dir, old.dir && len(old.entries) > 0:
			return pathErr("rename", newName, ErrExist)
		}
	}
	if od == nd {
		od.change(&nameChange{name: nb, node: n, oldName: ob})
		return nil
	}
	in := &nameChange{name: nb, node: n}
	nd.change(in)
	od.change(&nameChange{name: ob, target: in, targetDir: nd})
	return nil
}

// Rename implements FS.
func (m *MemFS) Rename(oldName, newName string) error { return m.rename(oldName, newName, true) }

// RenameNoReplace implements FS.
func (m *MemFS) RenameNoReplace(oldName, newName string) error {
	return m.rename(oldName, newName, false)
}

// Exchange implements FS.
func (m *MemFS) Exchange(a, b string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ad, ab, err := m.parent("exchange", a)
	if err != nil {
		return err
	}
	bd, bb, err := m.parent("exchange", b)
	if err != nil {
		return err
	}
	an, bn := ad.entries[ab], bd.entries[bb]
	switch {
	case an == nil:
		return pathErr("exchange", a, ErrNotExist)
	case bn == nil:
		return pathErr("exchange", b, ErrNotExist)
	case ad != bd:
		return pathErr("exchange", b, ErrNotSupported)
	}
	ad.change(&nameChange{name: bb, node: an, oldName: ab, other: bn})
	return nil
}

// Link implements FS.
func (m *MemFS) Link(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.lookup(oldName)
	if n == nil || n.dir {
		return pathErr("link", oldName, ErrNotExist)
	}
	d, base, err := m.parent("link", newName)
	if err != nil {
		return err
	}
	if d.entries[base] != nil {
		return pathErr("link", newName, ErrExist)
	}
	d.change(&nameChange{name: base, node: n})
	return nil
}

// Mkdir implements FS.
func (m *MemFS) Mkdir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent("mkdir", dir)
	if err != nil {
		return err
	}
	if d.entries[base] != nil {
		return pathErr("mkdir", dir, ErrExist)
	}
	d.change(&nameChange{name: base, node: newMemDir()})
	return nil
}

// MkdirAll implements FS.
func (m *MemFS) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, p := range splitPath(dir) {
		next := n.entries[p]
		if next == nil {
			next = newMemDir()
			n.change(&nameChange{name: p, node: next})
		}
		if !next.dir {
			return pathErr("mkdir", dir, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// SyncDir implements FS.
func (m *MemFS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.lookup(dir)
	if d == nil || !d.dir {
		return pathErr("syncdir", dir, ErrNotExist)
	}
	d.syncNames(len(d.pending))
	return nil
}

// List implements FS.
func (m *MemFS) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.lookup(dir)
	if d == nil || !d.dir {
		return nil, pathErr("list", dir, ErrNotExist)
	}
	names := make([]string, 0, len(d.entries))
	for name := range d.entries {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, nil
}

// Stat implements FS.
func (m *MemFS) Stat(name string) (FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.lookup(name)
	if n == nil {
		return nil, pathErr("stat", name, ErrNotExist)
	}
	return n.info(name), nil
}

// FreeSpace implements FS; memory is taken to have a tebibyte left.
func (m *MemFS) FreeSpace(string) (int64, error) { return 1 << 40, nil }

type memLock struct {
	m    *MemFS
	name string
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.locks, l.name)
	return nil
}

// Lock implements FS. A crash clone starts without locks.
func (m *MemFS) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent("lock", name)
	if err != nil {
		return nil, err
	}
	key := path.Clean("/" + name)
	if m.locks[key] {
		return nil, &LockedError{Name: name, PID: os.Getpid()}
	}
	if d.entries[base] == nil {
		d.change(&nameChange{name: base, node: &memNode{modTime: time.Now()}})
	}
	m.locks[key] = true
	return &memLock{m: m, name: key}, nil
}

// CrashClone returns what a new process would find after a power cut now. The
// original goes on unchanged and the two share no state that either changes.
func (m *MemFS) CrashClone(o CrashOptions) *MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	// A change survives only with all earlier ones of its directory, and the
	// removing half of a rename only with its other half.
	kept := map[*nameChange]bool{}
	files := map[*memNode]*memNode{}
	m.choose(m.root, o, kept, map[*memNode]bool{})
	return &MemFS{root: m.root.crash(o, kept, files), locks: map[string]bool{}}
}

// choose decides which pending changes survive, for every directory that a
// process or a crash could reach.
func (m *MemFS) choose(d *memNode, o CrashOptions, kept map[*nameChange]bool, seen map[*memNode]bool) {
	if seen[d] {
		return
	}
	seen[d] = true
	children := map[*memNode]bool{}
	for _, c := range d.durable {
		children[c] = true
	}
	alive := true
	for _, c := range d.pending {
		for _, n := range []*memNode{c.node, c.other} {
			if n != nil {
				children[n] = true
			}
		}
		alive = alive && o.survives()
		if alive {
			kept[c] = true
		}
	}
	// Sorted by nothing but visited once each: the choice of one directory does
	// not depend on the others, except for the order of random numbers, so the
	// children are visited in the order of their names.
	names := make([]string, 0, len(d.durable)+len(d.pending))
	byName := map[string][]*memNode{}
	add := func(name string, n *memNode) {
		if n != nil && n.dir {
			if byName[name] == nil {
				names = append(names, name)
			}
			byName[name] = append(byName[name], n)
		}
	}
	for name, n := range d.durable {
		add(name, n)
	}
	for _, c := range d.pending {
		add(c.name, c.node)
		add(c.oldName, c.other)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, n := range byName[name] {
			m.choose(n, o, kept, seen)
		}
	}
}

// crash copies what survives of a node. Files reached by two names stay one.
func (n *memNode) crash(o CrashOptions, kept map[*nameChange]bool, done map[*memNode]*memNode) *memNode {
	if c := done[n]; c != nil {
		return c
	}
	if !n.dir {
		c := &memNode{modTime: n.modTime, file: n.file.crash(o)}
		done[n] = c
		return c
	}
	after := make(map[string]*memNode, len(n.durable))
	for name, child := range n.durable {
		after[name] = child
	}
	for _, c := range n.pending {
		if !kept[c] {
			break
		}
		if c.target != nil && !c.target.done && !kept[c.target] {
			continue
		}
		applyName(after, c)
	}
	c := newMemDir()
	done[n] = c
	names := make([]string, 0, len(after))
	for name := range after {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		child := after[name].crash(o, kept, done)
		c.entries[name] = child
		c.durable[name] = child
	}
	return c
}
