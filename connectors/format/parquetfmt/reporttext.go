package parquetfmt

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/types"
)

// decimalOf is the unscaled number behind big-endian two's complement bytes.
func decimalOf(v any) *big.Int {
	b := []byte(v.(string))
	x := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return x
}

// scaled writes an unscaled number with its decimal point.
func scaled(x *big.Int, scale int) string {
	digits := new(big.Int).Abs(x).String()
	if scale > 0 {
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale-len(digits)+1) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if x.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

// showInt prints an integer by its logical type.
func showInt(n *fileNode, v int64) string {
	switch {
	case n.unsigned && n.elem.Type.V == format.Int32:
		return fmt.Sprint(uint32(v))
	case n.unsigned:
		return fmt.Sprint(uint64(v))
	case n.typ.Kind == types.Decimal:
		return scaled(big.NewInt(v), n.typ.Scale)
	case n.typ.Kind == types.Date:
		return time.Unix(v*secondsPerDay, 0).UTC().Format("2006-01-02")
	case n.typ.Kind == types.Time:
		t := time.Unix(0, 0).UTC().Add(time.Duration(v * (nanosPerSecond / n.unit)))
		return t.Format("15:04:05.999999999")
	case n.typ.IsTimestamp() && n.unit > 0:
		t := time.Unix(floorDiv(v, n.unit), (v-floorDiv(v, n.unit)*n.unit)*(nanosPerSecond/n.unit)).UTC()
		if n.typ.Kind == types.TimestampLTZ {
			return t.Format("2006-01-02 15:04:05.999999999Z")
		}
		return t.Format("2006-01-02 15:04:05.999999999")
	}
	return fmt.Sprint(v)
}
