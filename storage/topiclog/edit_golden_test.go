package topiclog

import (
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/storage/manifest"
)

// The edits of producers and transactions stay readable for ever.
func TestGoldenEdits(t *testing.T) {
	producerAt := producerState{epoch: 2, coordinatorEpoch: -1, lastOffset: 9, lastMs: 1000, txnFirst: 8, n: 2}
	producerAt.batches[0], producerAt.batches[1] = producerBatch{6, 0, 2}, producerBatch{8, 2, 2}
	aborted := AbortedTransaction{ProducerID: 7, FirstOffset: 3, LastOffset: 6, stable: 7}
	txn := &transactionState{who: ProducerIdentity{7, 3}, next: ProducerIdentity{7, 3}, former: ProducerIdentity{7, 2}, state: TransactionPrepareCommit,
		timeoutMs: 60_000, startMs: 1000, updateMs: 2000, parts: map[PartitionID]bool{5: true, 6: true}, groups: map[string]bool{"g": true},
		offsets: map[string]map[PartitionID]Cursor{"g": {5: {Partition: 5, Offset: 9, LeaderEpoch: -1, Metadata: "m", CommitTime: timeOf(2000)}}}}
	edits := []manifest.Edit{producerIDsEdit(3000), producerEdit(5, 7, &producerAt), abortedEdit(5, &aborted), transactionEdit("tx", txn), transactionGoneEdit("tx")}
	text, err := os.ReadFile("testdata/edits.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	if len(lines) != len(edits) {
		t.Fatalf("%d golden edits, want %d", len(lines), len(edits))
	}
	for i, line := range lines {
		kind, payload, _ := strings.Cut(line, " ")
		if got := hex.EncodeToString(edits[i].Payload); got != payload {
			t.Errorf("kind %s: written as %s, golden %s", kind, got, payload)
		}
		raw, err := hex.DecodeString(payload)
		if err != nil {
			t.Fatal(err)
		}
		d := &dec{b: raw}
		switch edits[i].Kind {
		case editProducer:
			part := d.u()
			if id, st := decodeProducer(d); part != 5 || id != 7 || st != producerAt {
				t.Errorf("producer %d of partition %d: %+v", id, part, st)
			}
		case editTransaction:
			if id, st := decodeTransaction(d); id != "tx" || !reflect.DeepEqual(st, txn) {
				t.Errorf("transaction %s: %+v", id, st)
			}
		default:
			continue
		}
		if d.err != nil || len(d.b) > 0 {
			t.Errorf("kind %s: %v, %d bytes left", kind, d.err, len(d.b))
		}
	}
}
