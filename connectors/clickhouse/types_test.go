package clickhouse

import (
	"strconv"

	"github.com/millrace/millrace/runtime/types"
)

// typeCase is a pair of types, values that must arrive as they are, and values
// that must be refused.
type typeCase struct {
	name string
	sql  types.Type
	ch   string
	good []any
	// text is each good value as the server prints it in TSV; \N is NULL.
	text []string
	bad  []any
	// back is what is read again, where it is not the same.
	back []any
}

const (
	maxInt64 = int64(1<<63 - 1)
	minInt64 = int64(-1 << 63)
)

// typeCases are the pairs that the sink converts, with the bounds of both sides.
// The texts are ClickHouse's documented output formats.
func typeCases() []typeCase {
	keys, keyTexts := []any{nil}, []string{`\N`}
	for i := range 300 {
		keys, keyTexts = append(keys, strconv.Itoa(i)), append(keyTexts, strconv.Itoa(i))
	}
	str, big, i32 := types.NewString(), types.NewBigInt(), types.NewInt()
	return []typeCase{
		{"int8", big, "Int8", []any{-128, 127, 0}, []string{"-128", "127", "0"}, []any{-129, 128, nil}, nil},
		{"int16", big, "Int16", []any{-32768, 32767}, []string{"-32768", "32767"}, []any{-32769, 32768}, nil},
		{"int32", big, "Int32", []any{-1 << 31, 1<<31 - 1}, []string{"-2147483648", "2147483647"}, []any{-1<<31 - 1, 1 << 31}, nil},
		{"int64", big, "Int64", []any{minInt64, maxInt64}, []string{"-9223372036854775808", "9223372036854775807"}, []any{nil}, nil},
		{"uint8", i32, "UInt8", []any{0, 255}, []string{"0", "255"}, []any{-1, 256, 300, -5}, nil},
		{"uint16", i32, "UInt16", []any{0, 65535}, []string{"0", "65535"}, []any{-1, 65536}, nil},
		{"uint32", big, "UInt32", []any{0, 1<<32 - 1}, []string{"0", "4294967295"}, []any{-1, 1 << 32}, nil},
		{"uint64", big, "UInt64", []any{0, maxInt64}, []string{"0", "9223372036854775807"}, []any{-1, minInt64}, nil},
		{"uint64 of a decimal", types.NewDecimal(20, 0), "UInt64", []any{"0", "18446744073709551615"}, []string{"0", "18446744073709551615"}, []any{"-1", "18446744073709551616"}, nil},
		{"int128", big, "Int128", []any{minInt64, -1, maxInt64}, []string{"-9223372036854775808", "-1", "9223372036854775807"}, nil, nil},
		{"int256", types.NewDecimal(38, 0), "Int256", []any{"-99999999999999999999999999999999999999", "5"}, []string{"-99999999999999999999999999999999999999", "5"}, nil, nil},
		{"uint256", big, "UInt256", []any{0, maxInt64}, []string{"0", "9223372036854775807"}, []any{-1}, nil},
		{"int64 of a decimal", types.NewDecimal(38, 0), "Int64", []any{"-9223372036854775808", "9223372036854775807"}, []string{"-9223372036854775808", "9223372036854775807"}, []any{"9223372036854775808", "-9223372036854775809"}, nil},
		{"uint8 of a decimal", types.NewDecimal(20, 0), "UInt8", []any{"0", "255"}, []string{"0", "255"}, []any{"256", "-1"}, nil},
		{"nullable", big, "Nullable(Int32)", []any{nil, 7, nil}, []string{`\N`, "7", `\N`}, []any{1 << 31}, nil},
		{"smallint", types.Simple(types.SmallInt), "UInt8", []any{255}, []string{"255"}, []any{-1, 256}, nil},
		{"tinyint to float", types.Simple(types.TinyInt), "Float32", []any{-128}, []string{"-128"}, nil, nil},
		{"int to double", i32, "Float64", []any{1<<31 - 1}, []string{"2147483647"}, nil, nil},
		{"boolean", types.NewBoolean(), "Bool", []any{true, false}, []string{"true", "false"}, []any{nil}, nil},
		{"boolean to uint8", types.NewBoolean(), "UInt8", []any{true, false}, []string{"1", "0"}, nil, nil},
		{"float", types.NewFloat(), "Float32", []any{0.5, -1.25}, []string{"0.5", "-1.25"}, nil, nil},
		{"float to double", types.NewFloat(), "Float64", []any{0.5}, []string{"0.5"}, nil, nil},
		{"double", types.NewDouble(), "Float64", []any{1e300, -0.1}, []string{"1e300", "-0.1"}, nil, nil},

		{"decimal 9", types.NewDecimal(9, 2), "Decimal(9, 2)", []any{"-9999999.99", "9999999.99"}, []string{"-9999999.99", "9999999.99"}, nil, nil},
		{"decimal narrowed", types.NewDecimal(10, 3), "Decimal(9, 2)", []any{"12.340", "-9999999.990"}, []string{"12.34", "-9999999.99"}, []any{"12.349"}, nil},
		{"decimal precision", types.NewDecimal(7, 2), "Decimal(5, 2)", []any{"999.99"}, []string{"999.99"}, []any{"12345.67", "-1000.00"}, nil},
		{"decimal exact", types.NewDecimal(18, 4), "Decimal(18, 4)", []any{"-0.0001", "99999999999999.9999"}, []string{"-0.0001", "99999999999999.9999"}, nil, nil},
		{"decimal 38", types.NewDecimal(38, 10), "Decimal(38, 10)", []any{"-9999999999999999999999999999.9999999999"}, []string{"-9999999999999999999999999999.9999999999"}, nil, nil},
		{"decimal wide to narrow", types.NewDecimal(38, 4), "Decimal(18, 2)", []any{"9999999999999999.9900"}, []string{"9999999999999999.99"}, []any{"10000000000000000.0000", "0.0010"}, nil},
		{"decimal 76", types.NewDecimal(38, 2), "Decimal(76, 4)", []any{"-999999999999999999.99"}, []string{"-999999999999999999.99"}, nil, nil},
		{"decimal of an integer", i32, "Decimal(5, 2)", []any{-999, 999}, []string{"-999", "999"}, []any{1000, -1000}, nil},
		{"decimal of a bigint", big, "Decimal(20, 1)", []any{minInt64, maxInt64, -1}, []string{"-9223372036854775808", "9223372036854775807", "-1"}, nil, nil},
		{"decimal of fractions alone", types.NewDecimal(18, 18), "Decimal(9, 9)", []any{"0.999999999000000000", "-0.000000001000000000"}, []string{"0.999999999", "-0.000000001"}, []any{"0.000000000000000001"}, nil},
		{"decimal without room before the point", types.NewDecimal(18, 0), "Decimal(18, 18)", []any{"0"}, []string{"0"}, []any{"1", "-1", "999999999999999999"}, nil},

		{"string", str, "String", []any{"", "a\x00b", "日本", string(make([]byte, 300))}, nil, []any{nil}, nil},
		{"low cardinality", str, "LowCardinality(String)", []any{"a", "", "a", "b"}, []string{"a", "", "a", "b"}, []any{nil}, nil},
		{"low cardinality of NULL", str, "LowCardinality(Nullable(String))", []any{nil, "a", nil, "", "a"}, []string{`\N`, "a", `\N`, "", "a"}, nil, nil},
		{"low cardinality of many", str, "LowCardinality(Nullable(String))", keys, keyTexts, nil, nil},
		{"low cardinality at a byte's end", str, "LowCardinality(Nullable(String))", keys[:256], keyTexts[:256], nil, nil},
		{"low cardinality of fixed", str, "LowCardinality(FixedString(2))", []any{"ab", "cd", "ab"}, []string{"ab", "cd", "ab"}, []any{"abc"}, nil},
		{"fixed string", str, "FixedString(4)", []any{"abcd", "ab"}, []string{"abcd", `ab\0\0`}, []any{"abcde", "日本"}, []any{"abcd", "ab\x00\x00"}},
		{"binary", types.NewBinary(2), "FixedString(2)", []any{"ab"}, []string{"ab"}, nil, nil},
		{"enum by name", str, "Enum8('a' = 1, 'b, c' = -2)", []any{"a", "b, c"}, []string{"a", "b, c"}, []any{"b", "", nil, "\\"}, nil},
		{"enum by value", i32, "Enum16('a' = 1, 'b' = 3000)", []any{1, 3000}, []string{"a", "b"}, []any{2, 0}, nil},
		{"nullable enum", str, "Nullable(Enum8('a' = 1))", []any{nil, "a"}, []string{`\N`, "a"}, []any{"A"}, nil},
		{"uuid", str, "UUID", []any{"61f0c404-5cb3-11e7-907b-a6006ad3dba0"}, []string{"61f0c404-5cb3-11e7-907b-a6006ad3dba0"}, []any{"61f0c404", "", "61f0c404-5cb3-11e7-907b-a6006ad3dbag"}, nil},
		{"ipv4", str, "IPv4", []any{"1.2.3.4", "255.255.255.255"}, []string{"1.2.3.4", "255.255.255.255"}, []any{"1.2.3", "::1", "256.1.1.1"}, nil},
		{"ipv6", str, "IPv6", []any{"2001:db8::1", "1.2.3.4"}, []string{"2001:db8::1", "::ffff:1.2.3.4"}, []any{"x", "fe80::1%eth0"}, []any{"2001:db8::1", "::ffff:1.2.3.4"}},

		{"date", types.NewDate(), "Date", []any{"1970-01-01", "2022-01-12", "2149-06-06"}, []string{"1970-01-01", "2022-01-12", "2149-06-06"}, []any{"1969-12-31", "1960-01-01", "2149-06-07", "2150-01-01"}, nil},
		{"date32", types.NewDate(), "Date32", []any{"1900-01-01", "2299-12-31"}, []string{"1900-01-01", "2299-12-31"}, []any{"1899-12-31", "2300-01-01"}, nil},
		{"nullable date", types.NewDate(), "Nullable(Date)", []any{nil, "2022-01-12"}, []string{`\N`, "2022-01-12"}, nil, nil},
		{"array of dates", types.NewArray(types.NewDate()), "Array(Date)", []any{[]any{"2022-01-12", "1970-01-01"}}, []string{"['2022-01-12','1970-01-01']"}, []any{[]any{"1969-12-31"}}, nil},
		{"datetime", types.NewTimestampLTZ(3), "DateTime('UTC')", []any{"1970-01-01 00:00:00", "2106-02-07 06:28:15"}, []string{"1970-01-01 00:00:00", "2106-02-07 06:28:15"},
			[]any{"1969-12-31 23:59:59", "2106-02-07 06:28:16", "2020-01-01 00:00:00.999"}, nil},
		{"datetime64", types.NewTimestampLTZ(3), "DateTime64(3, 'UTC')", []any{"1900-01-01 00:00:00", "2299-12-31 23:59:59.999"}, []string{"1900-01-01 00:00:00.000", "2299-12-31 23:59:59.999"},
			[]any{"1899-12-31 23:59:59.999", "2300-01-01 00:00:00"}, nil},
		{"datetime64 of micros", types.NewTimestamp(6), "DateTime64(3, 'UTC')", []any{"2022-07-20 17:42:48.129"}, []string{"2022-07-20 17:42:48.129"}, []any{"2022-07-20 17:42:48.129001"}, nil},
		{"datetime64 of nanos", types.NewTimestamp(9), "DateTime64(9, 'UTC')", []any{"2262-04-11 23:47:15.999999999"}, []string{"2262-04-11 23:47:15.999999999"}, nil, nil},
		{"wall clock in a zone", types.NewTimestamp(3), "DateTime64(3, 'Asia/Shanghai')", []any{"2022-07-20 17:42:48.129"}, []string{"2022-07-20 17:42:48.129"}, nil, nil},
		{"instant in a zone", types.NewTimestampLTZ(3), "DateTime64(3, 'Asia/Shanghai')", []any{"2022-07-20 17:42:48.129"}, []string{"2022-07-21 01:42:48.129"}, nil, nil},
		{"wall clock that is skipped", types.NewTimestamp(0), "DateTime('Europe/Berlin')", []any{"2024-03-31 01:59:59", "2024-03-31 03:00:00"}, []string{"2024-03-31 01:59:59", "2024-03-31 03:00:00"}, []any{"2024-03-31 02:30:00"}, nil},
		{"wall clock that comes twice", types.NewTimestamp(0), "DateTime('Europe/Berlin')", []any{"2024-10-27 02:30:00"}, []string{"2024-10-27 02:30:00"}, nil, nil},

		{"array", types.NewArray(str), "Array(String)", []any{[]any{}, []any{""}, []any{"a", "b"}}, []string{"[]", "['']", "['a','b']"}, []any{nil, []any{"a", nil}}, nil},
		{"array of NULL", types.NewArray(types.NewDouble()), "Array(Nullable(Float64))", []any{[]any{1.0, nil}}, []string{"[1,NULL]"}, nil, nil},
		{"array of arrays", types.NewArray(types.NewArray(big)), "Array(Array(UInt8))", []any{[]any{[]any{1, 2}, []any{}}}, []string{"[[1,2],[]]"}, []any{[]any{[]any{256}}}, nil},
		{"array of low cardinality", types.NewArray(str), "Array(LowCardinality(String))", []any{[]any{"x", "y", "x"}, []any{}}, []string{"['x','y','x']", "[]"}, nil, nil},
		{"map", types.NewMap(str, big), "Map(String, Int32)", []any{[]any{[]any{"a", 1}, []any{"b", 2}}, []any{}}, []string{"{'a':1,'b':2}", "{}"}, []any{nil, []any{[]any{"a", 1 << 31}}}, nil},
		{"row by name", types.NewRow(types.Field{Name: "x", Type: big}, types.Field{Name: "y", Type: str}), "Tuple(x UInt8, y Nullable(String))", []any{[]any{1, nil}, []any{2, "z"}}, []string{"(1,NULL)", "(2,'z')"}, []any{nil, []any{256, "z"}, []any{nil, "z"}}, nil},
		{"row by place", types.NewRow(types.Field{Name: "x", Type: big}), "Tuple(Int64)", []any{[]any{1}}, []string{"(1)"}, nil, nil},
		{"simple aggregate", big, "SimpleAggregateFunction(sum, UInt64)", []any{7}, []string{"7"}, []any{-7}, nil},
	}
}
