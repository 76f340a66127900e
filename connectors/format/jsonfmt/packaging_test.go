package jsonfmt

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
)

// TestPackagingDoesNotMatter decodes the same objects one a record, several a
// record, as an array, and spread out with white space.
func TestPackagingDoesNotMatter(t *testing.T) {
	f := newFixture(t, githubFields(), "json.timestamp-format.standard=ISO-8601")
	events := githubEvents(t)
	var single []string
	for _, e := range events {
		single = append(single, string(e))
	}
	want := f.decode(single...)
	if len(f.b.Notes) > 0 || len(want) != len(events) {
		t.Fatalf("%d rows, notes %v", len(want), f.b.Notes)
	}
	join := func(size int, before, between, after string) (records []string) {
		for i := 0; i < len(single); i += size {
			records = append(records, before+strings.Join(single[i:min(i+size, len(single))], between)+after)
		}
		return records
	}
	for _, size := range []int{1, 3, 100, 800} {
		for _, p := range [][3]string{{"", "\n", ""}, {"\ufeff ", "\r\n\t", "\n"}, {"[", ",", "]"}, {" [ ", " , ", " ] "}} {
			got := f.decode(join(size, p[0], p[1], p[2])...)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%d a record with %q: other rows", size, p)
			}
		}
	}
	for i, e := range single {
		single[i] = spread(e)
	}
	if got := f.decode(single...); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Error("white space between tokens changed rows")
	}
}

// spread puts white space around every token.
func spread(s string) string {
	var b bytes.Buffer
	inString := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case inString && c == '\\':
			b.WriteByte(c)
			i++
			c = s[i]
		case c == '"':
			inString = !inString
		case !inString && strings.IndexByte("{}[],:", c) >= 0:
			b.WriteString(" \n")
			b.WriteByte(c)
			b.WriteString("\t\r\n")
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// TestDecoderIsSharedByLanes uses one decoder for two batches in turn.
func TestDecoderIsSharedByLanes(t *testing.T) {
	f := newFixture(t, mixed())
	var a [2]*format.Appender
	var b [2]*batch.Batch
	for round := range 3 {
		for i := range a {
			a[i], b[i] = format.NewAppender(), new(batch.Batch)
			a[i].Begin(b[i], &batch.Schema{Fields: f.fields})
			a[i].BeginRun(int32(i), 0)
		}
		for k := range 20 {
			f.d.Decode([]byte(fmt.Sprintf(`{"a":%d,"s":"%d","d":1.0005}`, k, round)), int64(k/2), a[k%2])
		}
		for i := range a {
			a[i].EndRun(10, 0)
			a[i].Finish()
			if b[i].Len != 10 || a[i].Counts(3)[format.Rounded] != 10 {
				t.Fatalf("%d rows, %d rounded", b[i].Len, a[i].Counts(3)[format.Rounded])
			}
			for k := range 10 {
				if got := show(&b[i].Cols[0], k); got != fmt.Sprint(2*k+i) {
					t.Errorf("row %d of batch %d: %s", k, i, got)
				}
			}
		}
	}
}

// TestSteadyStateDoesNotAllocate decodes into a batch that has its memory.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	events := githubEvents(t)[:100]
	c := millrace(t)
	run := func() {
		if err := c.run(events); err != nil {
			t.Fatal(err)
		}
	}
	run()
	// A validity bitmap for each of the four columns with NULLs.
	if n := testing.AllocsPerRun(20, run); n > 4 {
		t.Errorf("%v allocations for 100 records", n)
	}
}
