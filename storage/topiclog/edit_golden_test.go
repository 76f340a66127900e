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
	uneven := producerState{epoch: 0, coordinatorEpoch: -1, lastOffset: 4, lastMs: 1001, txnFirst: -1, n: 2}
	uneven.batches[0], uneven.batches[1] = producerBatch{0, 0, 1}, producerBatch{3, 1, 2}
	var producers producersEdit
	producers.add(5, 7, &producerAt)
	producers.add(6, 7, &uneven)
	wantEpochs := []EpochRange{{3, 10, 20}, {3, 0, 4}}
	var epochs epochsEdit
	epochs.add(5, wantEpochs[0])
	epochs.add(6, wantEpochs[1])
	// Kinds 5 and 41 are read only.
	edits := []manifest.Edit{{Kind: editEpoch}, producerIDsEdit(3000), {Kind: editProducer}, abortedEdit(5, &aborted), transactionEdit("tx", txn), transactionGoneEdit("tx"),
		producers.edits()[0], epochs.edits()[0]}
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
		if got := hex.EncodeToString(edits[i].Payload); got != payload && edits[i].Payload != nil {
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
		case editEpoch:
			if part, r := d.u(), (EpochRange{int32(d.i()), d.i(), d.i()}); part != 5 || r != wantEpochs[0] {
				t.Errorf("epoch of partition %d: %+v", part, r)
			}
		case editProducers:
			n := 0
			decodeProducers(d, func(part PartitionID, id int64, st producerState) {
				if want := []producerState{producerAt, uneven}[n]; part != PartitionID(5+n) || id != 7 || st != want {
					t.Errorf("producer %d of partition %d: %+v", id, part, st)
				}
				n++
			})
			if n != 2 {
				t.Errorf("%d producers", n)
			}
		case editEpochs:
			n := 0
			decodeEpochs(d, func(part PartitionID, r EpochRange) {
				if part != PartitionID(5+n) || r != wantEpochs[n] {
					t.Errorf("epoch of partition %d: %+v", part, r)
				}
				n++
			})
			if n != 2 {
				t.Errorf("%d epochs", n)
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
