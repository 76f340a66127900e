package filesystem

import (
	"path"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// places are the directories that a table is written into.
func places(_ string, v connector.Values) []connector.Place {
	out := []connector.Place{{At: cleanPath(v.String(keyPath)), Option: keyPath}}
	if late := v.String(keyLatePath); late != "" {
		out = append(out, connector.Place{At: cleanPath(late), Option: keyLatePath})
	}
	return out
}

// cleanPath is a path in the form that equal ones have in common.
func cleanPath(p string) string {
	name, rest, ok := strings.Cut(p, "://")
	if !ok || name == "file" {
		return path.Clean(strings.TrimPrefix(p, "file://"))
	}
	return name + "://" + path.Clean(rest)
}
