package tidy

import (
	"strings"
	"testing"
)

// below lists, for each layer, the layers it may import besides itself.
var below = map[string][]string{
	"cmd":        {"jobs", "sql", "connectors", "runtime", "storage", "examples"},
	"examples":   {"jobs", "sql", "connectors", "runtime", "storage"},
	"jobs":       {"sql", "connectors", "runtime", "storage"},
	"sql":        {"runtime", "storage"},
	"connectors": {"runtime", "storage"},
	"runtime":    {"storage"},
	"storage":    {},
}

func layer(rel string) string {
	l, _, _ := strings.Cut(rel, "/")
	return l
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestLayersImportDownwards(t *testing.T) {
	for _, p := range packages(t) {
		from := layer(p.rel())
		if _, known := below[from]; !known {
			t.Errorf("%s: the top level is fixed; packages live in %v", p.rel(), []string{"cmd", "examples", "jobs", "sql", "connectors", "runtime", "storage"})
			continue
		}
		if p.rel() == "sql" || p.rel() == "runtime" || p.rel() == "storage" || p.rel() == "connectors" {
			t.Errorf("%s: no package in a layer's root folder: its name would shadow a standard one or hide what it is for", p.rel())
		}
		for _, imp := range p.Imports {
			rel, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			to := layer(rel)
			if to != from && !contains(below[from], to) {
				t.Errorf("%s imports %s: imports go down only, cmd,examples > jobs > (sql | connectors) > runtime > storage", p.rel(), rel)
			}
			if from == "runtime" && to == "storage" && rel != "storage/vfs" {
				t.Errorf("%s imports %s: of storage the runtime may use vfs alone; take an interface from above", p.rel(), rel)
			}
			if rel == "connectors/all" && from != "cmd" && from != "examples" {
				t.Errorf("%s imports connectors/all: only cmd and examples wire connectors", p.rel())
			}
		}
	}
}

// confined says where a third-party package may be imported by code that is
// no test: the paths of ours that may, as prefixes.
var confined = map[string][]string{
	"github.com/twmb/franz-go/pkg/kgo":    {"connectors/kafka", "cmd/internal/kafkabench", "examples/github-events/bench"},
	"github.com/twmb/franz-go/pkg/kadm":   {"connectors/kafka", "cmd/internal/kafkabench"},
	"github.com/twmb/franz-go/pkg/kmsg":   {"connectors/kafka", "storage/kafkaproto", "cmd/internal/kafkabench"},
	"github.com/ClickHouse/":              {"connectors/clickhouse"},
	"github.com/colinmarc/hdfs":           {"connectors/hdfs"},
	"github.com/jcmturner/gokrb5":         {"connectors/hdfs"},
	"github.com/parquet-go/":              {"connectors/format/parquetfmt"},
	"github.com/xitongsys/":               {"connectors/format/parquetfmt"},
	"github.com/apache/thrift":            {"connectors/hive"},
	"github.com/redis/":                   {"connectors/redis"},
	"github.com/cockroachdb/pebble":       {"storage", "runtime/state"},
	"github.com/apache/arrow/":            {"runtime", "sql/types", "sql/lower"},
	"github.com/spf13/cobra":              {"cmd"},
	"github.com/prometheus/client_golang": {"cmd", "jobs", "runtime", "storage"},
	"github.com/valyala/fastjson":         {},
}

func TestThirdPartyClientsAreConfined(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			for prefix, allowed := range confined {
				if !strings.HasPrefix(imp, prefix) {
					continue
				}
				ok := false
				for _, a := range allowed {
					ok = ok || p.rel() == a || strings.HasPrefix(p.rel(), a+"/")
				}
				if !ok {
					t.Errorf("%s imports %s, which is confined to %v: put it behind that package's API", p.rel(), imp, allowed)
				}
			}
		}
	}
}
