package topiclog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// damageStore is a small store to be damaged: three partitions with batches in
// segments and in the journal, cursors and notes.
type damageStore struct {
	fs    *vfs.MemFS
	parts []topiclog.PartitionID
	// batches are, for each partition, [first offset, last offset, content].
	batches [][]damageBatch
}

type damageBatch struct {
	from, to int64
	raw      string
}

func damageOptions(fsys vfs.FS) topiclog.Options {
	o := small(fsys)
	o.Shards = 1
	o.JournalFileBytes = 32 << 10
	o.JournalMaxBytes = 64 << 10
	return o
}

// buildDamageStore makes the store and either closes it or lets the machine crash
// right after the last acknowledgement.
func buildDamageStore(t testing.TB, crash bool) *damageStore {
	return buildDamage(t, crash, damageOptions)
}

// buildOwnDamageStore is buildDamageStore where partitions get segments of their
// own by the first flush: one each is sealed, one is not.
func buildOwnDamageStore(t testing.TB, crash bool) *damageStore {
	return buildDamage(t, crash, func(fsys vfs.FS) topiclog.Options { return topiclog.Promoting(damageOptions(fsys), 1, 1, 1) })
}

func buildDamage(t testing.TB, crash bool, options func(vfs.FS) topiclog.Options) *damageStore {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := open(t, options(mem))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 3})
	check(t, err)
	d := &damageStore{batches: make([][]damageBatch, 3)}
	for _, p := range tp.Partitions {
		d.parts = append(d.parts, p.ID)
	}
	for i := range 12 {
		if i == 6 {
			check(t, s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: d.parts[0], Offset: 2}}))
			check(t, s.Flush(ctx))
		}
		if i == 9 && s.Status().Shards[0].Promoted > 0 {
			check(t, s.Flush(ctx))
		}
		// All three at once, so that groups hold several entries.
		var done []chan topiclog.AppendResult
		for p := range 3 {
			ch := make(chan topiclog.AppendResult, 1)
			done = append(done, ch)
			req := topiclog.AppendRequest{Partition: d.parts[p], Batches: batch(t, fmt.Sprintf("p%d-%d-%s", p, i, strings.Repeat("x", 40)), "second")}
			s.AppendAsync(req, func(r topiclog.AppendResult, err error) {
				if err != nil {
					t.Error(err)
				}
				ch <- r
			})
		}
		for _, ch := range done {
			<-ch
		}
	}
	for p, id := range d.parts {
		l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: id})
		check(t, err)
		for at := l; len(at.Chunks) > 0; {
			for _, c := range at.Chunks {
				for len(c) > 0 {
					var b record.Batch
					b, c, err = record.Split(c)
					check(t, err)
					d.batches[p] = append(d.batches[p], damageBatch{b.BaseOffset, b.LastOffset(), string(b.Raw)})
				}
			}
			next := at.NextOffset
			at.Release()
			at, err = s.Fetch(ctx, topiclog.FetchRequest{Partition: id, Offset: next})
			check(t, err)
		}
	}
	if crash {
		d.fs = mem.CrashClone(vfs.CrashOptions{})
		check(t, s.Close())
	} else {
		check(t, s.Close())
		d.fs = mem.CrashClone(vfs.CrashOptions{})
	}
	return d
}

// inspect opens a damaged copy and returns which batches are lost, failing the
// test if anything else is wrong.
func (d *damageStore) inspect(t *testing.T, fsys vfs.FS, what string) (lost []string) {
	s, err := topiclog.Open(damageOptions(fsys))
	if err != nil {
		t.Errorf("%s: the store does not open: %v", what, err)
		return nil
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("%s: closing: %v", what, err)
		}
	}()
	named := s.Status().Recovery.Damage
	for p, id := range d.parts {
		st, err := s.State(id)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		got := map[int64]string{}
		for at := st.Start; ; {
			l, err := s.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: at})
			var ce *topiclog.CorruptError
			if errors.As(err, &ce) {
				named = append(named, topiclog.Damage{Kind: topiclog.DamageRotten, Topic: ce.Topic, Index: ce.Index, From: ce.From, To: ce.To})
				at = ce.To + 1
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", what, err)
				break
			}
			if len(l.Chunks) == 0 {
				break
			}
			for _, c := range l.Chunks {
				for len(c) > 0 {
					var b record.Batch
					if b, c, err = record.Split(c); err != nil {
						t.Errorf("%s: a damaged batch was served: %v", what, err)
						break
					}
					got[b.BaseOffset] = string(b.Raw)
				}
			}
			at = l.NextOffset
			l.Release()
		}
		for _, b := range d.batches[p] {
			raw, ok := got[b.from]
			delete(got, b.from)
			if ok && raw == b.raw {
				continue
			}
			if ok {
				t.Errorf("%s: partition %d offset %d: a wrong batch was served", what, p, b.from)
			}
			lost = append(lost, fmt.Sprintf("%d/%d", p, b.from))
			if !isNamed(named, int32(p), b) {
				t.Errorf("%s: partition %d offsets %d..%d are lost and nothing says so: %v", what, p, b.from, b.to, named)
			}
		}
		for off := range got {
			t.Errorf("%s: partition %d offset %d: nobody appended that", what, p, off)
		}
	}
	return lost
}

func isNamed(named []topiclog.Damage, index int32, b damageBatch) bool {
	for _, d := range named {
		if d.Topic == "t" && d.Index == index && d.From <= b.from && d.To >= b.to {
			return true
		}
	}
	return false
}

// files lists all files under a directory.
func files(t testing.TB, fsys vfs.FS, dir string) []string {
	names, err := fsys.List(dir)
	check(t, err)
	var out []string
	for _, n := range names {
		path := fsys.Join(dir, n)
		info, err := fsys.Stat(path)
		check(t, err)
		if info.IsDir() {
			out = append(out, files(t, fsys, path)...)
		} else {
			out = append(out, path)
		}
	}
	return out
}

func flip(t testing.TB, fsys vfs.FS, path string, bit int64) {
	f, err := fsys.OpenReadWrite(path)
	check(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], bit/8)
	check(t, err)
	b[0] ^= 1 << (bit % 8)
	_, err = f.WriteAt(b[:], bit/8)
	check(t, err)
	check(t, f.Sync())
	check(t, f.Close())
}

// Every single flipped bit costs at most the batch that it hit, and says so. A
// sample by default; MILLRACE_TORTURE=1 flips every bit that is not in a stretch
// of zeros that nothing reads.
func TestBitFlips(t *testing.T) {
	every := os.Getenv("MILLRACE_TORTURE") != ""
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash=%v", crash), func(t *testing.T) { flipBits(t, buildDamageStore(t, crash), crash, every) })
		t.Run(fmt.Sprintf("crash=%v, own segments", crash), func(t *testing.T) { flipBits(t, buildOwnDamageStore(t, crash), crash, every) })
	}
}

func flipBits(t *testing.T, d *damageStore, crash, every bool) {
	if lost := d.inspect(t, d.fs.CrashClone(vfs.CrashOptions{}), "undamaged"); len(lost) > 0 {
		t.Fatalf("undamaged store lost %v", lost)
	}
	flips, costly := 0, 0
	for _, path := range files(t, d.fs, "data") {
		content, err := vfs.ReadFile(d.fs, path)
		check(t, err)
		for bit := int64(0); bit < int64(len(content))*8; bit++ {
			if !every && (bit*7919+int64(len(path)))%211 != 0 {
				continue
			}
			// In long runs of zeros one bit a page is as good as all.
			at := bit / 8
			lo, hi := max(0, at-64), min(int64(len(content)), at+64)
			if len(bytes.Trim(content[lo:hi], "\x00")) == 0 && bit%32768 != 0 {
				continue
			}
			flips++
			c := d.fs.CrashClone(vfs.CrashOptions{})
			flip(t, c, path, bit)
			what := fmt.Sprintf("bit %d of byte %d of %s", bit%8, bit/8, path)
			lost := d.inspect(t, c, what)
			allowed := 1
			if crash {
				// In the last group, which no mark proves to be durable, a
				// flipped bit looks like an interrupted write: the rest of
				// its partition in the group goes, too.
				allowed = 2
			}
			if len(lost) > allowed {
				t.Errorf("%s: lost %v", what, lost)
			}
			if len(lost) > 0 {
				costly++
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	t.Logf("%d flips, %d of them cost a batch", flips, costly)
	if costly == 0 {
		t.Error("no flip cost anything: nothing was tested")
	}
}

// A search by time goes on behind a batch that is lost.
func TestTimestampBehindDamage(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := open(t, damageOptions(mem))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	for i := range 5 {
		var b record.Builder
		check(t, b.Append(int64(1000*i), nil, fmt.Appendf(nil, "value-%d", i), nil))
		raw, err := b.Build()
		check(t, err)
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw})
		check(t, err)
	}
	check(t, s.Close())
	mem = mem.CrashClone(vfs.CrashOptions{})
	s = open(t, damageOptions(mem))
	check(t, s.Flush(ctx))
	check(t, s.Close())
	seg := files(t, mem, "data/segments")[0]
	b, err := vfs.ReadFile(mem, seg)
	check(t, err)
	flip(t, mem, seg, int64(bytes.Index(b, []byte("value-2")))*8)
	s = open(t, damageOptions(mem))
	for ts, want := range map[int64]int64{0: 0, 500: 1, 1000: 1, 1500: 3, 2000: 3, 3500: 4, 4001: 5} {
		if got, _, err := s.OffsetForTimestamp(ctx, id, ts); err != nil || got != want {
			t.Errorf("time %d: offset %d, %v; want %d", ts, got, err, want)
		}
	}
	check(t, s.Close())
}

// Cutting the journal anywhere in its last group loses nothing that was
// acknowledged before it, and what is lost of it ends a partition.
func TestTornTail(t *testing.T) {
	d := buildDamageStore(t, true)
	// Find the last group: the last position with anything but zeros.
	var path string
	var content []byte
	for _, f := range files(t, d.fs, "data/journal") {
		b, err := vfs.ReadFile(d.fs, f)
		check(t, err)
		if bytes.Contains(b, []byte("p2-11-")) {
			path, content = f, b
		}
	}
	if path == "" {
		t.Fatal("the last batch is in no journal file")
	}
	end := len(bytes.TrimRight(content, "\x00"))
	start := bytes.LastIndex(content[:end-80], []byte("MRGP"))
	if start < 0 || start%4096 != 0 {
		t.Fatalf("no group before %d", end)
	}
	last := map[string]bool{"0/22": true, "1/22": true, "2/22": true}
	for cut := start; cut < end; cut += 7 {
		c := d.fs.CrashClone(vfs.CrashOptions{})
		f, err := c.OpenReadWrite(path)
		check(t, err)
		check(t, f.Preallocate(int64(cut), int64(end-cut)))
		check(t, f.Sync())
		check(t, f.Close())
		s := open(t, damageOptions(c))
		for _, dm := range s.Status().Recovery.Damage {
			if dm.Kind == topiclog.DamageRotten {
				t.Errorf("cut at %d looks like rot: %s", cut, dm)
			}
		}
		for p, id := range d.parts {
			got := readAll(t, s, id, 0)
			for i, b := range d.batches[p] {
				key := fmt.Sprintf("%d/%d", p, b.from)
				if len(got) < 2*(i+1) && !last[key] {
					t.Fatalf("cut at %d: batch %s is lost", cut, key)
				}
			}
		}
		check(t, s.Close())
	}
}

// A kill in the middle of the very first write leaves a header whose records are
// torn. Nobody was told of offset 0, but recovery cannot know that (the same bytes
// are left by rot of an acknowledged write), so the partition goes on behind it and
// says so.
func TestTornFirstGroupIsJumpedOver(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := open(t, damageOptions(mem))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "the first record there is")})
	check(t, err)
	c := mem.CrashClone(vfs.CrashOptions{})
	torn := false
	for _, path := range files(t, c, "data/journal") {
		b, err := vfs.ReadFile(c, path)
		check(t, err)
		if at := bytes.Index(b, []byte("record there is")); at >= 0 {
			f, err := c.OpenReadWrite(path)
			check(t, err)
			check(t, f.Preallocate(int64(at), int64(len(b)-at)))
			check(t, f.Sync())
			check(t, f.Close())
			torn = true
		}
	}
	if !torn {
		t.Fatal("the record is in no journal file")
	}
	after := open(t, damageOptions(c))
	defer func() { check(t, after.Close()) }()
	if got := readAll(t, after, id, 0); len(got) != 0 {
		t.Fatalf("records of a torn write were served: %v", got)
	}
	named := false
	for _, d := range after.Status().Recovery.Damage {
		named = named || d.Topic == "t" && d.From == 0 && d.To == 0
	}
	if !named {
		t.Errorf("the torn record is not reported: %v", after.Status().Recovery.Damage)
	}
	r, err := after.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "the second")})
	check(t, err)
	if r.BaseOffset != 1 {
		t.Errorf("the next record got offset %d, want 1: offset 0 may have been acknowledged", r.BaseOffset)
	}
	check(t, s.Close())
}

// A process that is killed leaves records in the page cache. The next one reads
// them and tells readers that they are durable: then they have to be.
func TestKilledThenPowerCut(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := small(unlocked{mem})
	o.SyncInterval = 1 << 40 // never
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1, Config: map[string]string{"millrace.durability": "os"}})
	check(t, err)
	id := tp.Partitions[0].ID
	for i := range 5 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, fmt.Sprint(i))})
		check(t, err)
	}
	st, err := s.State(id)
	check(t, err)
	if st.HighWatermark != 5 || st.DurableEnd != 0 {
		t.Fatalf("high watermark %d, durable end %d; want 5, 0", st.HighWatermark, st.DurableEnd)
	}
	l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: id, Durable: true})
	check(t, err)
	if l.Bytes > 0 {
		t.Error("a durable reader saw records that are not durable")
	}
	second := open(t, o)
	st, err = second.State(id)
	check(t, err)
	if st.HighWatermark != 5 || st.DurableEnd != 5 {
		t.Fatalf("after the kill: high watermark %d, durable end %d; want 5, 5", st.HighWatermark, st.DurableEnd)
	}
	third := open(t, small(mem.CrashClone(vfs.CrashOptions{})))
	if got := readAll(t, third, id, 0); len(got) != 5 {
		t.Errorf("after the power cut: %v", got)
	}
	check(t, third.Close())
	check(t, second.Close())
}

// unlocked is a filesystem on which a killed process has let go of its lock.
type unlocked struct{ *vfs.MemFS }

type noLock struct{}

func (noLock) Close() error { return nil }

func (unlocked) Lock(string) (io.Closer, error) { return noLock{}, nil }

func TestOwnedByOther(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, small(mem))
	_, err := topiclog.Open(small(mem))
	var owned *topiclog.OwnedError
	if !errors.As(err, &owned) || owned.PID != os.Getpid() {
		t.Errorf("second owner: %v, want an OwnedError with this process", err)
	}
	check(t, s.Close())
}
