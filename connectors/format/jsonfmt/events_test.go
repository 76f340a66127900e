package jsonfmt

import (
	"bytes"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/runtime/types"
)

// githubEvents are the 800 public events that the example ships.
func githubEvents(tb testing.TB) [][]byte {
	tb.Helper()
	packed, err := os.ReadFile("../../../examples/github-events/data/events.ndjson.zst")
	if err != nil {
		tb.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	raw, err := z.DecodeAll(packed, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
}

// githubFields are the columns of the job that the throughput figures are about:
// twelve values out of each event.
func githubFields() []types.Field {
	f := func(n string, t types.Type) types.Field { return types.Field{Name: n, Type: t} }
	str, big, in := types.NewString(), types.NewBigInt(), types.NewInt()
	return []types.Field{
		f("id", big), f("type", str),
		f("actor", types.NewRow(f("id", big), f("login", str))),
		f("repo", types.NewRow(f("id", big), f("name", str))),
		f("payload", types.NewRow(f("size", in), f("distinct_size", in), f("ref", str), f("action", str))),
		f("public", types.NewBoolean()), f("created_at", types.NewTimestampLTZ(3)),
	}
}
