package nexmark

import (
	"embed"
	"fmt"
)

//go:embed source/*.sql views.sql generate.sql queries/*.sql
var files embed.FS

// Files are the SQL files.
func Files() embed.FS { return files }

// Queries is how many there are: q0 to q23.
const Queries = 24

// Query is the text of a query's file.
func Query(n int) (string, error) {
	b, err := files.ReadFile(fmt.Sprintf("queries/q%d.sql", n))
	return string(b), err
}
