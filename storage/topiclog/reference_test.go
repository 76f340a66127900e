package topiclog

import (
	"encoding/hex"
	"strings"
	"testing"
)

// The bytes are those of docs/format/journal.md.
func TestGoldenReference(t *testing.T) {
	const golden = "000000000000004f" + // segment id
		"0000000100002000" + // position
		"00040045" + // bytes of batches
		"00000003" + // batches
		"2695f63d" + // checksum of the batch table
		"00000000"
	want := reference{segment: 79, position: 1<<32 + 8192, length: 256<<10 + 69, batches: 3, checksum: 0x2695f63d}
	b := []byte(strings.Repeat("x", refBytes))
	want.encode(b)
	if got := hex.EncodeToString(b); got != golden {
		t.Errorf("got  %s\nwant %s", got, golden)
	}
	b, err := hex.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := decodeReference(b); !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, ok := decodeReference(b[:31]); ok {
		t.Error("a reference of 31 bytes was taken")
	}
}
