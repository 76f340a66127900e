package hive

import (
	"testing"

	"github.com/millrace/millrace/runtime/types"
)

// The spellings are those of Hive's LanguageManual, Types.
func TestHiveTypes(t *testing.T) {
	str := types.NewString()
	for _, c := range []struct {
		t     types.Type
		int96 bool
		want  string // "" is an error
	}{
		{t: types.NewBoolean(), want: "boolean"}, {t: types.NewTinyInt(), want: "tinyint"}, {t: types.NewSmallInt(), want: "smallint"},
		{t: types.NewInt(), want: "int"}, {t: types.NewBigInt().NotNull(), want: "bigint"}, {t: types.NewFloat(), want: "float"}, {t: types.NewDouble(), want: "double"},
		{t: types.NewDecimal(38, 10), want: "decimal(38,10)"}, {t: types.NewChar(255), want: "char(255)"}, {t: types.NewChar(256)},
		{t: types.NewVarchar(65535), want: "varchar(65535)"}, {t: types.NewVarchar(65536), want: "string"}, {t: str, want: "string"},
		{t: types.NewBytes(), want: "binary"}, {t: types.NewBinary(3), want: "binary"}, {t: types.NewDate(), want: "date"},
		{t: types.NewTime(0)}, {t: types.NewTimestamp(6), want: "timestamp"}, {t: types.NewTimestampLTZ(3), want: "timestamp"},
		{t: types.NewTimestamp(9)}, {t: types.NewTimestamp(9), int96: true, want: "timestamp"},
		{t: types.NewArray(types.NewArray(types.NewInt())), want: "array<array<int>>"},
		{t: types.NewMap(str, types.NewDecimal(5, 1)), want: "map<string,decimal(5,1)>"},
		{t: types.NewRow(types.Field{Name: "A", Type: types.NewInt()}, types.Field{Name: "b", Type: types.NewArray(str)}), want: "struct<a:int,b:array<string>>"},
		{t: types.NewArray(types.NewTime(3))}, {t: types.NewRow(types.Field{Name: "a:b", Type: str})}, {t: types.Simple(types.IntervalDaySecond)},
	} {
		got, err := hiveType(c.t, c.int96)
		if (err != nil) != (c.want == "") || err == nil && got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.t, got, err, c.want)
		}
	}
}

func TestReadableAndWidens(t *testing.T) {
	for _, c := range []struct {
		a, b            string
		readable, wider bool
	}{
		{"int", "int", true, false}, {"int", "bigint", false, true}, {"bigint", "int", false, false}, {"tinyint", "smallint", false, true},
		{"float", "double", false, true}, {"varchar(5)", "varchar(9)", true, true}, {"varchar(9)", "varchar(5)", false, false},
		{"varchar(5)", "string", true, true}, {"char(5)", "string", true, true}, {"char(5)", "char(6)", false, false}, {"string", "varchar(5)", false, false},
		{"decimal(10,2)", "decimal(12,2)", false, false}, {"int", "string", false, false}, {"timestamp", "timestamp with local time zone", true, false},
	} {
		if got := readableAs(c.a, c.b); got != c.readable {
			t.Errorf("%s read as %s: %v", c.a, c.b, got)
		}
		if got := widens(c.a, c.b); got != c.wider {
			t.Errorf("%s widened to %s: %v", c.a, c.b, got)
		}
	}
	for in, want := range map[string]string{"Decimal( 10, 2 )": "decimal(10,2)", "decimal": "decimal(10,0)", "STRUCT<a:INT, b:string>": "struct<a:int,b:string>"} {
		if got := canonical(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

func TestLocations(t *testing.T) {
	for in, want := range map[string]string{
		"file:/a/b": "file:/a/b", "file:///a//b/": "file:/a/b", "/a/b": "file:/a/b", "hdfs://NS1/a/": "hdfs://NS1/a", "hdfs://h:8020/a/dt=x%3Ay": "hdfs://h:8020/a/dt=x%3Ay", "/a:b": "file:/a:b",
	} {
		if got := normal(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"file:/a": "/a", "hdfs://h/a": "hdfs://h/a", "hdfs:/a": "", "": ""} {
		if got, err := filePath(in); got != want || (err != nil) != (want == "") {
			t.Errorf("%s lies at %q, %v, want %q", in, got, err, want)
		}
	}
}
