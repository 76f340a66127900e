package clickhouse

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// sealOne makes a sealed block of one column in memory.
func sealOne(t testing.TB, name string, c *column, typ string, v *batch.Vec, rows []int32) []byte {
	t.Helper()
	fsys := vfs.NewMem()
	bufs := make([]buffer, 1)
	var s scratch
	c.append(&bufs[0], v, rows, &s)
	h := sealedHead{id: "block-1", rows: int64(len(rows)), shape: 42, partsBefore: -1, sealedAt: 1_700_000_000,
		columns: []sealedColumn{{name: name, typ: typ}}}
	if _, err := writeSealed(fsys, "/b", &h, []*column{c}, bufs); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(fsys, "/b")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func columnOf(t testing.TB, typ types.Type, ch string) *column {
	t.Helper()
	parsed, err := parseType(ch)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newColumn(typ, parsed, types.UTC())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What is sealed is what the driver reads as the server's own form, for every
// pair of types and for every encoding of a column; what must be refused is.
func TestSealedColumnsAreReadByTheDriver(t *testing.T) {
	for _, c := range typeCases() {
		t.Run(c.name, func(t *testing.T) {
			col := columnOf(t, c.sql, c.ch)
			values := append(slices.Clone(c.good), c.bad...)
			flat := vec(t, c.sql, values...)
			dict := &batch.Vec{Type: c.sql, Enc: batch.Dict, Len: len(values), Dict: flat}
			for i := range values {
				dict.Codes = append(dict.Codes, int32(i))
			}
			for _, v := range []*batch.Vec{flat, dict} {
				var s scratch
				bad := map[int]bool{}
				col.refuse(v, all(nil, nil, len(values)), &s, func(k int, _ string) { bad[k] = true })
				for k := range values {
					if bad[k] != (k >= len(c.good)) {
						t.Errorf("value %v: refused %t", values[k], bad[k])
					}
				}
				if len(c.bad) > 0 && !col.checks() {
					t.Error("bad values, and nothing is checked")
				}
				file := sealOne(t, "x", col, c.ch, v, all(nil, nil, len(c.good)))
				rereadByDriver(t, file, c.ch, len(c.good))
			}
			for _, x := range c.good {
				one := vec(t, c.sql, x)
				one.Enc, one.Len = batch.Const, 3
				rereadByDriver(t, sealOne(t, "x", col, c.ch, one, []int32{0, 1, 2}), c.ch, 3)
			}
		})
	}
}

func TestGoldenBlock(t *testing.T) {
	c := columnOf(t, types.NewString(), "LowCardinality(Nullable(String))")
	got := sealOne(t, "name", c, c.ch.text, vec(t, types.NewString(), "a", nil, "b", "a"), []int32{0, 1, 2, 3})
	want, err := os.ReadFile("testdata/sealed-v1")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("sealed\n%q\nwant\n%q", got, want)
	}
	h, cols, err := decodeSealed(want)
	if err != nil || h.id != "block-1" || h.rows != 4 || h.shape != 42 || h.partsBefore != -1 || h.sealedAt != 1_700_000_000 || len(cols) != 1 {
		t.Errorf("golden block %+v of %d columns, %v", h, len(cols), err)
	}
}

func TestGoldenBlockOfATableWithIdentity(t *testing.T) {
	c := columnOf(t, types.NewBigInt().NotNull(), "Int64")
	h := sealedHead{id: "block-2", rows: 1, shape: 42, partsBefore: 5, sealedAt: 1_700_000_000, identity: "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
		columns: []sealedColumn{{name: "n", typ: "Int64"}}}
	fsys := vfs.NewMem()
	if _, err := writeSealed(fsys, "/b", &h, []*column{c}, []buffer{{rows: 1, data: []byte{7, 0, 0, 0, 0, 0, 0, 0}}}); err != nil {
		t.Fatal(err)
	}
	got, err := vfs.ReadFile(fsys, "/b")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/sealed-v2")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("sealed\n%q\nwant\n%q", got, want)
	}
	back, cols, err := decodeSealed(want)
	if err != nil || back.identity != h.identity || back.sealedAt != h.sealedAt || len(cols) != 1 || len(cols[0]) != 8 {
		t.Errorf("golden block %+v of %d columns, %v", back, len(cols), err)
	}
}

// A block that was cut, or of which any byte changed, is never sent.
func TestDamagedBlocksAreRefused(t *testing.T) {
	file, err := os.ReadFile("testdata/sealed-v1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range file {
		if _, _, err := decodeSealed(file[:i]); err == nil {
			t.Errorf("a block cut at byte %d of %d is taken", i, len(file))
		}
		bad := slices.Clone(file)
		bad[i] ^= 1
		if _, _, err := decodeSealed(bad); err == nil {
			t.Errorf("a block with byte %d changed is taken", i)
		}
	}
	newer := slices.Clone(file)
	newer[7] = 3
	if _, _, err := decodeSealed(newer); !errors.Is(err, errSealed) {
		t.Errorf("a newer version: %v", err)
	}
}

func TestPayload(t *testing.T) {
	p := payload{rows: 300, bytes: 7}
	b := p.encode()
	if want := []byte{1, 0xac, 2, 7}; !bytes.Equal(b, want) {
		t.Errorf("payload %v, want %v", b, want)
	}
	if got, err := decodePayload(b); err != nil || got != p {
		t.Errorf("%+v, %v", got, err)
	}
	long := payload{rows: 300, bytes: 7, shard: 2, replace: true}
	if b := long.encode(); !bytes.Equal(b, []byte{2, 0xac, 2, 7, 2, 1}) {
		t.Errorf("payload %v", b)
	}
	if got, err := decodePayload(long.encode()); err != nil || got != long {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range [][]byte{nil, {2, 1, 1}, {1, 0xac}, {1, 1, 1, 1}, {3, 1, 1, 1}} {
		if _, err := decodePayload(bad); err == nil {
			t.Errorf("payload %v is taken", bad)
		}
	}
}
