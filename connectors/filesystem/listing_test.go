package filesystem

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// wantedDay is a filter for one value of the first partition column, which must
// be a string.
type wantedDay struct {
	day   string
	asked []string
}

func (w *wantedDay) Wanted(b *batch.Batch) bool {
	v := &b.Cols[0]
	i := v.Index(0)
	if v.IsNull(0) {
		w.asked = append(w.asked, "NULL")
		return w.day == "NULL"
	}
	got := string(v.Data[v.Offsets[i]:v.Offsets[i+1]])
	w.asked = append(w.asked, got)
	return got == w.day
}

func (w *wantedDay) String() string { return "dt = " + w.day }

// TestPartitionsThatNobodyWantsAreNotListed: a directory that cannot be read as
// the table's format is not looked at when the filter leaves it out.
func TestPartitionsThatNobodyWantsAreNotListed(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	put := func(name, text string) {
		if err := mem.MkdirAll(mem.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFileAtomic(mem, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("/t/dt=a%2Fb/a.json", "{\"id\":1}\n")
	put("/t/dt=c/bad.json", "PAR1 no JSON")
	put("/t/dt=__HIVE_DEFAULT_PARTITION__/n.json", "{\"id\":2}\n")
	c := newConnector(mem)
	cols := []connector.Column{column("id", types.NewInt()), column("dt", types.NewString())}
	for _, x := range []struct {
		day, files string
	}{{"a/b", "/t/dt=a%2Fb/a.json"}, {"NULL", "/t/dt=__HIVE_DEFAULT_PARTITION__/n.json"}, {"none", ""}} {
		s, err := c.OpenSource(ctx, tableOf(c, cols, []int{1}, map[string]string{"path": "/t", "format": "json"}))
		if err != nil {
			t.Fatal(err)
		}
		f := &wantedDay{day: x.day}
		s.(*Source).Prune(f)
		parts, err := s.Partitions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, p := range parts {
			files = append(files, p.Topic)
		}
		slices.Sort(f.asked)
		if strings.Join(files, " ") != x.files || strings.Join(f.asked, " ") != "NULL a/b c" {
			t.Errorf("wanted %s: files %v, asked about %v", x.day, files, f.asked)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTableOfDirectories reads directories whose values something else tells, on
// two filesystems.
func TestTableOfDirectories(t *testing.T) {
	ctx := context.Background()
	mem, far := vfs.NewMem(), &farScheme{fs: vfs.NewMem()}
	for fs, files := range map[vfs.FS]map[string]string{
		mem:    {"/one/x.json": "{\"id\":1}\n", "/one/sub/y.json": "{\"id\":2}\n", "/one/_hidden": "no"},
		far.fs: {"/two/z.json": "{\"id\":3}\n"},
	} {
		for name, text := range files {
			if err := fs.MkdirAll(fs.Dir(name)); err != nil {
				t.Fatal(err)
			}
			if err := vfs.WriteFileAtomic(fs, name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := newConnector(mem).With(far)
	cols := []connector.Column{column("id", types.NewInt()), column("dt", types.NewString())}
	tab := tableOf(c, cols, []int{1}, map[string]string{"path": "/none", "format": "json"})
	value := func(v string) []PartitionValue { return []PartitionValue{{Column: "dt", Value: v}} }
	s, err := c.OpenDirectories(tab, func(_ context.Context, wanted func([]PartitionValue) bool) ([]Directory, error) {
		if !wanted(value("a")) || wanted(value("b")) {
			t.Error("the filter is not asked")
		}
		return []Directory{{"/one", value("a")}, {"far://host/two", []PartitionValue{{Column: "dt", Null: true}}}, {"/missing", value("c")}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Prune(&wantedDay{day: "a"})
	r, parts, err := s.openAll(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b batch.Batch
	got := map[int32]string{}
	for r.Next(ctx, &b, 100, 1000) == nil {
		for i := range b.Len {
			v, dt := &b.Cols[1], "NULL"
			if k := v.Index(i); !v.IsNull(i) {
				dt = string(v.Data[v.Offsets[k]:v.Offsets[k+1]])
			}
			got[b.Cols[0].I32[i]] = parts[b.Runs[0].Partition].Topic + " " + dt
		}
	}
	want := map[int32]string{1: "/one/x.json a", 2: "/one/sub/y.json a", 3: "far://host/two/z.json NULL"}
	for id, w := range want {
		if got[id] != w {
			t.Errorf("row %d is of %q, want %q", id, got[id], w)
		}
	}
	if err := s.Close(); err != nil || far.released != 1 {
		t.Errorf("closed with %v, %d mounts released", err, far.released)
	}
}
