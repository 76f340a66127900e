package checkpoint

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/state"
)

var rewrite = flag.Bool("rewrite-golden", false, "write the newest version in testdata anew")

func sample() *Manifest {
	scope := ledger.Scope{Job: connector.UUID{1, 2, 3}, Generation: 4}
	table, topic := connector.UUID{7}, connector.UUID{8}
	id := connector.ArtifactID{Job: scope.Job, Generation: 4, Table: table, Keyed: true, Subtask: 1, Epoch: 9, Manifest: 12, Sequence: 2}
	return &Manifest{
		Version: 2, Number: 12, Epoch: 9, TimeMillis: 1_700_000_000_000, Scope: scope,
		Stages: []Stage{{Name: "hourly/window", Watermark: 3_600_000, Blobs: []Blob{
			{Name: "s0-0", Groups: state.Range{From: 0, To: 128}, Bytes: 10, Hash: 0xdeadbeef},
			{Name: "s0-1", Groups: state.Range{From: 128, To: 256}, Bytes: 0, Hash: 0},
		}}},
		Cursors: []ledger.Cursor{{Output: connector.UUID{5}, Topic: topic, Partition: 3, Lane: connector.LaneID{Topic: topic, Set: 1},
			Epoch: 2, Offset: 100, LeaderEpoch: 1, Watermark: -5, Counts: ledger.Counts{Records: 100, Read: 100, Folded: 99, Late: 1}}},
		Artifacts: []connector.Artifact{{Header: connector.Header{ID: id, TablePartition: "dt=2021-07-21", Rows: 7, RowHash: 1, SchemaHash: 2},
			Bytes: 512, Location: "/t/f.parquet", Payload: []byte{1, 2}}},
		SealedMillis: []int64{1_700_000_000_001},
		Dead: []DeadResult{{Table: table, TableName: "hourly", Stage: "hourly/window", Subtask: 1, Sequence: 5, Reason: "overflow",
			Column: "total", Message: "out of range", Row: []byte(`{"uid":1}`)}},
		Emitted: []ledger.Emitted{{Table: table, Epoch: 9, Manifest: 12, Rows: 7, Dead: ledger.Tallies{{Reason: ledger.Reason{Code: "overflow", Column: "total"}, Rows: 1}}}},
	}
}

func TestManifestReadsBack(t *testing.T) {
	m := sample()
	got, err := Decode(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, m) {
		t.Fatalf("read back\n%+v\nwant\n%+v", got, m)
	}
}

// TestGoldenManifest reads bytes that each version wrote.
func TestGoldenManifest(t *testing.T) {
	const newest = "testdata/manifest-v2.bin"
	if *rewrite {
		if err := os.WriteFile(newest, sample().Encode(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for version, name := range map[uint16]string{1: "testdata/manifest-v1.bin", 2: newest} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		want := sample()
		want.Version = version
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("golden bytes of version %d read as\n%+v\nwant\n%+v", version, got, want)
		}
		if name == newest && !bytes.Equal(b, sample().Encode()) {
			t.Fatal("the layout has changed without a new version")
		}
	}
}

func TestManifestRefusesDamage(t *testing.T) {
	b := sample().Encode()
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 4
		if _, err := Decode(bad); err == nil {
			t.Fatalf("a flipped bit in byte %d was not seen", i)
		}
		if _, err := Decode(b[:i]); err == nil {
			t.Fatalf("a manifest cut at byte %d was not seen", i)
		}
	}
	newer := bytes.Clone(b)
	newer[5]++
	if _, err := Decode(newer); !errors.Is(err, ErrVersion) {
		t.Fatalf("another version: %v, want ErrVersion", err)
	}
}
