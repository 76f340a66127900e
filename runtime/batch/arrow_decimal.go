package batch

import (
	"unsafe"

	"github.com/millrace/millrace/runtime/types"
)

// types.Decimal128 has Arrow's layout on a little-endian machine: the low word,
// then the high word. These two views rest on it.

func decimalBytes(d []types.Decimal128) []byte {
	if len(d) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(d))), len(d)*16)
}

func decimalsOf(b []byte) []types.Decimal128 {
	if len(b) < 16 {
		return nil
	}
	return unsafe.Slice((*types.Decimal128)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/16)
}
