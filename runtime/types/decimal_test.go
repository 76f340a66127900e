package types

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomDecimal draws values of all sizes, with many at the edges.
func randomDecimal(r *rand.Rand) Decimal128 {
	switch r.IntN(6) {
	case 0:
		return DecimalFromInt64(int64(r.IntN(21) - 10))
	case 1:
		d := Pow10(r.IntN(39))
		if r.IntN(2) == 0 {
			d, _ = d.Sub(Decimal128{Lo: 1})
		}
		if r.IntN(2) == 0 {
			d = d.Neg()
		}
		return d
	}
	d := Decimal128{Lo: r.Uint64(), Hi: int64(r.Uint64())}
	shift := uint(r.IntN(127))
	b := d.Big()
	b.Rsh(b, shift)
	d, _ = DecimalFromBig(b)
	return d
}

func fits(b *big.Int) bool { return b.BitLen() <= 127 }

// checkDecimals compares every operation on two values with math/big.
func checkDecimals(t *testing.T, a, b Decimal128, as, bs, rs int) {
	t.Helper()
	x, y := a.Big(), b.Big()
	same := func(what string, got Decimal128, ok bool, want *big.Int) {
		t.Helper()
		if ok != fits(want) || ok && got.Big().Cmp(want) != 0 {
			t.Fatalf("%s of %s and %s (scales %d %d %d): got %s %v, want %s", what, x, y, as, bs, rs, got.Big(), ok, want)
		}
	}
	s, ok := a.Add(b)
	same("sum", s, ok, new(big.Int).Add(x, y))
	s, ok = a.Sub(b)
	same("difference", s, ok, new(big.Int).Sub(x, y))
	s, ok = a.Mul(b)
	same("product", s, ok, new(big.Int).Mul(x, y))
	if a.Cmp(b) != x.Cmp(y) {
		t.Fatalf("compare %s with %s", x, y)
	}
	if as+bs >= rs {
		s, ok = a.MulScaled(b, as+bs-rs)
		same("scaled product", s, ok, halfUp(new(big.Int).Mul(x, y), pow(as+bs-rs)))
	}
	m := max(as, bs)
	sum := new(big.Int).Add(new(big.Int).Mul(x, pow(m-as)), new(big.Int).Mul(y, pow(m-bs)))
	s, ok = AddScaled(a, as, b, bs, rs)
	want := halfUp(new(big.Int).Mul(sum, pow(rs)), pow(m))
	if fits(want) != ok && fits(sum) || ok && s.Big().Cmp(want) != 0 {
		t.Fatalf("scaled sum of %s %s (%d %d %d): got %s %v, want %s", x, y, as, bs, rs, s.Big(), ok, want)
	}
	if b.Sign() != 0 {
		q, r := a.QuoRem(b)
		wq, wr := new(big.Int).QuoRem(x, y, new(big.Int))
		same("quotient", q, true, wq)
		same("remainder", r, true, wr)
		shift := rs - as + bs
		n, d := new(big.Int).Set(x), new(big.Int).Set(y)
		if shift >= 0 {
			n.Mul(n, pow(shift))
		} else {
			d.Mul(d, pow(-shift))
		}
		s, ok = a.DivScaled(b, shift)
		same("scaled quotient", s, ok, halfUp(n, d))
		s, ok = RemScaled(a, as, b, bs, m)
		same("scaled remainder", s, ok, new(big.Int).Rem(new(big.Int).Mul(x, pow(m-as)), new(big.Int).Mul(y, pow(m-bs))))
	}
	s, ok = a.Rescale(as, rs)
	same("rescale", s, ok, halfUp(new(big.Int).Mul(x, pow(max(rs-as, 0))), pow(max(as-rs, 0))))
	if text := FormatDecimal(a, as); a.FitsPrecision(38) {
		back, rounded, err := ParseDecimal(text, 38, as)
		if err != nil || rounded || back != a {
			t.Fatalf("%s at scale %d is %q, read back as %s %v %v", x, as, text, back.Big(), rounded, err)
		}
	}
	if f, _ := new(big.Rat).SetFrac(x, pow(as)).Float64(); a.Float64(as) != f {
		t.Fatalf("%s at scale %d as double: %v, want %v", x, as, a.Float64(as), f)
	}
}

func pow(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// halfUp divides, ties away from zero, by way of doubling.
func halfUp(n, d *big.Int) *big.Int {
	neg := n.Sign()*d.Sign() < 0
	a, b := new(big.Int).Abs(n), new(big.Int).Abs(d)
	q := new(big.Int).Div(new(big.Int).Add(new(big.Int).Lsh(a, 1), b), new(big.Int).Lsh(b, 1))
	if neg {
		q.Neg(q)
	}
	return q
}

func TestDecimalAgainstBig(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 1))
	for i := 0; i < 20000; i++ {
		checkDecimals(t, randomDecimal(r), randomDecimal(r), r.IntN(39), r.IntN(39), r.IntN(39))
	}
}

func FuzzDecimal(f *testing.F) {
	f.Add(int64(1), uint64(2), int64(-3), uint64(4), uint8(2), uint8(3), uint8(6))
	f.Fuzz(func(t *testing.T, ah int64, al uint64, bh int64, bl uint64, as, bs, rs uint8) {
		a, b := Decimal128{Hi: ah, Lo: al}, Decimal128{Hi: bh, Lo: bl}
		if a.Hi == math.MinInt64 || b.Hi == math.MinInt64 {
			t.Skip() // no DECIMAL has it
		}
		checkDecimals(t, a, b, int(as%39), int(bs%39), int(rs%39))
	})
}

func TestParseDecimal(t *testing.T) {
	for _, c := range []struct {
		in      string
		p, s    int
		want    string
		rounded bool
		err     error
	}{
		{"1.005", 10, 2, "1.01", true, nil}, {"-0.005", 10, 2, "-0.01", true, nil}, {"99999999.994", 10, 2, "99999999.99", true, nil},
		{"99999999.995", 10, 2, "", true, ErrRange}, {"1e-3", 10, 2, "0.00", true, nil}, {"1.10", 10, 1, "1.1", false, nil},
		{"12e3", 10, 2, "12000.00", false, nil}, {"0.00012E4", 5, 2, "1.20", false, nil}, {"1e38", 38, 0, "", false, ErrRange},
		{"99999999999999999999999999999999999999", 38, 0, "99999999999999999999999999999999999999", false, nil},
		{"0e999999999", 5, 2, "0.00", false, nil}, {"1e-999999999", 5, 2, "0.00", true, nil}, {"000000000000000000000000000000000000000000001", 5, 2, "1.00", false, nil},
		{".5", 3, 1, "0.5", false, nil}, {"5.", 3, 1, "5.0", false, nil}, {"+5", 3, 1, "5.0", false, nil}, {"0.45", 2, 1, "0.5", true, nil},
		{"", 3, 1, "", false, ErrSyntax}, {".", 3, 1, "", false, ErrSyntax}, {"1e", 3, 1, "", false, ErrSyntax}, {"1.2.3", 3, 1, "", false, ErrSyntax}, {"1_0", 3, 1, "", false, ErrSyntax}, {"١", 3, 1, "", false, ErrSyntax},
	} {
		d, rounded, err := ParseDecimal(c.in, c.p, c.s)
		if err != c.err {
			t.Errorf("%q: error %v, want %v", c.in, err, c.err)
			continue
		}
		if err == nil && (FormatDecimal(d, c.s) != c.want || rounded != c.rounded) {
			t.Errorf("%q: %s %v, want %s %v", c.in, FormatDecimal(d, c.s), rounded, c.want, c.rounded)
		}
	}
}

func TestDecimalFromFloatUsesShortestDigits(t *testing.T) {
	d, ok := DecimalFromFloat(1.005, 64, 10, 2)
	if !ok || FormatDecimal(d, 2) != "1.01" {
		t.Errorf("1.005 gave %s %v, want 1.01 as BigDecimal.valueOf", FormatDecimal(d, 2), ok)
	}
	d, ok = DecimalFromFloat(float64(float32(0.1)), 32, 10, 8)
	if !ok || FormatDecimal(d, 8) != "0.10000000" {
		t.Errorf("FLOAT 0.1 gave %s %v", FormatDecimal(d, 8), ok)
	}
}

func TestResultTypes(t *testing.T) {
	dec := func(p, s int) Type { return NewDecimal(p, s) }
	for _, c := range []struct {
		what string
		got  Type
		want string
	}{
		{"10,2 * 10,2", MulDecimal(dec(10, 2), dec(10, 2)), "DECIMAL(21, 4)"},
		{"38,19 * 38,19", MulDecimal(dec(38, 19), dec(38, 19)), "DECIMAL(38, 6)"},
		{"2,1 / 10,0", DivDecimal(dec(2, 1), dec(10, 0)), "DECIMAL(13, 12)"},
		{"5,2 + 10,0", AddDecimal(dec(5, 2), dec(10, 0)), "DECIMAL(13, 2)"},
		{"5,2 % 3,1", ModDecimal(dec(5, 2), dec(3, 1)), "DECIMAL(4, 2)"},
		{"38,10 + 38,0", AddDecimal(dec(38, 10), dec(38, 0)), "DECIMAL(38, 6)"},
		{"round(5,3 to 1)", RoundDecimal(dec(5, 3), 1), "DECIMAL(4, 1)"},
		{"round(5,3 to -1)", RoundDecimal(dec(5, 3), -1), "DECIMAL(3, 0)"},
		{"sum", SumDecimal(dec(10, 2)), "DECIMAL(38, 2)"}, {"avg", AvgDecimal(dec(10, 2)), "DECIMAL(38, 6)"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
	for _, c := range []struct {
		a, b Type
		want string
	}{
		{NewInt(), NewBigInt(), "BIGINT"}, {dec(5, 2), NewInt(), "DECIMAL(12, 2)"}, {NewFloat(), NewInt(), "FLOAT"}, {NewFloat(), dec(5, 2), "DOUBLE"}, {NewFloat(), NewDouble(), "DOUBLE"}, {NewChar(3), NewString(), "STRING"},
		{NewChar(3), NewChar(5), "VARCHAR(5)"}, {NewTimestamp(3), NewTimestampLTZ(6), "TIMESTAMP_LTZ(6)"}, {NewDate(), NewTimestamp(3), "TIMESTAMP(3)"},
		{Simple(Null), NewInt(), "INT"}, {NewArray(NewInt()), NewArray(NewBigInt()), "ARRAY<BIGINT>"},
	} {
		got, ok := Common(c.a, c.b)
		back, ok2 := Common(c.b, c.a)
		if !ok || !ok2 || got.String() != c.want || !got.Equal(back) {
			t.Errorf("common type of %s and %s: %s and %s, want %s", c.a, c.b, got, back, c.want)
		}
	}
	if _, ok := Common(NewInt(), NewString()); ok {
		t.Error("INT and STRING have a common type")
	}
}

func TestAppendFloatAsJava(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{
		{1e7, "1.0E7"}, {0.1, "0.1"}, {9999999, "9999999.0"}, {0.001, "0.001"}, {0.00099, "9.9E-4"}, {123456789.125, "1.23456789125E8"},
		{math.MaxFloat64, "1.7976931348623157E308"}, {5e-324, "4.9E-324"}, {math.Inf(-1), "-Infinity"}, {math.NaN(), "NaN"}, {2e-3, "0.002"}, {-0.0, "0.0"}, {100, "100.0"},
	} {
		got := string(AppendFloat(nil, c.f, 64))
		// Java prints the smallest double as 4.9E-324; the shortest form is 5E-324.
		if c.f == 5e-324 {
			c.want = "5.0E-324"
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.f, got, c.want)
		}
	}
	if got := string(AppendFloat(nil, float64(float32(3.4028235e38)), 32)); !strings.EqualFold(got, "3.4028235E38") {
		t.Errorf("largest FLOAT: %s", got)
	}
}
