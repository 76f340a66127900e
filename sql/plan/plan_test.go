package plan_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/sqltest"
)

const ddl = `CREATE TABLE t (
  ti TINYINT, i INT NOT NULL, b BIGINT, f FLOAT, d DOUBLE, m DECIMAL(10, 2), m3 DECIMAL(12, 3), s STRING, v VARCHAR(5), c CHAR(2), bo BOOLEAN,
  dt DATE, tm TIME(3), ts TIMESTAMP(3), ts6 TIMESTAMP(6), ltz TIMESTAMP_LTZ(3), by BYTES,
  a ARRAY<INT>, mp MAP<STRING, DECIMAL(5, 1)>, r ROW<x INT NOT NULL, y ROW<z STRING>>, twice AS i * 2,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'log', 'topic' = 't');
CREATE VIEW vt AS SELECT ts, i AS k, ts AS again, CAST(ts AS TIMESTAMP(3)) AS same_type, ts + INTERVAL '1' SECOND AS later FROM t;
`

// typeOf binds an expression over t.
func typeOf(t *testing.T, e string) string {
	t.Helper()
	b, _, err := sqltest.Binder(strings.ReplaceAll(ddl, " by BYTES", " `by` BYTES"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := sqltest.Query(b, "SELECT "+e+" FROM t")
	if err != nil {
		t.Errorf("%s: %v", e, err)
		return ""
	}
	return out.Columns()[0].Type.String()
}

// TestTypes are result types by Flink's rules.
func TestTypes(t *testing.T) {
	for e, want := range map[string]string{
		// Arithmetic: the wider integer; DECIMAL rules; DOUBLE wins.
		"ti + 1": "INT", "i + b": "BIGINT", "i + 1": "INT NOT NULL", "b / i": "BIGINT", "f + d": "DOUBLE", "i + d": "DOUBLE",
		"m + m3": "DECIMAL(13, 3)", "m * m": "DECIMAL(21, 4)", "m / m3": "DECIMAL(26, 15)", "m % m3": "DECIMAL(11, 3)", "m + i": "DECIMAL(13, 2)",
		"m * d": "DOUBLE", "-m": "DECIMAL(10, 2)", "twice": "INT NOT NULL",
		// Comparisons and conditions.
		"i = b": "BOOLEAN", "i > 1": "BOOLEAN NOT NULL", "s IS NULL": "BOOLEAN NOT NULL", "bo AND i > 1": "BOOLEAN", "i IN (1, 2)": "BOOLEAN NOT NULL",
		"s LIKE 'a%'": "BOOLEAN", "i BETWEEN 1 AND 2": "BOOLEAN NOT NULL", "NOT bo": "BOOLEAN",
		// Conditionals: the least restrictive type, NULL without a type adapts.
		"CASE WHEN bo THEN 1 ELSE 2.5 END": "DECIMAL(11, 1) NOT NULL", "CASE WHEN bo THEN i END": "INT", "COALESCE(m, 0)": "DECIMAL(12, 2) NOT NULL",
		"IF(bo, v, s)": "STRING", "NULLIF(i, 0)": "INT", "CASE WHEN bo THEN NULL ELSE s END": "STRING", "IFNULL(b, i)": "BIGINT NOT NULL",
		// Casts keep nullability, TRY_CAST is nullable.
		"CAST(i AS STRING)": "STRING NOT NULL", "TRY_CAST(i AS TINYINT)": "TINYINT", "CAST(NULL AS ARRAY<INT>)": "ARRAY<INT>",
		// Nested access: nullable if anything on the way is.
		"r.x": "INT", "r.y.z": "STRING", "a[1]": "INT", "mp['k']": "DECIMAL(5, 1)", "t.r.x": "INT", "CARDINALITY(a)": "INT",
		"ROW(i, s)": "ROW<`EXPR$0` INT NOT NULL, `EXPR$1` STRING> NOT NULL", "ARRAY[i, b]": "ARRAY<BIGINT> NOT NULL", "MAP['k', i]": "MAP<CHAR(1), INT NOT NULL> NOT NULL",
		// Times.
		"ts + INTERVAL '1' HOUR": "TIMESTAMP(3)", "ltz - INTERVAL '5' SECOND": "TIMESTAMP_LTZ(3)", "CURRENT_DATE": "DATE NOT NULL",
		"CURRENT_TIMESTAMP": "TIMESTAMP_LTZ(3) NOT NULL", "LOCALTIMESTAMP": "TIMESTAMP(3) NOT NULL", "TO_TIMESTAMP_LTZ(b, 3)": "TIMESTAMP_LTZ(3)",
		"DATE_FORMAT(ts, 'yyyy')": "STRING", "EXTRACT(DAY FROM ts)": "BIGINT", "TIMESTAMP '2024-01-01 00:00:00.12'": "TIMESTAMP(2) NOT NULL",
		"INTERVAL '1-2' YEAR TO MONTH": "INTERVAL YEAR TO MONTH NOT NULL", "INTERVAL '1 02:03' DAY TO MINUTE": "INTERVAL DAY TO SECOND NOT NULL",
		// Text.
		"s || 'x'": "STRING", "UPPER(v)": "STRING", "CHAR_LENGTH(s)": "INT", "X'0AFF'": "BINARY(2) NOT NULL", "''": "STRING NOT NULL",
	} {
		if got := typeOf(t, e); got != want && got != "" {
			t.Errorf("%s is %s, want %s", e, got, want)
		}
	}
}

// TestRowTime: row time is kept by bare references, lost by any expression;
// behind a window window_time carries it.
func TestRowTime(t *testing.T) {
	b, _, err := sqltest.Binder(strings.ReplaceAll(ddl, " by BYTES", " `by` BYTES"))
	if err != nil {
		t.Fatal(err)
	}
	const window = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
	for sql, want := range map[string]string{
		"SELECT * FROM vt":                                                "ts again",
		"SELECT x FROM (SELECT ts AS x FROM vt)":                          "x",
		"SELECT ts FROM t UNION ALL SELECT again FROM vt":                 "ts",
		"SELECT ts FROM t UNION ALL SELECT later FROM vt":                 "",
		"SELECT ts, window_start, window_end, window_time FROM " + window: "window_time",
		"SELECT window_end, window_time, COUNT(*) AS n FROM " + window + " GROUP BY window_start, window_end, window_time": "window_time",
		"SELECT ts, x FROM t CROSS JOIN UNNEST(a) AS u (x)":                                                                "ts",
		"SELECT COALESCE(ts, ts6) AS ts FROM t":                                                                            "",
	} {
		out, err := sqltest.Query(b, sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		var names []string
		for _, c := range out.Columns() {
			if c.RowTime {
				names = append(names, c.Name)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: row time %q, want %q", sql, got, want)
		}
	}
}

// TestOutputNames are the names of columns without an alias.
func TestOutputNames(t *testing.T) {
	b, _, err := sqltest.Binder(strings.ReplaceAll(ddl, " by BYTES", " `by` BYTES"))
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"SELECT i, t.b, r.x, r.y.z, a[1], i + 1, COUNT(*) AS n FROM t GROUP BY i, b, r, a": "i,b,x,z,EXPR$4,EXPR$5,n",
		"SELECT i, t.b, r.x, r.y.z, a[1], i + 1 FROM t":                                    "i,b,x,z,EXPR$4,EXPR$5",
		"SELECT k FROM vt AS v (ts, k, q, w, e)":                                           "k",
		"VALUES (1, 2)":                                                                    "EXPR$0,EXPR$1",
		"SELECT key, `value` FROM t CROSS JOIN UNNEST(mp)":                                 "key,value",
		"SELECT tag FROM t CROSS JOIN UNNEST(a) AS tag":                                    "tag",
	} {
		out, err := sqltest.Query(b, sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		var names []string
		for _, c := range out.Columns() {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%s: names %q, want %q", sql, got, want)
		}
	}
}
