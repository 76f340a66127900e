package sqltest

import (
	"os"
	"strings"
	"testing"
)

// Blocks compares the answer to each SQL text of a file with the one that stands
// there: blocks of SQL, "----" and the answer, between "====". With update it writes
// the answers instead. White space around an answer does not count.
func Blocks(t *testing.T, file string, update bool, answer func(sql string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n====\n") {
		sql, want, _ := strings.Cut(block, "\n----\n")
		got := strings.TrimSpace(answer(sql))
		if got != strings.TrimSpace(want) && !update {
			t.Errorf("%s\ngot\n%s\nwant\n%s", sql, got, want)
		}
		out = append(out, sql+"\n----\n"+got+"\n")
	}
	if !update {
		return
	}
	if err := os.WriteFile(file, []byte(strings.Join(out, "====\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}
