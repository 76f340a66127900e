package kafka

import (
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

// encodings are values with fields that tell one another apart.
func encodings() (job jobRecord, lane, keyed laneRecord, bare, carried, deleted payload) {
	job = jobRecord{epoch: 300, dir: conntest.UUID(1)}
	lane = laneRecord{job: conntest.UUID(2), table: conntest.UUID(3), lane: connector.LaneID{Topic: conntest.UUID(4), Set: 5}, high: point{generation: 6, epoch: 700},
		published: []point{{6, 700, 0, 8}, {6, 700, 0, 9}}}
	keyed = laneRecord{job: conntest.UUID(2), table: conntest.UUID(3), keyed: true, subtask: 4, high: point{epoch: 5}, published: []point{{0, 5, 6, 7}}}
	bare = payload{topic: conntest.UUID(1), commits: conntest.UUID(2), txn: "id", rows: 2}
	carried = bare
	carried.records = appendRecord(appendRecord(nil, -1, []byte("k"), []byte("v")), 1_700_000_000_000, nil, []byte("w"))
	deleted = bare
	deleted.records = appendRecord(nil, 1, []byte("k"), nil)
	return job, lane, keyed, bare, carried, deleted
}

// TestEncodings holds the bytes to those of docs/format/kafka-commits.md, which
// were put together by hand.
func TestEncodings(t *testing.T) {
	file, err := os.ReadFile("testdata/commits.txt")
	check(t, err)
	golden := map[string][]byte{}
	for line := range strings.Lines(string(file)) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(line, "#") {
			golden[name], err = hex.DecodeString(strings.ReplaceAll(text, " ", ""))
			check(t, err)
		}
	}
	job, lane, keyed, bare, carried, deleted := encodings()
	for name, have := range map[string][]byte{"job": job.encode(), "lane": lane.encode(), "keyed": keyed.encode(), "bare": bare.encode(), "carried": carried.encode(), "deleted": deleted.encode()} {
		if string(have) != string(golden[name]) {
			t.Errorf("%s is\n%x, want\n%x", name, have, golden[name])
		}
	}
	gotJob, err := decodeJobRecord(golden["job"])
	check(t, err)
	gotLane, err := decodeLaneRecord(golden["lane"])
	check(t, err)
	gotKeyed, err := decodeLaneRecord(golden["keyed"])
	check(t, err)
	gotBare, err := decodePayload(golden["bare"])
	check(t, err)
	gotCarried, err := decodePayload(golden["carried"])
	check(t, err)
	if gotJob != job || !reflect.DeepEqual(gotLane, lane) || !reflect.DeepEqual(gotKeyed, keyed) || !reflect.DeepEqual(*gotBare, bare) || !reflect.DeepEqual(*gotCarried, carried) {
		t.Errorf("%+v %+v %+v %+v %+v", gotJob, gotLane, gotKeyed, gotBare, gotCarried)
	}
	var rows []string
	check(t, eachRecord(gotCarried.records, func(ms int64, key, value []byte) {
		rows = append(rows, fmt.Sprintf("%d %s %v %s", ms, key, key == nil, value))
	}))
	if want := []string{"-1 k false v", "1700000000000  true w"}; !reflect.DeepEqual(rows, want) {
		t.Errorf("records %q", rows)
	}
	gotDeleted, err := decodePayload(golden["deleted"])
	check(t, err)
	check(t, eachRecord(gotDeleted.records, func(ms int64, key, value []byte) {
		if ms != 1 || string(key) != "k" || value != nil {
			t.Errorf("a deletion is read as %d %q %q", ms, key, value)
		}
	}))
	// What is cut off, longer, or of another version is refused.
	for name, b := range golden {
		for n := range len(b) {
			_, jobErr := decodeJobRecord(b[:n])
			_, laneErr := decodeLaneRecord(b[:n])
			_, payloadErr := decodePayload(b[:n])
			if name == "job" && jobErr == nil || (name == "lane" || name == "keyed") && laneErr == nil || name == "bare" && payloadErr == nil {
				t.Errorf("%s cut to %d bytes is read", name, n)
			}
		}
		other := append([]byte{2}, b[1:]...)
		_, jobErr := decodeJobRecord(other)
		_, laneErr := decodeLaneRecord(other)
		_, payloadErr := decodePayload(other)
		if jobErr == nil || laneErr == nil || payloadErr == nil {
			t.Errorf("%s of version 2 is read", name)
		}
	}
	for n := 1; n < len(carried.records); n++ {
		if n != 5 && eachRecord(carried.records[:n], func(int64, []byte, []byte) {}) == nil {
			t.Errorf("records cut to %d bytes are read", n)
		}
	}
}
