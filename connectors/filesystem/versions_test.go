package filesystem

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/storage/vfs"
)

// TestVersionRecord reads the golden record, and refuses one of another version.
func TestVersionRecord(t *testing.T) {
	mem := vfs.NewMem()
	w := newWorld(mem, formatParquet)
	s, err := w.Open(context.Background(), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	golden, err := vfs.ReadFile(vfs.NewOS(), "testdata/version-v1")
	if err != nil {
		t.Fatal(err)
	}
	v := Version{TablePartition: "dt=a", Name: "v7-x"}
	if got, ok := ParseVersion(v.Dir()); !ok || got != v {
		t.Errorf("%s is %v", v.Dir(), got)
	}
	for _, bad := range []string{"", ".versions", ".versions/", "dt=a", "x/.versions/y"} {
		if got, ok := ParseVersion(bad); ok {
			t.Errorf("%q is %v", bad, got)
		}
	}
	put := func(text string) {
		t.Helper()
		if err := mem.MkdirAll("/lake/t/" + v.Dir()); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFileAtomic(mem, "/lake/t/"+v.Dir()+"/_version", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put(string(golden))
	r, err := s.(*Sink).VersionRecord(v)
	if err != nil || r.Job != conntest.UUID(1).String() || r.Content != 7 || !slices.Equal(r.Parts, []string{"part-a.parquet"}) || !slices.Equal(r.Replaced, []string{"part-b.parquet", "part-c.parquet"}) {
		t.Errorf("%+v %v", r, err)
	}
	parts, err := s.(*Sink).VersionedPartitions(context.Background())
	if err != nil || !slices.Equal(parts, []string{"dt=a"}) {
		t.Errorf("partitions with versions: %v %v", parts, err)
	}
	put(strings.Replace(string(golden), `"version":1`, `"version":2`, 1))
	if _, err := s.(*Sink).VersionRecord(v); err == nil || !strings.Contains(err.Error(), "has version 2") {
		t.Errorf("got %v", err)
	}
}
