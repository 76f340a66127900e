package all_test

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/connectors/all"
)

// TestPlaces: one table of a server is one place, however it is spelled, and another
// table, database or server is another one.
func TestPlaces(t *testing.T) {
	r := registry(t, all.Deps{})
	of := func(name string, with map[string]string, more ...string) (at []string) {
		t.Helper()
		for i := 0; i < len(more); i += 2 {
			with[more[i]] = more[i+1]
		}
		c, ok := r.Lookup(with["connector"])
		if !ok {
			t.Fatalf("no connector %s", with["connector"])
		}
		v, errs := c.Spec().Resolve(with)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, p := range c.Spec().Places(name, v) {
			at = append(at, p.At)
		}
		return at
	}
	hive := func(name string, more ...string) []string {
		return of(name, map[string]string{"connector": "hive", "hive.metastore.uris": "thrift://a:9083,thrift://b:9083"}, more...)
	}
	click := func(more ...string) []string {
		return of("x", map[string]string{"connector": "clickhouse", "url": "clickhouse://a:9000,b:9000", "table-name": "t"}, more...)
	}
	files := func(path string) []string {
		return of("x", map[string]string{"connector": "filesystem", "format": "json", "path": path})
	}
	for what, pair := range map[string][2][]string{
		"case of Hive's names":      {hive("Events"), hive("y", "table-name", "EVENTS", "database-name", "default")},
		"order of metastores":       {hive("t"), hive("t", "hive.metastore.uris", "thrift://b:9083, thrift://a:9083")},
		"a table in a catalog":      {hive("cat.db.t"), hive("t")},
		"order of ClickHouse hosts": {click(), click("url", "clickhouse://b:9000,a:9000", "database-name", "default")},
		"spelling of paths":         {files("lake/x"), files("./lake//x/")},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %q and %q", what, pair[0], pair[1])
		}
	}
	for what, pair := range map[string][2][]string{
		"another name":              {hive("t"), hive("u")},
		"another database":          {hive("t"), hive("t", "database-name", "d")},
		"another metastore":         {hive("t"), hive("t", "hive.metastore.uris", "thrift://c:9083")},
		"another ClickHouse table":  {click(), click("table-name", "u")},
		"case of ClickHouse's name": {click(), click("table-name", "T")},
		"another ClickHouse server": {click(), click("url", "clickhouse://a:9000")},
		"another cluster":           {files("hdfs://a/x"), files("hdfs://b/x")},
	} {
		if slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: both are at %q", what, pair[0])
		}
	}
	side := hive("t", "sink.late-data", "side-table", "sink.late-data.table-name", "Late", "sink.partition-commit.policy.kind", "metastore")
	if late := hive("late"); len(side) != 2 || side[1] != late[0] {
		t.Errorf("late rows go to %q, not %q", side, late)
	}
}

// TestHiveStandbyNeedsItsPath: a standby beside no directory would be passed over.
func TestHiveStandbyNeedsItsPath(t *testing.T) {
	c, _ := registry(t, all.Deps{}).Lookup("hive")
	with := map[string]string{"connector": "hive", "hive.metastore.uris": "thrift://a:9083", "hdfs.standby": "hdfs://b/x", "sink.partition-commit.policy.kind": "metastore"}
	if _, errs := c.Spec().Resolve(with); len(errs) != 1 || errs[0].Key != "path" {
		t.Errorf("without a path: %v", errs)
	}
	with["path"] = "hdfs://a/x"
	if _, errs := c.Spec().Resolve(with); len(errs) > 0 {
		t.Errorf("with a path: %v", errs)
	}
}
