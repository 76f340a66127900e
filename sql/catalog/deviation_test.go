package catalog

import "testing"

// TestDiffersFromFlinkDefaults: Flink starts without checkpoints, and a silent
// partition holds windows back for ever.
func TestDiffersFromFlinkDefaults(t *testing.T) {
	s := NewSettings()
	for key, want := range map[string]string{
		"execution.checkpointing.interval":     "10 s",
		"execution.checkpointing.num-retained": "5",
		"table.exec.source.idle-timeout":       "60 s",
	} {
		if got := s.String(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}
