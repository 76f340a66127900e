package conntest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// ReplaceWorld is a World whose sinks are connector.Replacers.
type ReplaceWorld interface {
	World
	// ReplaceMode is the mode of the suite's table.
	ReplaceMode() connector.ReplaceMode
}

// RunReplacer runs what is asked of a connector.Replacer beside RunSink. A world
// that is a FaultWorld, too, is taken through errors and power cuts.
func RunReplacer(t *testing.T, open func(t testing.TB) ReplaceWorld) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, w ReplaceWorld)
	}{
		{"the content of a partition is replaced whole", replaces},
		{"published rows are replaced", replacesPublished},
		{"replacing can be repeated, an older version changes nothing", replacesRepeat},
		{"parts are sealed, visible or gone", replaceOutcomes},
		{"a partition becomes empty", replacesByNothing},
		{"parts of fenced attempts count", replacesFenced},
		{"a fenced process replaces nothing", replaceZombie},
		{"who adopts a table has the newest version", replaceAdopted},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
	if _, ok := open(t).(FaultWorld); !ok {
		return
	}
	t.Run("an error at each operation of a replacement", func(t *testing.T) { replaceFaults(t, open) })
	t.Run("a power cut before each operation of a replacement", func(t *testing.T) { replaceCrashes(t, open) })
}

// rowsOf is a batch of rows of one of the suite's two table partitions.
func rowsOf(partition int, first int64, n int) *batch.Batch {
	b := Rows(first, n)
	v := &b.Cols[2]
	v.Data, v.Offsets = v.Data[:0], v.Offsets[:1]
	for range n {
		v.Data = append(v.Data, partitions[partition]...)
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
	return b
}

func keyedAttempt(job byte, epoch uint64, subtask uint32) connector.Attempt {
	return connector.Attempt{ID: connector.ArtifactID{Job: UUID(job), Table: UUID(9), Keyed: true, Subtask: subtask, Epoch: epoch},
		MemoryBytes: 16 << 20, Replace: true}
}

// sealPart seals rows as the parts of a version, from one writer.
func sealPart(ctx context.Context, w connector.Writer, a connector.Attempt, manifest uint64, seq *uint64, b *batch.Batch) ([]connector.Artifact, error) {
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if err := w.Write(b, batch.Sel{int32(i)}, id); err != nil {
			return nil, err
		}
	}
	var reqs []connector.SealRequest
	for _, k := range w.Open() {
		id := a.ID
		id.Manifest, id.Sequence = manifest, *seq
		*seq++
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: id, TablePartition: k.TablePartition, Rows: k.Rows}})
	}
	return w.Seal(ctx, reqs)
}

// replacing is a sink with writers of two subtasks.
type replacing struct {
	t testing.TB
	w World
	connector.Replacer
	attempts [2]connector.Attempt
	writers  [2]connector.Writer
	seqs     [2]uint64
}

func openReplacing(t testing.TB, w World, o connector.Owner) *replacing {
	t.Helper()
	r := &replacing{t: t, w: w}
	s := must[connector.Sink](t)(w.Open(context.Background(), o))
	t.Cleanup(func() { s.Close() })
	var ok bool
	if r.Replacer, ok = s.(connector.Replacer); !ok {
		t.Fatalf("%T is no Replacer", s)
	}
	for i := range r.writers {
		r.attempts[i] = keyedAttempt(o.Job[0], o.JobEpoch, uint32(i))
		r.writers[i] = must[connector.Writer](t)(s.OpenWriter(context.Background(), r.attempts[i]))
		t.Cleanup(func() { r.writers[i].Close() })
	}
	return r
}

// version seals rows first..first+n-1 of a partition in two parts, one a subtask.
func (r *replacing) version(partition int, version uint64, first int64, n int) connector.Replacement {
	r.t.Helper()
	x := connector.Replacement{Version: version, TablePartition: r.name(partition)}
	half := n / 2
	for i, b := range []*batch.Batch{rowsOf(partition, first, half), rowsOf(partition, first+int64(half), n-half)} {
		as, err := sealPart(context.Background(), r.writers[i], r.attempts[i], version, &r.seqs[i], b)
		noError(r.t, err)
		for _, a := range as {
			if a.Header.TablePartition != x.TablePartition {
				r.t.Fatalf("a part is of partition %q, PartitionOf said %q", a.Header.TablePartition, x.TablePartition)
			}
		}
		x.Parts = append(x.Parts, as...)
	}
	return x
}

func (r *replacing) name(partition int) string {
	r.t.Helper()
	return must[string](r.t)(r.PartitionOf(rowsOf(partition, 0, 1), 0))
}

func (r *replacing) replace(x ...connector.Replacement) {
	r.t.Helper()
	noError(r.t, r.Replace(context.Background(), x)...)
}

func (r *replacing) outcome(want connector.Outcome, x ...connector.Replacement) {
	r.t.Helper()
	for i, o := range must[[]connector.Outcome](r.t)(r.ResolveReplace(context.Background(), x)) {
		if o != want {
			r.t.Fatalf("version %d of %s is %s, want %s", x[i].Version, x[i].TablePartition, o, want)
		}
	}
}

// see checks the visible rows: ranges of (first, n).
func (r *replacing) see(ranges ...[2]int64) {
	r.t.Helper()
	have := r.w.Visible(r.t)
	slices.Sort(have)
	if want := span(ranges...); !slices.Equal(have, want) {
		r.t.Fatalf("visible rows are %d of %v, want %v", len(have), brief(have), brief(want))
	}
}

func span(ranges ...[2]int64) []int64 {
	want := []int64{}
	for _, x := range ranges {
		for i := range x[1] {
			want = append(want, x[0]+i)
		}
	}
	slices.Sort(want)
	return want
}

func replaces(t *testing.T, w ReplaceWorld) {
	r := openReplacing(t, w, OwnerOf(1, 1))
	a, b := r.version(0, 1, 0, 10), r.version(1, 1, 100, 10)
	r.see()
	r.outcome(connector.Sealed, a, b)
	r.replace(a, b)
	r.see([2]int64{0, 10}, [2]int64{100, 10})
	r.outcome(connector.Published, a, b)
	r.replace(r.version(0, 2, 50, 6))
	r.see([2]int64{50, 6}, [2]int64{100, 10})
	pc, ok := r.Replacer.(connector.PartitionCommitter)
	if !ok || pc.CommitPolicy().Trigger == connector.NoCommit {
		return
	}
	for range 2 {
		noError(t, pc.CommitPartition(context.Background(), r.name(0)))
		r.see([2]int64{50, 6}, [2]int64{100, 10})
	}
	r.replace(r.version(0, 3, 70, 4))
	noError(t, pc.CommitPartition(context.Background(), r.name(0)))
	r.see([2]int64{70, 4}, [2]int64{100, 10})
}

func replacesPublished(t *testing.T, w ReplaceWorld) {
	if w.ReplaceMode() != connector.ReplaceOnRequest {
		return
	}
	ctx := context.Background()
	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer s.Close()
	a := attempt(1, 1)
	wr := must[connector.Writer](t)(s.OpenWriter(ctx, a))
	defer wr.Close()
	var seq uint64
	as, err := sealAll(ctx, wr, a, &seq, 0, 20) // even ids are of the first partition
	noError(t, err)
	noError(t, s.Publish(ctx, as)...)
	r := openReplacing(t, w, OwnerOf(1, 2))
	r.replace(r.version(0, 1, 100, 10))
	var odd [][2]int64
	for i := int64(1); i < 20; i += 2 {
		odd = append(odd, [2]int64{i, 1})
	}
	r.see(append(odd, [2]int64{100, 10})...)
}

func replacesRepeat(t *testing.T, w ReplaceWorld) {
	r := openReplacing(t, w, OwnerOf(1, 1))
	one, two := r.version(0, 1, 0, 10), r.version(0, 2, 20, 10)
	for range 3 {
		r.replace(one)
		r.see([2]int64{0, 10})
	}
	r.replace(two)
	for range 2 {
		r.replace(one)
		r.see([2]int64{20, 10})
		r.replace(two)
		r.see([2]int64{20, 10})
	}
	r.outcome(connector.Published, one, two)
	if err := r.Discard(context.Background(), two.Parts); err == nil {
		t.Fatal("the parts of the visible content were discarded")
	}
	r.see([2]int64{20, 10})
	// The next process finds the same.
	again := openReplacing(t, w, OwnerOf(1, 2))
	again.outcome(connector.Published, one, two)
	again.replace(one, two, one)
	again.see([2]int64{20, 10})
	again.replace(again.version(0, 3, 40, 2))
	again.see([2]int64{40, 2})
}

func replaceOutcomes(t *testing.T, w ReplaceWorld) {
	ctx := context.Background()
	r := openReplacing(t, w, OwnerOf(1, 1))
	one, two := r.version(0, 1, 0, 10), r.version(0, 2, 20, 10)
	r.outcome(connector.Sealed, one, two)
	// Overtaken before it was published.
	noError(t, r.Discard(ctx, one.Parts))
	noError(t, r.Discard(ctx, one.Parts))
	r.outcome(connector.Absent, one)
	r.outcome(connector.Sealed, two)
	for _, err := range r.Replace(ctx, []connector.Replacement{one}) {
		if err == nil {
			t.Fatal("a discarded version was published")
		}
	}
	r.see()
	r.replace(two)
	r.see([2]int64{20, 10})
	r.outcome(connector.Published, one, two)
}

func replacesByNothing(t *testing.T, w ReplaceWorld) {
	r := openReplacing(t, w, OwnerOf(1, 1))
	r.replace(r.version(0, 1, 0, 10), r.version(1, 1, 100, 10))
	empty := connector.Replacement{TablePartition: r.name(0), Version: 2}
	r.outcome(connector.Sealed, empty)
	for range 2 {
		r.replace(empty)
		r.see([2]int64{100, 10})
		r.outcome(connector.Published, empty)
	}
	r.replace(r.version(0, 3, 20, 4))
	r.replace(empty)
	r.see([2]int64{20, 4}, [2]int64{100, 10})
	r.replace(connector.Replacement{TablePartition: r.name(0), Version: 4}, connector.Replacement{TablePartition: r.name(1), Version: 4})
	r.see()
}

func replacesFenced(t *testing.T, w ReplaceWorld) {
	old := openReplacing(t, w, OwnerOf(1, 1))
	x := old.version(0, 1, 0, 10)
	r := openReplacing(t, w, OwnerOf(1, 2))
	if _, err := sealPart(context.Background(), old.writers[0], old.attempts[0], 2, &old.seqs[0], rowsOf(0, 50, 4)); !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("the old attempt seals: %v", err)
	}
	r.outcome(connector.Sealed, x)
	y := r.version(0, 2, 10, 10)
	y.Parts = append(slices.Clone(x.Parts), y.Parts...)
	r.replace(y)
	r.see([2]int64{0, 20})
}

func replaceZombie(t *testing.T, w ReplaceWorld) {
	dead := openReplacing(t, w, OwnerOf(1, 1))
	x := dead.version(0, 1, 0, 10)
	r := openReplacing(t, w, OwnerOf(1, 2))
	for _, x := range []connector.Replacement{x, {TablePartition: x.TablePartition, Version: 9}} {
		for _, err := range dead.Replace(context.Background(), []connector.Replacement{x}) {
			if !errors.Is(err, connector.ErrFenced) {
				t.Fatalf("a fenced process replaces: %v", err)
			}
		}
	}
	r.see()
	r.replace(r.version(0, 2, 20, 10))
	r.see([2]int64{20, 10})
}

func replaceAdopted(t *testing.T, w ReplaceWorld) {
	if _, shared := w.(SharedWorld); shared {
		return
	}
	r := openReplacing(t, w, OwnerOf(1, 1))
	r.replace(r.version(0, 5, 0, 10))
	o := OwnerOf(2, 1)
	o.Adopt = true
	next := openReplacing(t, w, o)
	x := next.version(0, 1, 20, 10)
	next.outcome(connector.Sealed, x)
	next.replace(x)
	next.see([2]int64{20, 10})
	y := next.version(0, 5, 40, 10)
	next.outcome(connector.Sealed, y)
	next.replace(y)
	next.see([2]int64{40, 10})
	for _, err := range r.Replace(context.Background(), []connector.Replacement{{TablePartition: x.TablePartition, Version: 9}}) {
		if !errors.Is(err, connector.ErrFenced) {
			t.Fatalf("the former owner replaces: %v", err)
		}
	}
	next.see([2]int64{40, 10})
}
