package jsonfmt

import (
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/types"
)

// TestDiffersFromFlinkDecimalOverflow: Flink makes a number that is too large
// for its DECIMAL NULL, in strict mode too, so that money vanishes; here it is
// an error of the value, whatever the policy.
func TestDiffersFromFlinkDecimalOverflow(t *testing.T) {
	m := []types.Field{field("m", types.NewDecimal(10, 2))}
	for _, option := range []string{strict, "json.on-error=dead-letter"} {
		newFixture(t, m, option).want([]string{`{"m":123456789.995}`, `{"m":99999999.99}`}, "E(type_mismatch m: 123456789.995 is not DECIMAL(10, 2))", "99999999.99")
	}
	f := newFixture(t, m, lenient)
	f.want([]string{`{"m":123456789.995}`}, "NULL")
	if f.count(0, format.Nulled) != 1 {
		t.Error("a value that was made NULL is not counted")
	}
}

// TestDiffersFromFlinkDecimalScale: Flink rounds digits behind the scale
// without a word; here each such value is counted, and can be an error.
func TestDiffersFromFlinkDecimalScale(t *testing.T) {
	m := []types.Field{field("m", types.NewDecimal(10, 2))}
	f := newFixture(t, m)
	f.want([]string{`{"m":1.005}`, `{"m":1.50}`, `{"m":-0.005}`}, "1.01", "1.50", "-0.01")
	if n := f.count(0, format.Rounded); n != 2 {
		t.Errorf("%d rounded values are counted, want 2", n)
	}
	newFixture(t, m, "json.decimal-scale=error").want([]string{`{"m":1.005}`, `{"m":1.500}`},
		"E(type_mismatch m: 1.005 has more digits behind the point than DECIMAL(10, 2))", "1.50")
}

// TestDiffersFromFlinkBadRecordsAreDead: without an option Flink fails at the
// first bad record, and again after each restart; here the default is the dead
// letter.
func TestDiffersFromFlinkBadRecordsAreDead(t *testing.T) {
	if p, err := (Format{}).Policy(nil); err != nil || p != format.DeadLetter {
		t.Errorf("the default is %v, %v", p, err)
	}
	newFixture(t, intA).want([]string{`{"a":1`, `{"a":2}`}, "!malformed_record text ends too early, at byte 6", "2")
}
