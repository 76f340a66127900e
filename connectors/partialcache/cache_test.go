package partialcache

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

var (
	both = &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}, {Name: "s", Type: types.NewString()}}}
	rows = &batch.Schema{Fields: both.Fields[1:]}
)

// world is a table of texts by number, and what was asked of it.
type world struct {
	t     *testing.T
	now   time.Time
	table map[int64][]string
	asked [][]int64
	fail  []error
	cache *Cache
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{t: t, now: time.Unix(1000, 0), table: map[int64][]string{1: {"one"}, 2: {"two", "zwei"}, 3: {"three"}, 4: {""}}}
	o.Load, o.Rows, o.Now = w.load, rows, func() time.Time { return w.now }
	w.cache = New(o)
	return w
}

func (w *world) load(_ context.Context, keys *connector.LookupKeys) (*fullcache.Table, error) {
	if len(w.fail) > 0 {
		err := w.fail[0]
		w.fail = w.fail[1:]
		return nil, err
	}
	w.asked = append(w.asked, slices.Clone(keys.Cols[0].I64))
	build := fullcache.NewBuilder("t", both, []int{0}, []int{1}, 0)
	var ks []int64
	var ss []string
	for _, k := range keys.Cols[0].I64 {
		for _, s := range w.table[k] {
			ks, ss = append(ks, k), append(ss, s)
		}
	}
	var b batch.Batch
	b.Reset(both)
	b.Len = len(ks)
	b.Cols[0].Reset(both.Fields[0].Type, len(ks))
	b.Cols[1].Reset(both.Fields[1].Type, len(ks))
	for i := range ks {
		b.Cols[0].I64[i] = ks[i]
		b.Cols[1].PutString(i, ss[i])
	}
	if err := build.Add(&b, nil); err != nil {
		return nil, err
	}
	return build.Table(), nil
}

func (w *world) find(ks ...int64) ([][]string, error) {
	keys := &connector.LookupKeys{Cols: make([]batch.Vec, 1), Hashes: make([]uint64, len(ks))}
	keys.Cols[0].Reset(both.Fields[0].Type, len(ks))
	copy(keys.Cols[0].I64, ks)
	batch.HashRows(keys.Hashes, []*batch.Vec{&keys.Cols[0]}, nil)
	var f connector.Found
	if err := w.cache.Find(context.Background(), keys, &f); err != nil {
		return nil, err
	}
	if len(f.First) != len(ks)+1 {
		w.t.Fatalf("the rows of %d keys were found, want %d", len(f.First)-1, len(ks))
	}
	var out [][]string
	for i := range ks {
		var texts []string
		for _, r := range f.Sel[f.First[i]:f.First[i+1]] {
			texts = append(texts, string(f.Rows.Cols[0].Bytes(int(r))))
		}
		out = append(out, texts)
	}
	return out, nil
}

// expect looks keys up: every row has to be right, and the table asked for some alone.
func (w *world) expect(asked []int64, ks ...int64) {
	w.t.Helper()
	w.asked = nil
	got, err := w.find(ks...)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, k := range ks {
		if !slices.Equal(got[i], w.table[k]) {
			w.t.Errorf("key %d has %q, want %q", k, got[i], w.table[k])
		}
	}
	var all []int64
	for _, a := range w.asked {
		all = append(all, a...)
	}
	if !slices.Equal(all, asked) {
		w.t.Errorf("the table was asked for %v, want %v", all, asked)
	}
}

func TestKept(t *testing.T) {
	w := newWorld(t, Options{MaxRows: 100, Missing: true})
	w.expect([]int64{1, 2, 9}, 1, 2, 9)
	w.expect(nil, 9, 2, 1)
	w.expect([]int64{3, 4, 8}, 3, 1, 4, 9, 2, 8)
	w.expect(nil, 3, 4, 2)
	if w.cache.Local() {
		t.Error("it promises to answer from memory")
	}
}

func TestNothingIsKept(t *testing.T) {
	w := newWorld(t, Options{})
	w.expect([]int64{1, 2, 9}, 1, 2, 9)
	w.expect([]int64{2}, 2)
}

func TestMissingKeysAreAskedForAgain(t *testing.T) {
	w := newWorld(t, Options{MaxRows: 100})
	w.expect([]int64{1, 9}, 1, 9)
	w.table[9] = []string{"new"}
	w.expect([]int64{9}, 9, 1)
}

// The key that was used the longest time ago leaves first; a key counts by its rows.
func TestBoundOfRows(t *testing.T) {
	w := newWorld(t, Options{MaxRows: 3, Missing: true})
	w.expect([]int64{1}, 1)
	w.expect([]int64{2}, 2) // two rows: full
	w.expect(nil, 1)
	w.expect([]int64{3}, 3) // 2 leaves
	w.expect(nil, 1, 3)
	w.expect([]int64{2}, 2) // 1 leaves
	w.expect(nil, 3, 2)
	w.expect([]int64{1}, 1)
	if w.cache.rows > 3 {
		t.Errorf("%d rows are kept", w.cache.rows)
	}
}

func TestRowsGrowOld(t *testing.T) {
	w := newWorld(t, Options{MaxRows: 100, AfterWrite: time.Minute})
	w.expect([]int64{1}, 1)
	w.now = w.now.Add(59 * time.Second)
	w.expect(nil, 1)
	w.table[1] = []string{"uno"}
	w.now = w.now.Add(time.Second)
	w.expect([]int64{1}, 1)

	w = newWorld(t, Options{MaxRows: 100, AfterAccess: time.Minute})
	w.expect([]int64{1, 3}, 1, 3)
	for range 3 {
		w.now = w.now.Add(40 * time.Second)
		w.expect(nil, 1)
	}
	w.expect([]int64{3}, 3, 1)
}

func TestFailures(t *testing.T) {
	no := errors.New("no answer")
	w := newWorld(t, Options{MaxRows: 100, Retries: 2, Missing: true})
	w.fail = []error{no, no}
	w.expect([]int64{1}, 1)
	w.fail = []error{no, no, no}
	if _, err := w.find(1, 3); !errors.Is(err, no) {
		t.Errorf("after three failures: %v", err)
	}
	w.expect([]int64{3}, 1, 3)
	if err := w.cache.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.find(1); err == nil {
		t.Error("a closed table answers")
	}
}

// TestOptions: what has no effect with a kind of cache is refused.
func TestOptions(t *testing.T) {
	spec := &connector.Spec{Name: "t", Options: SpecOptions(), Validate: Validate}
	for _, c := range []struct {
		set  map[string]string
		want string // the key at fault
	}{
		{map[string]string{}, ""},
		{map[string]string{KeyCache: "FULL", fullcache.KeyInterval: "1 min", fullcache.KeyMaxBytes: "1 MB"}, ""},
		{map[string]string{KeyCache: "PARTIAL", KeyMaxRows: "5", KeyRetries: "0"}, ""},
		{map[string]string{KeyCache: "FULL", KeyMaxRows: "5"}, KeyMaxRows},
		{map[string]string{KeyCache: "FULL", KeyRetries: "5"}, KeyRetries},
		{map[string]string{KeyCache: "FULL", fullcache.KeyInterval: "0 s"}, fullcache.KeyInterval},
		{map[string]string{KeyCache: "FULL", fullcache.KeyStrategy: "TIMED"}, fullcache.KeyStrategy},
		{map[string]string{KeyCache: "FULL", fullcache.KeyStrategy: "TIMED", fullcache.KeyTime: "04:00"}, ""},
		{map[string]string{fullcache.KeyInterval: "1 min"}, fullcache.KeyInterval},
		{map[string]string{fullcache.KeyTime: "04:00"}, fullcache.KeyTime},
		{map[string]string{KeyCache: "PARTIAL", KeyMaxRows: "5", fullcache.KeyMaxBytes: "1 MB"}, fullcache.KeyMaxBytes},
		{map[string]string{KeyMaxRows: "5"}, KeyMaxRows},
		{map[string]string{KeyCache: "PARTIAL"}, KeyCache},
	} {
		c.set["connector"] = "t"
		_, errs := spec.Resolve(c.set)
		got := ""
		if len(errs) > 0 {
			got = errs[0].Key
		}
		if got != c.want {
			t.Errorf("%v: option %q is refused, want %q (%v)", c.set, got, c.want, errs)
		}
	}
}
