package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/millrace/millrace/storage/vfs"
)

// State says what is known of an entry.
type State uint8

// States of entries.
const (
	// Valid entries passed all their checksums.
	Valid State = iota
	// Bad entries have a readable header and content that does not match it.
	Bad
)

// Entry is an entry found in a group.
type Entry struct {
	Kind      Kind
	State     State
	Partition uint32
	Base      int64
	Last      int64
	// Note and Payload are nil for Bad entries. They alias the file's memory
	// that Recover read.
	Note, Payload []byte
	// Position is that of the entry header in the file.
	Position int64
}

// Group is a group found by Recover.
type Group struct {
	Sequence uint64
	Epoch    uint32
	TimeMs   int64
	File     string
	Position int64
	Length   int64
	Entries  []Entry
	// Unknown says that entries may be missing whose headers could be read
	// neither in place nor in the directory; Damage is then not empty.
	Unknown bool
	// Damage lists what was wrong, one text each, also of what cost nothing.
	Damage []string
}

// foundFile is a journal file of this shard.
type foundFile struct {
	path   string
	number uint64
	size   int64
	last   uint64
	// headerLost says that the file header is unreadable, useless that the file
	// holds nothing and was perhaps never completed.
	headerLost, useless bool
}

// Recovered is what a journal holds.
type Recovered struct {
	// Groups are those with a sequence above the one asked for, in order. Gaps
	// in the sequence are groups of which nothing could be read.
	Groups []*Group
	// Last is the highest sequence found in the files, also among groups that
	// were not asked for.
	Last uint64
	// Mark is the highest durable mark: what is damaged at or before it has
	// rotted, what is behind it may be torn.
	Mark uint64
	// Epoch is the highest epoch found.
	Epoch uint32
	// Damage lists files whose header had to be ignored.
	Damage []string

	files []foundFile
}

// Recover reads the journal of a shard: every group with a sequence above after.
// It changes nothing. Damage is reported and never an error; what is an error is
// reading that fails and files of an unknown version or another owner.
func Recover(o Options, after uint64) (*Recovered, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("listing journal: %w", err)
	}
	r := &Recovered{}
	prefix := fmt.Sprintf("%02d-", o.Shard)
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, ".mrj") {
			continue
		}
		if err := r.readFile(o, o.FS.Join(o.Dir, name), name, after); err != nil {
			return nil, fmt.Errorf("reading journal file %s: %w", name, err)
		}
	}
	r.order()
	return r, nil
}

func (r *Recovered) readFile(o Options, path, name string, after uint64) error {
	buf, err := vfs.ReadFile(o.FS, path)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var number uint64
	if _, err := fmt.Sscanf(name[len(fmt.Sprintf("%02d-", o.Shard)):], "%d.mrj", &number); err != nil {
		return fmt.Errorf("%w: bad name", ErrNotJournal)
	}
	ff := foundFile{path: path, number: number, size: int64(len(buf)) / Align * Align}
	h, err := decodeFileHeader(buf) // err is looked at again below
	switch {
	case errors.Is(err, ErrVersion):
		return err
	case err != nil:
		// A file that was being made when the power went has no header and no
		// groups; one whose header rotted has them, and each names its owner.
		if len(bytes.Trim(buf, "\x00")) > 0 {
			r.Damage = append(r.Damage, fmt.Sprintf("%s: file header unreadable", name))
		}
	case h.store != o.Store || h.shard != o.Shard:
		return fmt.Errorf("%w: it belongs to store %x shard %d", ErrNotJournal, h.store, h.shard)
	}
	s := scanner{salt: salt(o.Store, o.Shard), buf: buf, path: path}
	if serr := s.scan(); serr != nil {
		return serr
	}
	for _, g := range s.groups {
		ff.last = max(ff.last, g.Sequence)
		r.Mark = max(r.Mark, g.mark)
		r.Epoch = max(r.Epoch, g.Epoch)
		if g.Sequence > after {
			r.Groups = append(r.Groups, &g.Group)
		}
	}
	r.Last = max(r.Last, ff.last)
	ff.headerLost = err != nil
	ff.useless = len(s.groups) == 0 && (ff.headerLost || ff.size < 2*Align)
	r.files = append(r.files, ff)
	return nil
}

// order sorts the groups; of two with one sequence the higher epoch is the one
// that counts, the other is what a lost tail left behind.
func (r *Recovered) order() {
	sort.SliceStable(r.Groups, func(i, j int) bool {
		a, b := r.Groups[i], r.Groups[j]
		if a.Sequence != b.Sequence {
			return a.Sequence < b.Sequence
		}
		return a.Epoch > b.Epoch
	})
	r.Groups = slices.CompactFunc(r.Groups, func(a, b *Group) bool { return a.Sequence == b.Sequence })
}

type scannedGroup struct {
	Group
	mark uint64
}

type scanner struct {
	salt   uint32
	buf    []byte
	path   string
	groups []scannedGroup
}

// scan walks the file from group to group. Where there is no valid group header
// it tries every Align bytes: for a header, and for the copy at the end of a
// group whose header is damaged.
func (s *scanner) scan() error {
	lost := int64(-1) // start of a stretch without a readable group header
	for pos := int64(Align); pos+Align <= int64(len(s.buf)); {
		h, ok, err := decodeGroupHeader(s.buf[pos:], s.salt)
		if err != nil {
			return err
		}
		if ok && pos+int64(h.length) <= int64(len(s.buf)) {
			lost = -1
			s.group(pos, h, "")
			pos += int64(h.length)
			continue
		}
		if lost < 0 {
			lost = pos
		}
		pos += Align
		h, ok, err = decodeGroupHeader(s.buf[pos-groupHeaderSize:pos], s.salt)
		if err != nil {
			return err
		}
		if start := pos - int64(h.length); ok && start >= lost {
			lost = -1
			s.group(start, h, "group header unreadable, its copy used")
		}
	}
	return nil
}

// group reads the entries of a group: by walking the entry headers, with the
// directory's copy for those that are damaged.
func (s *scanner) group(pos int64, h groupHeader, damage string) {
	b := s.buf[pos : pos+int64(h.length)]
	g := scannedGroup{mark: h.mark, Group: Group{Sequence: h.sequence, Epoch: h.epoch, TimeMs: h.timeMs,
		File: s.path, Position: pos, Length: int64(h.length)}}
	if damage != "" {
		g.Damage = append(g.Damage, damage)
	} else if tail := b[len(b)-groupHeaderSize:]; !bytes.Equal(tail, b[:groupHeaderSize]) {
		g.Damage = append(g.Damage, "copy of the group header unreadable")
	}
	dir := b[h.directory : h.directory+h.entries*entryHeaderSize]
	dirOK := sum(s.salt, dir) == h.directoryCRC
	if !dirOK {
		g.Damage = append(g.Damage, "directory damaged")
	}
	at := groupHeaderSize
	for i := range int(h.entries) {
		var eh entryHeader
		ok := at+entryHeaderSize <= int(h.directory)
		if ok {
			eh, ok = decodeEntryHeader(b[at:], s.salt)
			ok = ok && eh.sequence == uint32(h.sequence)
		}
		if !ok {
			if eh, ok = decodeEntryHeader(dir[i*entryHeaderSize:], s.salt); ok && eh.sequence == uint32(h.sequence) {
				g.Damage = append(g.Damage, fmt.Sprintf("header of entry %d unreadable, its copy used", i))
			} else {
				g.Damage = append(g.Damage, fmt.Sprintf("entry %d and its copy unreadable", i))
				s.rest(&g, b, dir, h, i)
				break
			}
		}
		end := at + entryHeaderSize + int(eh.length)
		if end > int(h.directory) {
			g.Damage = append(g.Damage, fmt.Sprintf("entry %d runs over the group", i))
			g.Unknown = true
			break
		}
		e, mended := s.entry(pos, b, at, eh)
		if mended {
			g.Damage = append(g.Damage, fmt.Sprintf("entry %d had one wrong bit, which its checksum tells", i))
		}
		g.Entries = append(g.Entries, e)
		at = padTo(end, 8)
	}
	s.groups = append(s.groups, g)
}

// entry reads an entry. mended says that it had one wrong bit.
func (s *scanner) entry(pos int64, b []byte, at int, eh entryHeader) (e Entry, mended bool) {
	e = Entry{Kind: eh.kind, Partition: eh.partition, Base: eh.base, Last: eh.last, Position: pos + int64(at)}
	content := b[at+entryHeaderSize : at+entryHeaderSize+int(eh.length)]
	if sum(0, content) != eh.payloadCRC {
		if content, mended = mend(content, eh.payloadCRC); !mended {
			e.State = Bad
			return e, false
		}
	}
	e.Note = content[:eh.noteLength:eh.noteLength]
	e.Payload = content[eh.noteLength:]
	return e, mended
}

// maxMended bounds the entries that are mended. Up to 655 bytes no two contents
// within two wrong bits of each other have the same checksum.
const maxMended = 256

// mend finds the one wrong bit of a small entry: what others depend on is small,
// such as the marker that ends a transaction.
func mend(content []byte, want uint32) ([]byte, bool) {
	if len(content) > maxMended {
		return nil, false
	}
	out := bytes.Clone(content)
	for i := range out {
		for bit := byte(1); bit != 0; bit <<= 1 {
			out[i] ^= bit
			if sum(0, out) == want {
				return out, true
			}
			out[i] ^= bit
		}
	}
	return nil, false
}

// rest goes on after an entry whose place in the group is lost: the entries that
// follow are found by their magic, on 8 byte bounds. Those that only the
// directory still names are Bad.
func (s *scanner) rest(g *scannedGroup, b, dir []byte, h groupHeader, from int) {
	g.Unknown = true
	seen := map[int64]bool{}
	at := groupHeaderSize
	for _, e := range g.Entries {
		at = int(e.Position-g.Position) + entryHeaderSize
		seen[e.Position] = true
	}
	type key struct {
		partition uint32
		base      int64
		kind      Kind
		crc       uint32
	}
	found := map[key]bool{}
	for at = padTo(at, 8); at+entryHeaderSize <= int(h.directory); at += 8 {
		eh, ok := decodeEntryHeader(b[at:], s.salt)
		if !ok || eh.sequence != uint32(h.sequence) || at+entryHeaderSize+int(eh.length) > int(h.directory) {
			continue
		}
		e, _ := s.entry(g.Position, b, at, eh)
		g.Entries = append(g.Entries, e)
		found[key{eh.partition, eh.base, eh.kind, eh.payloadCRC}] = true
		at = padTo(at+entryHeaderSize+int(eh.length), 8) - 8
	}
	for i := from; i < int(h.entries); i++ {
		eh, ok := decodeEntryHeader(dir[i*entryHeaderSize:], s.salt)
		if ok && eh.sequence == uint32(h.sequence) && !found[key{eh.partition, eh.base, eh.kind, eh.payloadCRC}] {
			g.Entries = append(g.Entries, Entry{Kind: eh.kind, State: Bad, Partition: eh.partition,
				Base: eh.base, Last: eh.last, Position: g.Position})
		}
	}
}
