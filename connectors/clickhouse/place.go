package clickhouse

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// places are the server's tables that a table is written into.
func places(_ string, v connector.Values) []connector.Place {
	o, err := optionsOf(v)
	if err != nil {
		return nil // it is said elsewhere
	}
	hosts := slices.Clone(o.addr.hosts)
	slices.Sort(hosts)
	return []connector.Place{{At: strings.Join(hosts, ",") + " " + o.database + " " + o.table, Option: keyTable}}
}
