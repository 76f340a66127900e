package hive

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/connectors/hive/metastore"
)

// normal is a location in one spelling: without a trailing slash, local ones as
// file:/path. Hadoop writes file:/a, file:///a and /a for one directory.
func normal(location string) string {
	scheme, rest, ok := strings.Cut(location, ":")
	if !ok || strings.ContainsRune(scheme, '/') {
		scheme, rest = "file", location
	}
	authority := ""
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if i := strings.IndexByte(after, '/'); i >= 0 {
			authority, rest = after[:i], after[i:]
		} else {
			authority, rest = after, "/"
		}
	}
	if scheme == "file" {
		authority = ""
	}
	for strings.Contains(rest, "//") {
		rest = strings.ReplaceAll(rest, "//", "/")
	}
	rest = "/" + strings.Trim(rest, "/")
	if authority != "" {
		rest = "//" + authority + rest
	}
	return strings.ToLower(scheme) + ":" + rest
}

// tableLocation is the directory of a table, also when the table has no partitions
// and its entry points to a version of its content.
func tableLocation(t *metastore.Table) string {
	n := normal(t.Storage.Location)
	if i := strings.LastIndexByte(n, '/'); len(t.PartitionKeys) == 0 && i > 0 && t.Parameters[paramVersion] != "" {
		if root, ok := strings.CutSuffix(n[:i], "/.versions"); ok {
			return root
		}
	}
	return n
}

// filePath is a location as connector filesystem spells it.
func filePath(location string) (string, error) {
	if location == "" {
		return "", fmt.Errorf("the metastore gives no location")
	}
	n := normal(location)
	if local, ok := strings.CutPrefix(n, "file:"); ok {
		return local, nil
	}
	if !strings.Contains(n, "://") {
		return "", fmt.Errorf("location %s names no host", location)
	}
	return n, nil
}

// locationOf is a path of option 'path' as the metastore spells it.
func locationOf(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if scheme, _, ok := strings.Cut(path, "://"); ok && scheme != "file" {
		return normal(path), nil
	}
	abs, err := filepath.Abs(strings.TrimPrefix(path, "file://"))
	if err != nil {
		return "", fmt.Errorf("finding the directory %s: %w", path, err)
	}
	return normal(abs), nil
}
