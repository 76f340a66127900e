package catalog

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

func lit(s string) *syntax.StringLit { return &syntax.StringLit{Value: s} }

// TestSettings: each key and value, and what is said.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		key, value string
		code       diag.Code // "" is fine
		stored     string
	}{
		{"parallelism.default", "4", "", "4"},
		{"parallelism.default", "0", diag.CodeBadOption, ""},
		{"parallelism.default", "four", diag.CodeBadOption, ""},
		{"execution.runtime-mode", "BATCH", "", "batch"},
		{"execution.runtime-mode", "automatic", diag.CodeBadOption, ""},
		{"table.local-time-zone", "Asia/Shanghai", "", "Asia/Shanghai"},
		{"table.local-time-zone", "GMT+08:00", "", "GMT+08:00"},
		{"table.local-time-zone", "PST", diag.CodeBadOption, ""},
		{"table.local-time-zone", "Local", diag.CodeBadOption, ""},
		{"table.exec.source.idle-timeout", "0 s", "", "0 s"},
		{"table.exec.sink.not-null-enforcer", "error", "", "ERROR"},
		{"millrace.sum-widening", "no", diag.CodeBadOption, ""},
		{"executon.checkpointing.interval", "1min", diag.CodeUnknownOption, ""},
		{"state.backend.type", "rocksdb", diag.CodeNoEffect, ""},
		{"table.optimizer.join-reorder-enabled", "true", diag.CodeNoEffect, ""},
		{"taskmanager.numberOfTaskSlots", "4", diag.CodeNoEffect, ""},
		{"table.exec.state.ttl", "1 h", "", "1 h"},
		{"table.exec.state.ttl", "an hour", diag.CodeBadOption, ""},
		{"window.late-rows", "drop", "", "drop"},
		{"window.late-rows", "late_clicks", "", "late_clicks"},
		{"table.exec.emit.early-fire.enabled", "true", "", "true"},
		{"table.exec.emit.early-fire.delay", "10 s", "", "10 s"},
		{"table.exec.emit.late-fire.delay", "-1 s", diag.CodeBadOption, ""},
		{"table.exec.emit.allow-lateness", "soon", diag.CodeBadOption, ""},
		{"table.exec.emit.allowed-lateness", "1 h", diag.CodeUnknownOption, ""},
		{"table.exec.mini-batch.enabled", "true", diag.CodeNoEffect, ""},
		{"table.exec.mini-batch.allow-latency", "5 s", diag.CodeNoEffect, ""},
		{"table.exec.mini-batch.size", "5000", diag.CodeNoEffect, ""},
		{"table.exec.mini-batch.latency", "5 s", diag.CodeUnknownOption, ""},
		{"engine.key", "7", "", "7"},
		{"engine.key", "x", diag.CodeBadOption, ""},
	} {
		s := NewSettings(connector.Option{Key: "engine.key", Type: connector.OptInt})
		var ds diag.List
		s.Set(lit(c.key), lit(c.value), &ds)
		var code diag.Code
		if len(ds) > 0 {
			code = ds[0].Code
		}
		value, _, _ := s.Lookup(c.key)
		if code != c.code || value != c.stored {
			t.Errorf("SET %q = %q: code %q, stored %q; want %q, %q", c.key, c.value, code, value, c.code, c.stored)
		}
	}
}

// TestStrictSettings: in a job file a job-wide key has one value; planner
// keys may change on the way.
func TestStrictSettings(t *testing.T) {
	s := NewSettings()
	s.Strict = true
	var ds diag.List
	s.Set(lit("pipeline.name"), lit("a"), &ds)
	s.Set(lit("pipeline.name"), lit("a"), &ds)
	s.Set(lit("table.local-time-zone"), lit("UTC"), &ds)
	s.Set(lit("table.local-time-zone"), lit("Asia/Tokyo"), &ds)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	s.Set(lit("pipeline.name"), lit("b"), &ds)
	if len(ds) != 1 || ds[0].Code != diag.CodeConflictingSetting {
		t.Errorf("got %v", ds)
	}
	if o := s.JobOptions(); o["pipeline.name"] != "a" || len(o) != 1 {
		t.Errorf("job options %v", o)
	}
	s.Reset(nil, &ds)
	if s.String("table.local-time-zone") != "UTC" || len(s.Rows()) != 0 {
		t.Error("RESET keeps values")
	}
}

// TestSettingsAreDeclaredOnce: no key twice, each with a text, none that is
// listed as without effect.
func TestSettingsAreDeclaredOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Known() {
		if seen[k.Key] {
			t.Errorf("%s is declared twice", k.Key)
		}
		seen[k.Key] = true
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s has no sentence of documentation", k.Key)
		}
		if noEffectSetting(k.Key) {
			t.Errorf("%s is known and listed as without effect", k.Key)
		}
	}
}
