package blackhole

import (
	"context"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

// TestCycle: rows are counted, sealed, published, and gone.
func TestCycle(t *testing.T) {
	ctx := context.Background()
	s, err := New().OpenSink(ctx, &connector.Table{}, connector.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWriter(ctx, connector.Attempt{})
	if err != nil {
		t.Fatal(err)
	}
	b := conntest.Rows(0, 10)
	ids, err := w.Buckets(b, []int32{1, 2}, nil)
	if err != nil || len(ids) != 2 {
		t.Fatal(ids, err)
	}
	if err := w.Write(b, []int32{1, 2}, ids[0]); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b, nil, ids[0]); err != nil {
		t.Fatal(err)
	}
	if o := w.Open(); len(o) != 1 || o[0].Rows != 12 {
		t.Fatalf("open %+v", o)
	}
	if _, err := w.Seal(ctx, []connector.SealRequest{{Header: connector.Header{Rows: 11}}}); err == nil {
		t.Fatal("a wrong count was sealed")
	}
	as, err := w.Seal(ctx, []connector.SealRequest{{Header: connector.Header{Rows: 12}}})
	if err != nil || len(as) != 1 || len(w.Open()) != 0 {
		t.Fatal(as, err)
	}
	if errs := s.Publish(ctx, as); errs[0] != nil {
		t.Fatal(errs)
	}
	if out, err := s.Resolve(ctx, as); err != nil || out[0] != connector.Published {
		t.Fatal(out, err)
	}
}
