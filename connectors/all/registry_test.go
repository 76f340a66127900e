package all_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

func registry(t *testing.T, d all.Deps) *connector.Registry {
	t.Helper()
	r, err := all.Registry(d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBuiltIns(t *testing.T) {
	r := registry(t, all.Deps{})
	want := map[string]struct {
		source, sink bool
		formats      string
	}{
		"blackhole":    {sink: true},
		"clickhouse":   {source: true, sink: true},
		"datagen":      {source: true},
		"filesystem":   {source: true, sink: true, formats: "csv,json,parquet"},
		"hive":         {source: true, sink: true, formats: "parquet"},
		"http":         {sink: true},
		"kafka":        {source: true, sink: true, formats: "csv,json,raw"},
		"log":          {source: true, sink: true, formats: "csv,json,raw"},
		"nexmark":      {source: true},
		"print":        {sink: true},
		"redis":        {sink: true},
		"upsert-kafka": {source: true, sink: true},
	}
	if got := r.Names(); len(got) != len(want) {
		t.Errorf("registered: %v", got)
	}
	for name, w := range want {
		c, ok := r.Lookup(name)
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		s := c.Spec()
		_, source := c.(connector.SourceConnector)
		_, sink := c.(connector.SinkConnector)
		if s.Name != name || s.Source != w.source || s.Sink != w.sink || source != w.source || sink != w.sink {
			t.Errorf("%s: spec says source %t sink %t, implements source %t sink %t", name, s.Source, s.Sink, source, sink)
		}
		var formats []string
		for _, f := range s.Formats {
			formats = append(formats, f.Name)
		}
		slices.Sort(formats)
		if got := strings.Join(formats, ","); got != w.formats {
			t.Errorf("%s: formats %q, want %q", name, got, w.formats)
		}
	}
}

// Every option and every metadata column of every connector and format is
// documented and unambiguous, because pages and completion are made of them.
func TestSpecsAreComplete(t *testing.T) {
	r := registry(t, all.Deps{})
	for _, name := range r.Names() {
		c, _ := r.Lookup(name)
		s := c.Spec()
		if s.Summary == "" || s.Doc == "" || s.Sink && s.Guarantee == "" {
			t.Errorf("%s: summary %q, doc %d bytes, guarantee %q", name, s.Summary, len(s.Doc), s.Guarantee)
		}
		options := slices.Clone(s.Options)
		for _, f := range s.Formats {
			if !strings.Contains(f.Doc, "| SQL") {
				t.Errorf("%s: format %s has no table of types", name, f.Name)
			}
			for _, o := range f.Options {
				if !strings.HasPrefix(o.Key, f.Name+".") && !strings.HasPrefix(o.Key, "parquet.") {
					t.Errorf("%s: option %q of format %s is not named after it", name, o.Key, f.Name)
				}
			}
			options = append(options, f.Options...)
		}
		seen := map[string]bool{}
		for _, o := range options {
			if o.Doc == "" || seen[o.Key] {
				t.Errorf("%s: option %q: no doc, or twice", name, o.Key)
			}
			seen[o.Key] = true
			if o.Type == connector.OptEnum && (len(o.Enum) == 0 || o.Default != "" && !slices.Contains(o.Enum, o.Default)) {
				t.Errorf("%s: option %q: default %q of %v", name, o.Key, o.Default, o.Enum)
			}
		}
		for _, m := range s.Metadata {
			if m.Key == "" || m.Type == "" || m.Doc == "" {
				t.Errorf("%s: metadata %+v", name, m)
			}
		}
	}
}

func TestLogIsWired(t *testing.T) {
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", ReserveBytes: -1, RetentionInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	if _, err := store.CreateTopic(ctx, topiclog.TopicSpec{Name: "clicks", Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, open := range []bool{true, false} {
		d := all.Deps{FS: vfs.NewMem(), Stdout: &out, Stderr: &out}
		if open {
			d.Log = client.New(store)
		}
		c, _ := registry(t, d).Lookup("log")
		v, errs := c.Spec().Resolve(map[string]string{"connector": "log", "topic": "clicks"})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		table := &connector.Table{Name: "clicks", Options: v, Columns: []connector.Column{{Field: types.Field{Name: "id", Type: types.NewBigInt()}}}}
		s, err := c.(connector.SourceConnector).OpenSource(ctx, table)
		if !open {
			if err == nil {
				t.Error("a table was opened without a log")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if p, err := s.Partitions(ctx); err != nil || len(p) != 2 {
			t.Errorf("partitions: %v, %v", p, err)
		}
	}
}
