package logtopic

import (
	"bytes"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/topiclog"
)

// What comes back from the ledger or the log is read whole or refused; what is
// read is written again as it was.
func FuzzEncodings(f *testing.F) {
	f.Add(encodeNote(&connector.Header{ID: artifactID(3, 4)}))
	f.Add((&payload{topic: topiclog.UUID(theJob), index: 1, partition: 2, rows: 3}).encode())
	f.Add((&payload{batches: []byte("b")}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decodePayload(b); err == nil {
			again, err := decodePayload(p.encode())
			if err != nil || again.partition != p.partition || again.rows != p.rows || !bytes.Equal(again.batches, p.batches) {
				t.Fatalf("%x: %+v, then %+v, %v", b, p, again, err)
			}
		}
		at, in, err := decodeNote(b)
		if err != nil {
			return
		}
		h := connector.Header{Inputs: in, ID: connector.ArtifactID{Generation: at.generation, Epoch: at.epoch, Keyed: true, Manifest: at.manifest, Sequence: at.sequence}}
		if again, _, err := decodeNote(encodeNote(&h)); err != nil || again != at {
			t.Fatalf("%x: %+v, then %+v, %v", b, at, again, err)
		}
	})
}
