package record_test

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/storage/record"
)

// The checksum is CRC-32C at every size and place, whatever steps it is taken in.
func TestChecksumIsCRC32C(t *testing.T) {
	if got := record.Checksum([]byte("123456789")); got != 0xe3069283 { // the check value of CRC-32C
		t.Errorf("the check value is %08x", got)
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	b := make([]byte, 40<<10)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	for _, n := range []int{0, 1, 63, 4095, 4096, 8191, 8192, 8193, 12287, 12288, 20000, 32768} {
		for _, from := range []int{0, 1, 61, 64} {
			p := b[from : from+n : from+n]
			want := crc32.Checksum(p, table)
			if got := record.Checksum(p); got != want {
				t.Errorf("%d bytes from %d: %08x, want %08x", n, from, got, want)
			}
			if got := record.UpdateChecksum(record.Checksum(p[:n/3]), p[n/3:]); got != want {
				t.Errorf("%d bytes from %d in two parts: %08x, want %08x", n, from, got, want)
			}
		}
	}
}

// BenchmarkChecksum sums memory that is in no near cache, as after a read of the disk.
func BenchmarkChecksum(b *testing.B) {
	all := make([]byte, 64<<20)
	for i := range all {
		all[i] = byte(i)
	}
	b.SetBytes(256 << 10)
	at := 0
	for b.Loop() {
		record.Checksum(all[at : at+256<<10])
		at = (at + 256<<10) % len(all)
	}
}
