package clickhouse

import (
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

func TestGoldenRecord(t *testing.T) {
	fsys := vfs.NewMem()
	st, err := sealdir.Open(fsys, "/data", "clickhouse", "events", connector.Owner{JobEpoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{fs: fsys, staging: st}
	r := &record{Format: recordFormat, Name: "toDate(ts)=2024-05-01",
		Done: &version{Version: 1<<32 | 7, Partition: "20240501", Rows: 3, Hash: 1<<64 - 1, Parts: []string{"a-1", "a-2"}}, Next: &version{Version: 1<<32 | 8}}
	if err := s.writeRecord(r); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/replace-record-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := vfs.ReadFile(fsys, s.recordPath(r.Name))
	if err != nil || string(got) != strings.TrimSuffix(string(want), "\n") {
		t.Errorf("the record is\n%s (%v), want\n%s", got, err, want)
	}
	back, err := s.readRecord(r.Name)
	if err != nil || back.Done.Hash != 1<<64-1 || back.Done.Version != 1<<32|7 || back.Next.Rows != 0 || len(back.Done.Parts) != 2 {
		t.Errorf("read back as %+v, %v", back, err)
	}
	newer := strings.Replace(string(got), `"format":1`, `"format":2`, 1)
	if err := vfs.WriteFileAtomic(fsys, s.recordPath(r.Name), []byte(newer)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.readRecord(r.Name); err == nil || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("a newer format: %v", err)
	}
}

func TestStageEngine(t *testing.T) {
	const index = "index_granularity = 8192"
	for full, want := range map[string]string{
		"MergeTree PARTITION BY dt ORDER BY k SETTINGS " + index:                                              "MergeTree PARTITION BY dt ORDER BY k SETTINGS " + index,
		"ReplicatedMergeTree('/t/{shard}/x', '{replica}') PARTITION BY dt ORDER BY k SETTINGS " + index:       "MergeTree PARTITION BY dt ORDER BY k SETTINGS " + index,
		"ReplicatedReplacingMergeTree('/t/1/x', 'r1', v) ORDER BY k":                                          "ReplacingMergeTree(v) ORDER BY k",
		"ReplicatedMergeTree ORDER BY k":                                                                      "MergeTree ORDER BY k",
		"ReplicatedMergeTree('/a', 'b') ORDER BY k SETTINGS replicated_deduplication_window = 1000, " + index: "MergeTree ORDER BY k SETTINGS " + index,
		"ReplicatedMergeTree('/a', 'b') ORDER BY k SETTINGS replicated_deduplication_window_seconds = 10":     "MergeTree ORDER BY k",
		"ReplicatedSummingMergeTree('/a', 'b', (x, y)) PARTITION BY toYYYYMM(d) ORDER BY k":                   "SummingMergeTree((x, y)) PARTITION BY toYYYYMM(d) ORDER BY k",
	} {
		if got := stageEngine(full); got != want {
			t.Errorf("%s\nis staged as %s\nwant         %s", full, got, want)
		}
	}
}
