package main

import (
	"regexp"
	"strings"
)

var (
	pathOfEventTable = regexp.MustCompile(`'path' = '\$\{OUT:-\./lake\}/(\w+)'\) LIKE`)
	withOfFiles      = regexp.MustCompile(`WITH \(\s*'connector' = 'filesystem',\s*'path' = '\$\{OUT:-\./lake\}/(\w+)'[^)]*\)`)
	insertedTable    = regexp.MustCompile("(?m)^INSERT INTO `?(\\w+)`?")
)

// intoHive makes the tables ones of a metastore, in the same directories.
func intoHive(sql, uri string) string {
	return strings.NewReplacer(
		"'github-events'", "'github-hive'",
		"'connector' = 'filesystem',", "'connector' = 'hive', 'hive.metastore.uris' = '"+uri+"', 'database-name' = '"+database+"', 'sink.create-table' = 'true',",
		"'sink.partition-commit.policy.kind' = 'success-file'", "'sink.partition-commit.policy.kind' = 'metastore,success-file'",
	).Replace(sql)
}

// intoClickHouse makes the tables ones of a ClickHouse server.
func intoClickHouse(sql, url string) string {
	sql = strings.Replace(sql, "'github-events'", "'github-clickhouse'", 1)
	sql = pathOfEventTable.ReplaceAllString(sql, "'table-name' = '$1') LIKE")
	return withOfFiles.ReplaceAllString(sql, "WITH ('connector' = 'clickhouse', 'url' = '"+url+"', 'table-name' = '$1', 'sink.create-table' = 'true')")
}

// tablesOf are the tables that the job writes; the wide table has no INSERT.
func tablesOf(sql string) []string {
	tables := []string{"actor_hour"}
	seen := map[string]bool{"actor_hour": true}
	for _, m := range insertedTable.FindAllStringSubmatch(sql, -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			tables = append(tables, m[1])
		}
	}
	return tables
}
