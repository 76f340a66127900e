package topiclog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// Verify names what is damaged and changes nothing; repair rewrites the segment,
// keeps the rest, and the loss stays known.
func TestVerifyAndRepair(t *testing.T) {
	ctx := context.Background()
	d := buildDamageStore(t, false)
	rep, err := topiclog.Verify(ctx, damageOptions(d.fs), false)
	check(t, err)
	if !rep.Clean() || rep.Segments != 1 || rep.Recovery.Batches == 0 {
		t.Errorf("undamaged: %+v", rep)
	}
	// One batch in the segment, one in the journal.
	for dir, text := range map[string]string{"data/segments": "p1-2-", "data/journal": "p2-9-"} {
		hit := false
		for _, f := range files(t, d.fs, dir) {
			b, err := vfs.ReadFile(d.fs, f)
			check(t, err)
			if i := bytes.Index(b, []byte(text)); i >= 0 {
				flip(t, d.fs, f, int64(i)*8+3)
				flip(t, d.fs, f, int64(i)*8+5) // one wrong bit of the journal would be mended
				hit = true
			}
		}
		if !hit {
			t.Fatalf("%s is not in %s", text, dir)
		}
	}
	want := []string{"1/4", "2/18"}
	before := snapshot(t, d.fs)
	rep, err = topiclog.Verify(ctx, damageOptions(d.fs), false)
	check(t, err)
	if rep.Lost != 4 || len(rep.Damage) != 2 {
		t.Errorf("damaged: %+v", rep)
	}
	for _, lost := range []damageBatch{{from: 4, to: 5}} {
		if !isNamed(rep.Damage, 1, lost) {
			t.Errorf("partition 1 %+v is not named: %v", lost, rep.Damage)
		}
	}
	if !isNamed(rep.Damage, 2, damageBatch{from: 18, to: 19}) {
		t.Errorf("partition 2 is not named: %v", rep.Damage)
	}
	if after := snapshot(t, d.fs); after != before {
		t.Error("verifying changed something")
	}
	rep, err = topiclog.Verify(ctx, damageOptions(d.fs), true)
	check(t, err)
	if rep.Repaired != 1 || rep.Lost != 4 {
		t.Errorf("repair: %+v", rep)
	}
	for range 2 {
		lost := d.inspect(t, d.fs, "repaired")
		if len(lost) != 2 || lost[0] != want[0] || lost[1] != want[1] {
			t.Errorf("after the repair %v are lost, want %v", lost, want)
		}
	}
	// The files are whole now; what is lost is still known.
	rep, err = topiclog.Verify(ctx, damageOptions(d.fs), true)
	check(t, err)
	if rep.Repaired != 0 || rep.Lost != 4 {
		t.Errorf("second repair: %+v", rep)
	}
}

// A segment file that is gone costs what it held, and only that.
func TestMissingSegment(t *testing.T) {
	ctx := context.Background()
	d := buildDamageStore(t, false)
	segs := files(t, d.fs, "data/segments")
	check(t, d.fs.Remove(segs[0]))
	check(t, d.fs.SyncDir("data/segments"))
	rep, err := topiclog.Verify(ctx, damageOptions(d.fs), false)
	check(t, err)
	if rep.Lost != 36 {
		t.Errorf("lost %d, want the 36 offsets of the segment: %+v", rep.Lost, rep.Damage)
	}
	_, err = topiclog.Verify(ctx, damageOptions(d.fs), true)
	check(t, err)
	if lost := d.inspect(t, d.fs, "repaired"); len(lost) != 18 {
		t.Errorf("%d batches lost after the repair, want 18", len(lost))
	}
}

func TestVerifyRefuses(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	if _, err := topiclog.Verify(ctx, small(mem), false); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("no store: %v", err)
	}
	s := open(t, small(mem))
	for _, repair := range []bool{false, true} {
		var owned *topiclog.OwnedError
		if _, err := topiclog.Verify(ctx, small(mem), repair); !errors.As(err, &owned) {
			t.Errorf("an open store: %v", err)
		}
	}
	check(t, s.Close())
}

// snapshot is the content of all files but the lock.
func snapshot(t testing.TB, fsys vfs.FS) string {
	var out bytes.Buffer
	for _, f := range files(t, fsys, "data") {
		if fsys.Base(f) == "LOCK" {
			continue
		}
		b, err := vfs.ReadFile(fsys, f)
		check(t, err)
		out.WriteString(f)
		out.Write(b)
	}
	return out.String()
}

// Repair lets go only of what is lost: a file of a newer version, or one that
// cannot be opened at the moment, stays.
func TestRepairKeepsWhatItCannotRead(t *testing.T) {
	ctx := context.Background()
	d := buildDamageStore(t, false)
	seg := files(t, d.fs, "data/segments")[0]
	before := snapshot(t, d.fs)
	fault := vfs.NewFault(d.fs, &vfs.Nth{Kinds: vfs.OpOpen, Path: "*.mrs", Count: -1, Err: syscall.EMFILE})
	for _, repair := range []bool{false, true} {
		if _, err := topiclog.Verify(ctx, damageOptions(fault), repair); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("too many open files, repair %v: %v", repair, err)
		}
	}
	// The version stands in both file headers, each with a checksum.
	b, err := vfs.ReadFile(d.fs, seg)
	check(t, err)
	for at := 0; at < 128; at += 64 {
		binary.BigEndian.PutUint16(b[at+8:], 99)
		binary.BigEndian.PutUint32(b[at+60:], record.Checksum(b[at:at+60]))
	}
	f, err := d.fs.OpenReadWrite(seg)
	check(t, err)
	_, err = f.WriteAt(b[:128], 0)
	check(t, err)
	check(t, f.Close())
	for _, repair := range []bool{false, true} {
		if _, err := topiclog.Verify(ctx, damageOptions(d.fs), repair); !errors.Is(err, segment.ErrVersion) {
			t.Errorf("a newer version, repair %v: %v", repair, err)
		}
	}
	after, err := vfs.ReadFile(d.fs, seg)
	check(t, err)
	if !bytes.Equal(after, b) || len(snapshot(t, d.fs)) < len(before) {
		t.Error("the segment changed")
	}
}

// A segment file under the name of another is not served, not repaired away, and
// named.
func TestExchangedSegment(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := damageOptions(mem)
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	for _, v := range []string{"a", "b"} {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, v)})
		check(t, err)
		check(t, s.Flush(ctx))
	}
	check(t, s.Close())
	segs := files(t, mem, "data/segments")
	check(t, mem.Rename(segs[0], "data/segments/x"))
	check(t, mem.Link(segs[1], segs[0]))
	for _, repair := range []bool{false, true} {
		rep, err := topiclog.Verify(ctx, o, repair)
		if repair != errors.Is(err, segment.ErrNotSegment) || !repair && rep.Lost != 1 {
			t.Errorf("repair %v: %+v, %v", repair, rep, err)
		}
	}
	s = open(t, o)
	if l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: id}); err == nil {
		t.Errorf("served %d bytes of another segment", l.Bytes)
	}
	check(t, s.Close())
	check(t, mem.Remove(segs[0]))
	check(t, mem.Rename("data/segments/x", segs[0]))
	s = open(t, o)
	if got := readAll(t, s, id, 0); len(got) != 2 {
		t.Errorf("put back: %v", got)
	}
	check(t, s.Close())
}
