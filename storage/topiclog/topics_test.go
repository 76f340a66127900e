package topiclog_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		key, value, want string
	}{
		{"retention.m", "1", `unknown topic option retention.m, did you mean retention.ms?`},
		{"retnetion.bytes", "1", `unknown topic option retnetion.bytes, did you mean retention.bytes?`},
		{"millrace.durabilty", "os", `unknown topic option millrace.durabilty, did you mean millrace.durability?`},
		{"colour", "red", `unknown topic option colour`},
		{"retention.ms", "soon", `topic option retention.ms = "soon": must be a number of milliseconds, at least -1`},
		{"millrace.durability", "disk", `topic option millrace.durability = "disk": must be fsync or os`},
		{"cleanup.policy", "none", `topic option cleanup.policy = "none": must be delete, compact or both separated by a comma`},
	} {
		_, err := topiclog.ParseConfig(map[string]string{c.key: c.value})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s=%s: got %v, want %s", c.key, c.value, err, c.want)
		}
	}
	s, err := topiclog.ParseConfig(nil)
	check(t, err)
	// Kafka's defaults: 7 days, no size limit, delete, 1 MiB + 12 bytes.
	want := topiclog.Settings{Retention: 7 * 24 * time.Hour, RetentionBytes: -1, Delete: true, MaxMessageBytes: 1048588,
		DeleteRetention: 24 * time.Hour, Compression: "producer", MaxBeforeMillis: math.MaxInt64, MaxAfterMillis: 3_600_000}
	if s != want {
		t.Errorf("defaults %+v, want %+v", s, want)
	}
}

func TestTopics(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := open(t, small(mem))
	a, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "a", Partitions: 2, Config: map[string]string{"retention.bytes": "100"}})
	check(t, err)
	for name, want := range map[string]error{"a": topiclog.ErrTopicExists, "": topiclog.ErrInvalidTopic, "x/y": topiclog.ErrInvalidTopic, "..": topiclog.ErrInvalidTopic} {
		if _, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: name, Partitions: 1}); !errors.Is(err, want) {
			t.Errorf("creating %q: %v, want %v", name, err, want)
		}
	}
	// All or none.
	if _, err := s.CreateTopics(ctx, []topiclog.TopicSpec{{Name: "b", Partitions: 1}, {Name: "a", Partitions: 1}}); !errors.Is(err, topiclog.ErrTopicExists) {
		t.Errorf("creating two: %v", err)
	}
	if _, err := s.Topic("b"); !errors.Is(err, topiclog.ErrTopicNotFound) {
		t.Errorf("b after a failed create: %v", err)
	}
	a, err = s.AlterConfig(ctx, "a", map[string]string{"retention.ms": "5000"}, []string{"retention.bytes"})
	check(t, err)
	if a.Settings.Retention != 5*time.Second || a.Settings.RetentionBytes != -1 {
		t.Errorf("altered: %+v", a.Settings)
	}
	a, err = s.AddPartitions(ctx, "a", 5)
	check(t, err)
	if len(a.Partitions) != 5 || a.Partitions[4].Index != 4 {
		t.Errorf("partitions: %+v", a.Partitions)
	}
	if _, err := s.AddPartitions(ctx, "a", 5); !errors.Is(err, topiclog.ErrInvalidTopic) {
		t.Errorf("not more partitions: %v", err)
	}
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: a.Partitions[4].ID, Batches: batch(t, "x")})
	check(t, err)
	check(t, s.Close())
	s = open(t, small(mem))
	got, err := s.Topic("a")
	check(t, err)
	if !reflect.DeepEqual(got, a) {
		t.Errorf("after reopening\n got %+v\nwant %+v", got, a)
	}
	// Ids are never used again, also over a restart.
	check(t, s.DeleteTopic(ctx, "a", false))
	check(t, s.Close())
	s = open(t, small(mem))
	again, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "a", Partitions: 1})
	check(t, err)
	if again.ID == a.ID || again.Partitions[0].ID <= a.Partitions[4].ID {
		t.Errorf("ids used again: %v %v after %v %v", again.ID, again.Partitions[0].ID, a.ID, a.Partitions[4].ID)
	}
	if _, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: a.Partitions[4].ID}); !errors.Is(err, topiclog.ErrPartitionNotFound) {
		t.Errorf("fetching a deleted partition: %v", err)
	}
	check(t, s.Close())
}

func TestSubscriptionsGuardDeletion(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := open(t, small(mem))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "clicks", Partitions: 1})
	check(t, err)
	check(t, s.Subscribe(ctx, topiclog.Subscription{Group: "g1", Topic: tp.ID, Owner: "job clicks"}))
	check(t, s.Subscribe(ctx, topiclog.Subscription{Group: "g2", Topic: tp.ID}))
	err = s.DeleteTopic(ctx, "clicks", false)
	if !errors.Is(err, topiclog.ErrSubscribed) || err.Error() != "topic clicks is read by group g2, job clicks" {
		t.Errorf("deleting: %v", err)
	}
	check(t, s.DeleteTopic(ctx, "clicks", true))
	if d, err := s.Topic("clicks"); err != nil || !d.Closing {
		t.Errorf("forced: %+v, %v", d, err)
	}
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: tp.Partitions[0].ID, Batches: batch(t, "x")})
	if !errors.Is(err, topiclog.ErrTopicClosing) {
		t.Errorf("appending: %v", err)
	}
	check(t, s.Close())
	s = open(t, small(mem))
	check(t, s.Unsubscribe(ctx, "g1", tp.ID))
	if _, err := s.Topic("clicks"); err != nil {
		t.Errorf("gone too early: %v", err)
	}
	check(t, s.Unsubscribe(ctx, "g2", tp.ID))
	if _, err := s.Topic("clicks"); !errors.Is(err, topiclog.ErrTopicNotFound) {
		t.Errorf("not gone with the last subscription: %v", err)
	}
	check(t, s.Close())
}

// manualClock is a clock that tests move.
type manualClock struct {
	mu   sync.Mutex
	wall time.Time
	mono time.Duration
}

func (c *manualClock) clock() topiclog.Clock {
	return topiclog.Clock{
		Wall: func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.wall },
		Mono: func() time.Duration { c.mu.Lock(); defer c.mu.Unlock(); return c.mono },
	}
}

// pass lets time pass; jump sets the wall clock.
func (c *manualClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.mono = c.wall.Add(d), c.mono+d
}

func (c *manualClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func TestRetention(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	o := small(mem)
	o.Shards = 1
	o.Clock = clock.clock()
	s := open(t, o)
	byTime, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "time", Partitions: 1, Config: map[string]string{"retention.ms": "3600000"}})
	check(t, err)
	bySize, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "size", Partitions: 1, Config: map[string]string{"retention.ms": "-1", "retention.bytes": "250"}})
	check(t, err)
	forever, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "forever", Partitions: 1, Config: map[string]string{"retention.ms": "-1"}})
	check(t, err)
	ids := []topiclog.PartitionID{byTime.Partitions[0].ID, bySize.Partitions[0].ID, forever.Partitions[0].ID}
	// Three rounds, 40 minutes apart, each in a segment of its own. The records'
	// own timestamps are far in the past: they do not count.
	for i := range 3 {
		for _, id := range ids {
			_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, fmt.Sprintf("round %d", i))})
			check(t, err)
		}
		check(t, s.Flush(ctx))
		clock.pass(40 * time.Minute)
	}
	starts := func(want ...int64) {
		t.Helper()
		for i, id := range ids {
			st, err := s.State(id)
			check(t, err)
			if st.Start != want[i] {
				t.Errorf("partition %d starts at %d, want %d", i, st.Start, want[i])
			}
		}
	}
	run := func() topiclog.RetentionReport {
		t.Helper()
		rep, err := s.RunRetention(ctx)
		check(t, err)
		return rep
	}
	// A batch has 61 + 16 bytes or so; three of them are under 250 bytes. Two
	// rounds of the first topic are older than an hour, but one is held.
	check(t, s.SetHolds(ctx, "job", []topiclog.Hold{{Partition: ids[0], Offset: 1}}))
	if rep := run(); rep.HeldBytes == 0 {
		t.Errorf("nothing held: %+v", rep)
	}
	starts(1, 0, 0)
	check(t, s.SetHolds(ctx, "job", []topiclog.Hold{{Partition: ids[0], Offset: 2}}))
	run()
	starts(2, 0, 0)
	check(t, s.ReleaseHold(ctx, "job"))

	// The wall clock jumps by a day: nothing is deleted until that is confirmed.
	clock.jump(24 * time.Hour)
	if rep := run(); rep.Paused == "" {
		t.Errorf("not paused: %+v", rep)
	}
	if s.Status().RetentionPaused == "" {
		t.Error("the status does not say that retention is paused")
	}
	starts(2, 0, 0)
	clock.pass(time.Minute)
	if rep := run(); rep.Paused == "" {
		t.Errorf("goes on by itself: %+v", rep)
	}
	s.ConfirmClock()
	run()
	starts(3, 0, 0)
	st, err := s.State(ids[0])
	check(t, err)
	if st.HighWatermark != 3 {
		t.Errorf("high watermark %d, want 3", st.HighWatermark)
	}
	// By size: what is left after a removal is at least the limit.
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: ids[1], Batches: batch(t, string(make([]byte, 300)))})
	check(t, err)
	run()
	starts(3, 3, 0)
	// Files that nobody needs are gone, and a restart agrees.
	check(t, s.DeleteTopic(ctx, "forever", false))
	if got := files(t, mem, "data/segments"); len(got) != 0 {
		t.Errorf("segments left: %v", got)
	}
	ids = ids[:2]
	check(t, s.Close())
	s = open(t, o)
	starts(3, 3)
	res, err := s.Append(ctx, topiclog.AppendRequest{Partition: ids[0], Batches: batch(t, "next")})
	check(t, err)
	if res.BaseOffset != 3 {
		t.Errorf("offset %d after everything was deleted, want 3", res.BaseOffset)
	}
	check(t, s.Close())
}

// Holds are bounded: over the bound the oldest held records go.
func TestHoldBound(t *testing.T) {
	ctx := context.Background()
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	o := small(vfs.NewMem())
	o.Shards = 1
	o.Clock = clock.clock()
	o.HoldMaxBytes = 200
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1, Config: map[string]string{"retention.ms": "1000"}})
	check(t, err)
	id := tp.Partitions[0].ID
	check(t, s.SetHolds(ctx, "job", []topiclog.Hold{{Partition: id, Offset: 0}}))
	for i := range 4 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, fmt.Sprintf("%d%s", i, make([]byte, 20)))})
		check(t, err)
		check(t, s.Flush(ctx))
		clock.pass(time.Second)
	}
	clock.pass(time.Minute)
	rep, err := s.RunRetention(ctx)
	check(t, err)
	st, err := s.State(id)
	check(t, err)
	if st.Start != 2 || rep.HeldBytes > 200 || rep.HeldBytes == 0 || rep.OverHeldBytes == 0 {
		t.Errorf("start %d, report %+v; want two of four batches of about 90 bytes held", st.Start, rep)
	}
	check(t, s.Close())
}

func TestOffsetForTimestamp(t *testing.T) {
	ctx := context.Background()
	s := open(t, small(vfs.NewMem()))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	// Timestamps 0, 10, 20, ... with one late record; in two segments and the
	// cache; two records a batch.
	var times []int64
	for i := range 30 {
		ts := int64(i * 10)
		if i == 13 {
			ts = 5
		}
		times = append(times, ts)
	}
	for i := 0; i < 30; i += 2 {
		var b record.Builder
		check(t, b.Append(times[i], nil, []byte("a"), nil))
		check(t, b.Append(times[i+1], nil, []byte("b"), nil))
		raw, err := b.Build()
		check(t, err)
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw})
		check(t, err)
		if i == 8 || i == 18 {
			check(t, s.Flush(ctx))
		}
	}
	want := func(ts int64) (int64, int64) {
		for i, x := range times {
			if x >= ts {
				return int64(i), x
			}
		}
		return 30, -1
	}
	for ts := int64(-5); ts < 310; ts += 3 {
		off, found, err := s.OffsetForTimestamp(ctx, id, ts)
		check(t, err)
		if o, f := want(ts); off != o || found != f {
			t.Errorf("time %d: offset %d time %d, want %d %d", ts, off, found, o, f)
		}
	}
	_, err = s.DeleteRecords(ctx, id, 7)
	check(t, err)
	if off, found, err := s.OffsetForTimestamp(ctx, id, 0); err != nil || off != 7 || found != 70 {
		t.Errorf("after deleting records: %d %d %v, want 7 70", off, found, err)
	}
	check(t, s.Close())
}

// Leader epochs rise with each unclean start; what a crash took from an os topic
// is never given again, and a position in it is seen not to match.
func TestEpochsAndLostOffsets(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := small(mem)
	o.SyncInterval = time.Hour
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1, Config: map[string]string{"millrace.durability": "os"}})
	check(t, err)
	id := tp.Partitions[0].ID
	for i := range 3 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, fmt.Sprint(i))})
		check(t, err)
	}
	check(t, s.Flush(ctx)) // durable now
	for i := range 4 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, fmt.Sprint(i))})
		check(t, err)
	}
	crashed := mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	o.FS = crashed
	s = open(t, o)
	st, err := s.State(id)
	check(t, err)
	if st.HighWatermark != 3 || st.LeaderEpoch != 1 {
		t.Errorf("after the crash: high watermark %d, epoch %d; want 3, 1", st.HighWatermark, st.LeaderEpoch)
	}
	// A reader had come to offset 7 in epoch 0: four records are gone.
	if end, err := s.EpochEnd(id, 0); err != nil || end != 3 {
		t.Errorf("end of epoch 0: %d, %v; want 3", end, err)
	}
	res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "new")})
	check(t, err)
	if res.BaseOffset < 7 || res.LeaderEpoch != 1 {
		t.Errorf("new record at %d in epoch %d, want 7 or more in 1", res.BaseOffset, res.LeaderEpoch)
	}
	if end, err := s.EpochEnd(id, 0); err != nil || end != 3 {
		t.Errorf("end of epoch 0: %d, %v; want 3", end, err)
	}
	// Reading goes over the hole.
	got := readAll(t, s, id, 3)
	if len(got) != 1 || got[0] != fmt.Sprintf("%d:new", res.BaseOffset) {
		t.Errorf("read %v", got)
	}
	want := []topiclog.EpochRange{{LeaderEpoch: 0, Start: 0, End: 3}, {LeaderEpoch: 1, Start: res.BaseOffset, End: res.BaseOffset + 1}}
	for range 2 {
		h, err := s.EpochHistory(id)
		check(t, err)
		if !reflect.DeepEqual(h, want) {
			t.Errorf("history %+v, want %+v", h, want)
		}
		check(t, s.Close())
		s = open(t, o)
		if !s.Status().Recovery.Clean {
			t.Error("not clean")
		}
	}
	check(t, s.Close())
}

func TestNotes(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := open(t, small(mem))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	for i := range 6 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "x"), NoteKey: "job", Note: []byte{byte(i)}})
		check(t, err)
		if i == 2 {
			check(t, s.Flush(ctx))
			check(t, s.TrimNotes(ctx, id, "job", 2))
		}
	}
	for _, crash := range []bool{false, true} {
		notes, err := s.Notes(id, "job")
		check(t, err)
		if len(notes) != 4 || notes[0].BaseOffset != 2 || notes[3].Data[0] != 5 {
			t.Errorf("notes %+v", notes)
		}
		if crash {
			mem = mem.CrashClone(vfs.CrashOptions{})
		}
		check(t, s.Close())
		s = open(t, small(mem))
	}
	// Trimming also holds for notes that only the journal has.
	check(t, s.TrimNotes(ctx, id, "job", 5))
	mem2 := mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	s = open(t, small(mem2))
	notes, err := s.Notes(id, "job")
	check(t, err)
	if len(notes) != 1 || notes[0].Data[0] != 5 {
		t.Errorf("after trimming: %+v", notes)
	}
	check(t, s.Close())
}

// A shard that is never idle still syncs the records of os topics in time.
func TestBusyShardSyncsOS(t *testing.T) {
	ctx := context.Background()
	o := small(vfs.NewMem())
	o.Shards = 1
	o.SyncInterval = time.Nanosecond
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1, Config: map[string]string{"millrace.durability": "os"}})
	check(t, err)
	id := tp.Partitions[0].ID
	lag := int64(0)
	for range 200 {
		res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "x")})
		check(t, err)
		st, err := s.State(id)
		check(t, err)
		lag = max(lag, res.LastOffset+1-st.DurableEnd)
	}
	// Every second group at the latest is past the interval.
	if lag > 2 {
		t.Errorf("%d records were not durable at once, want at most 2", lag)
	}
	check(t, s.Close())
}
