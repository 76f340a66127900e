package conntest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
)

type sinkCase struct {
	name string
	run  func(t *testing.T, w World)
}

// RunSink runs the suite. open makes a new, empty world for each call.
func RunSink(t *testing.T, open func(t testing.TB) World) {
	t.Helper()
	cases := []sinkCase{
		{"rows are visible when published", visibility},
		{"calls can be repeated", repeats},
		{"resolve tells the four outcomes", outcomes},
		{"a newer epoch fences", fencing},
		{"a fenced process cannot publish", zombie},
		{"epochs are not used twice", epochs},
		{"a buffer that was closed leaves nothing", closing},
		{"selections", selections},
		{"a table has one owner", owners},
	}
	if _, shared := open(t).(SharedWorld); shared {
		cases[len(cases)-1] = sinkCase{"jobs share a table", sharing}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
	if _, ok := open(t).(FaultWorld); !ok {
		return
	}
	faulty := func(t testing.TB) FaultWorld { return open(t).(FaultWorld) }
	t.Run("an error at each operation", func(t *testing.T) { faults(t, faulty) })
	t.Run("a power cut before each operation", func(t *testing.T) { crashes(t, faulty) })
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func noError(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func wantRows(t testing.TB, w World, first int64, n int) {
	t.Helper()
	have := w.Visible(t)
	slices.Sort(have)
	want := make([]int64, n)
	for i := range want {
		want[i] = first + int64(i)
	}
	if !slices.Equal(have, want) {
		t.Fatalf("visible rows are %d of %v, want %d from %d", len(have), brief(have), n, first)
	}
}

func brief(v []int64) string {
	if len(v) > 40 {
		return fmt.Sprint(v[:40]) + "..."
	}
	return fmt.Sprint(v)
}

func resolved(t testing.TB, s connector.Sink, as []connector.Artifact, want connector.Outcome) {
	t.Helper()
	for i, o := range must[[]connector.Outcome](t)(s.Resolve(context.Background(), as)) {
		if o != want {
			t.Fatalf("artefact %s is %s, want %s", as[i].Header.ID, o, want)
		}
	}
}

func visibility(t *testing.T, w World) {
	ctx := context.Background()
	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer s.Close()
	a := attempt(1, 1)
	wr := must[connector.Writer](t)(s.OpenWriter(ctx, a))
	defer wr.Close()
	var seq uint64
	as, err := sealAll(ctx, wr, a, &seq, 100, 50)
	noError(t, err)
	if len(as) == 0 {
		t.Fatal("nothing was sealed")
	}
	rows := int64(0)
	for _, x := range as {
		rows += x.Header.Rows
		if x.Bytes <= 0 || x.Location == "" || len(x.Payload) == 0 {
			t.Errorf("artefact without size, location or payload: %+v", x)
		}
	}
	if rows != 50 {
		t.Fatalf("sealed %d rows of 50", rows)
	}
	wantRows(t, w, 0, 0)
	if n := len(wr.Open()); n != 0 {
		t.Fatalf("%d buckets are open after all were sealed", n)
	}
	noError(t, s.Publish(ctx, as)...)
	wantRows(t, w, 100, 50)
	// The writer goes on with new artefacts.
	as, err = sealAll(ctx, wr, a, &seq, 150, 50)
	noError(t, err)
	noError(t, s.Publish(ctx, as)...)
	wantRows(t, w, 100, 100)
}

func repeats(t *testing.T, w World) {
	ctx := context.Background()
	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer s.Close()
	a := attempt(1, 1)
	wr := must[connector.Writer](t)(s.OpenWriter(ctx, a))
	defer wr.Close()
	var seq uint64
	as, err := sealAll(ctx, wr, a, &seq, 0, 20)
	noError(t, err)
	for range 3 {
		noError(t, s.Publish(ctx, as)...)
		wantRows(t, w, 0, 20)
	}
	resolved(t, s, as, connector.Published)
	if err := s.Discard(ctx, as); err == nil {
		t.Fatal("a published artefact was discarded")
	}
	wantRows(t, w, 0, 20)
	// Another opening of the same owner sees the same.
	again := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer again.Close()
	resolved(t, again, as, connector.Published)
	noError(t, again.Publish(ctx, as)...)
	wantRows(t, w, 0, 20)
}

func outcomes(t *testing.T, w World) {
	ctx := context.Background()
	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer s.Close()
	a := attempt(1, 1)
	wr := must[connector.Writer](t)(s.OpenWriter(ctx, a))
	defer wr.Close()
	var seq uint64
	as, err := sealAll(ctx, wr, a, &seq, 0, 10)
	noError(t, err)
	resolved(t, s, as, connector.Sealed)
	noError(t, s.Discard(ctx, as))
	resolved(t, s, as, connector.Absent)
	noError(t, s.Discard(ctx, as))
	for _, err := range s.Publish(ctx, as) {
		if err == nil {
			t.Fatal("a discarded artefact was published")
		}
	}
	wantRows(t, w, 0, 0)
	bad := slices.Clone(as)
	for i := range bad {
		bad[i].Payload = []byte{255}
	}
	if o, err := s.Resolve(ctx, bad); err == nil && (len(o) == 0 || o[0] != connector.Unknown) {
		t.Fatalf("a payload of an unknown version resolves to %v", o)
	}
}

func fencing(t *testing.T, w World) {
	ctx := context.Background()
	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer s.Close()
	a1, a2 := attempt(1, 1), attempt(1, 2)
	old := must[connector.Writer](t)(s.OpenWriter(ctx, a1))
	defer old.Close()
	var seq uint64
	pending, err := sealAll(ctx, old, a1, &seq, 0, 10)
	noError(t, err)
	noError(t, writeRows(old, 10, 10))

	wr := must[connector.Writer](t)(s.OpenWriter(ctx, a2))
	defer wr.Close()
	if _, err := sealAll(ctx, old, a1, &seq, 20, 10); !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("the old attempt seals: %v", err)
	}
	// What the old attempt had sealed and the ledger named is completed by
	// the new one.
	resolved(t, s, pending, connector.Sealed)
	noError(t, s.Publish(ctx, pending)...)
	resolved(t, s, pending, connector.Published)
	wantRows(t, w, 0, 10)
	seq = 0
	as, err := sealAll(ctx, wr, a2, &seq, 10, 20)
	noError(t, err)
	noError(t, s.Publish(ctx, as)...)
	wantRows(t, w, 0, 30)
}

func zombie(t *testing.T, w World) {
	ctx := context.Background()
	dead := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer dead.Close()
	a1 := attempt(1, 1)
	old := must[connector.Writer](t)(dead.OpenWriter(ctx, a1))
	defer old.Close()
	var seq uint64
	as, err := sealAll(ctx, old, a1, &seq, 0, 10)
	noError(t, err)

	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 2)))
	defer s.Close()
	wr := must[connector.Writer](t)(s.OpenWriter(ctx, attempt(1, 2)))
	defer wr.Close()
	for _, err := range dead.Publish(ctx, as) {
		if !errors.Is(err, connector.ErrFenced) {
			t.Fatalf("a fenced process publishes: %v", err)
		}
	}
	wantRows(t, w, 0, 0)
	if _, err := dead.OpenWriter(ctx, attempt(1, 1)); !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("a fenced process opens a writer: %v", err)
	}
	// The owner decides: here the artefact had no intent.
	noError(t, s.Discard(ctx, as))
	resolved(t, s, as, connector.Absent)
}

func epochs(t *testing.T, w World) {
	ctx := context.Background()
	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer s.Close()
	if e := must[uint64](t)(s.MaxEpoch(ctx, lane)); e != 0 {
		t.Fatalf("highest epoch of an unused lane is %d", e)
	}
	wr := must[connector.Writer](t)(s.OpenWriter(ctx, attempt(1, 5)))
	defer wr.Close()
	for _, e := range []uint64{5, 4} {
		if _, err := s.OpenWriter(ctx, attempt(1, e)); !errors.Is(err, connector.ErrFenced) {
			t.Fatalf("epoch %d after 5: %v", e, err)
		}
	}
	if e := must[uint64](t)(s.MaxEpoch(ctx, lane)); e != 5 {
		t.Fatalf("highest epoch is %d, want 5", e)
	}
	var seq uint64
	as, err := sealAll(ctx, wr, attempt(1, 5), &seq, 0, 10)
	noError(t, err)
	noError(t, s.Publish(ctx, as)...)
	wantRows(t, w, 0, 10)
	next := must[connector.Writer](t)(s.OpenWriter(ctx, attempt(1, 9)))
	defer next.Close()
	if e := must[uint64](t)(s.MaxEpoch(ctx, lane)); e != 9 {
		t.Fatalf("highest epoch is %d, want 9", e)
	}
}

func owners(t *testing.T, w World) {
	ctx := context.Background()
	first := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 3)))
	defer first.Close()
	a := attempt(1, 1)
	wr := must[connector.Writer](t)(first.OpenWriter(ctx, a))
	defer wr.Close()
	var seq uint64
	as, err := sealAll(ctx, wr, a, &seq, 0, 10)
	noError(t, err)
	var owned *connector.OwnedError
	for _, o := range []connector.Owner{OwnerOf(2, 1), OwnerOf(1, 2)} {
		if _, err := w.Open(ctx, o); !errors.As(err, &owned) {
			t.Fatalf("job %s epoch %d opens a table of job 1 epoch 3: %v", o.Job, o.JobEpoch, err)
		}
	}
	adopter := OwnerOf(2, 1)
	adopter.Adopt = true
	second := must[connector.Sink](t)(w.Open(ctx, adopter))
	defer second.Close()
	for _, err := range first.Publish(ctx, as) {
		if !errors.Is(err, connector.ErrFenced) {
			t.Fatalf("the former owner publishes: %v", err)
		}
	}
	if _, err := sealAll(ctx, wr, a, &seq, 10, 10); err == nil {
		t.Fatal("the former owner seals")
	}
	wantRows(t, w, 0, 0)
	if _, err := w.Open(ctx, OwnerOf(1, 4)); !errors.As(err, &owned) {
		t.Fatalf("the former owner opens the table: %v", err)
	}
}

// sharing: two jobs write, and a later run of one fences its earlier one alone.
func sharing(t *testing.T, w World) {
	ctx := context.Background()
	first := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 3)))
	defer first.Close()
	other := must[connector.Sink](t)(w.Open(ctx, OwnerOf(2, 1)))
	defer other.Close()
	var owned *connector.OwnedError
	if _, err := w.Open(ctx, OwnerOf(1, 2)); !errors.As(err, &owned) {
		t.Fatalf("epoch 2 of job 1 opens a table of its epoch 3: %v", err)
	}
	later := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 4)))
	defer later.Close()
	if _, err := first.OpenWriter(ctx, attempt(1, 1)); !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("the earlier run opens a writer: %v", err)
	}
	for job, s := range map[byte]connector.Sink{1: later, 2: other} {
		a := attempt(job, 1)
		wr := must[connector.Writer](t)(s.OpenWriter(ctx, a))
		defer wr.Close()
		var seq uint64
		as, err := sealAll(ctx, wr, a, &seq, int64(job)*10, 10)
		noError(t, err)
		noError(t, s.Publish(ctx, as)...)
		resolved(t, s, as, connector.Published)
	}
	wantRows(t, w, 10, 20)
}

func closing(t *testing.T, w World) {
	ctx := context.Background()
	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer s.Close()
	wr := must[connector.Writer](t)(s.OpenWriter(ctx, attempt(1, 1)))
	noError(t, writeRows(wr, 0, 100))
	if wr.HeldBytes() <= 0 {
		t.Error("rows are held in no memory")
	}
	noError(t, wr.Close())
	if _, err := wr.Buckets(Rows(0, 1), nil, nil); err == nil {
		t.Error("a closed writer takes rows")
	}
	wantRows(t, w, 0, 0)
}

func selections(t *testing.T, w World) {
	ctx := context.Background()
	s := must[connector.Sink](t)(w.Open(ctx, OwnerOf(1, 1)))
	defer s.Close()
	a := attempt(1, 1)
	wr := must[connector.Writer](t)(s.OpenWriter(ctx, a))
	defer wr.Close()
	b := Rows(0, 100)
	sel := []int32{3, 4, 5, 6, 90}
	ids, err := wr.Buckets(b, sel, nil)
	noError(t, err)
	if len(ids) != len(sel) {
		t.Fatalf("%d buckets for %d rows", len(ids), len(sel))
	}
	for i, row := range sel {
		noError(t, wr.Write(b, []int32{row}, ids[i]))
	}
	var reqs []connector.SealRequest
	for i, k := range wr.Open() {
		id := a.ID
		id.Sequence = uint64(i)
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: id, TablePartition: k.TablePartition, Rows: k.Rows}})
	}
	as, err := wr.Seal(ctx, reqs)
	noError(t, err)
	noError(t, s.Publish(ctx, as)...)
	have := w.Visible(t)
	slices.Sort(have)
	if !slices.Equal(have, []int64{3, 4, 5, 6, 90}) {
		t.Fatalf("visible rows are %v", have)
	}
}
