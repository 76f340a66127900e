package hive

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// places are the metastore's tables that a table is written into.
func places(table string, v connector.Values) []connector.Place {
	uris := strings.Split(v.String(keyURIs), ",")
	for i, u := range uris {
		uris[i] = strings.TrimSpace(u)
	}
	slices.Sort(uris)
	at := func(name, option string) connector.Place {
		return connector.Place{At: strings.Join(uris, ",") + " " + strings.ToLower(v.String(keyDatabase)+" "+name), Option: option}
	}
	out := []connector.Place{at(tableName(table, v), keyTable)}
	if late := v.String(keyLateTable); late != "" {
		out = append(out, at(late, keyLateTable))
	}
	return out
}

// tableName is the metastore's name of a table, as it is spelled.
func tableName(table string, v connector.Values) string {
	if name := v.String(keyTable); name != "" {
		return name
	}
	// A name of several parts is that of a catalog; the last is the table's.
	return table[strings.LastIndexByte(table, '.')+1:]
}
