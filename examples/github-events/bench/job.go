package main

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	githubevents "github.com/millrace/millrace/examples/github-events"
)

// rowGroup is the size of a row group, in bytes; it is Millrace's default. Flink's,
// 128 MB, makes it hold 64 open files' worth of them.
const rowGroup = 16 << 20

var variable = regexp.MustCompile(`\$\{(\w+):-[^}]*\}`)

// jobText is the job's SQL with topics of a Kafka cluster in place of the log's, and
// without its wide table; sources are the topics' tables.
func jobText(brokers string) (sources, job string, err error) {
	files := githubevents.Files()
	names, err := fs.Glob(files, "ddl/*.sql")
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return "", "", err
		}
		b.Write(text)
	}
	sources = strings.ReplaceAll(b.String(), "'connector' = 'log',",
		"'connector' = 'kafka', 'properties.bootstrap.servers' = '"+brokers+"', 'properties.group.id' = 'bench',")
	text, err := files.ReadFile("job.sql")
	if err != nil {
		return "", "", err
	}
	job, _, found := strings.Cut(string(text), "-- What each actor did in each hour")
	if !found || !strings.Contains(job, "'parquet.compression' = 'ZSTD',") {
		return "", "", fmt.Errorf("job.sql has another form than this command knows")
	}
	return sources, job, nil
}

// withRowGroups says how large they are, and what else the format is told.
func withRowGroups(job, size, more string) string {
	return strings.ReplaceAll(job, "'parquet.compression' = 'ZSTD',", "'parquet.compression' = 'ZSTD', 'parquet.block.size' = '"+size+"',"+more)
}

// flinkSQL is the same for Flink: its default form of timestamps is another one, and
// one statement holds all INSERTs, so that they are one job.
func flinkSQL(sources, job, out string) []string {
	text := sources + withRowGroups(job, fmt.Sprint(rowGroup), " 'parquet.write.int64.timestamp' = 'true', 'parquet.timestamp.time.unit' = 'micros', 'parquet.utc-timezone' = 'true',")
	values := map[string]string{"OUT": out, "BOUNDED": "latest-offset"}
	text = variable.ReplaceAllStringFunc(text, func(s string) string { return values[variable.FindStringSubmatch(s)[1]] })
	var statements []string
	all := "EXECUTE STATEMENT SET BEGIN\n"
	for _, st := range strings.SplitAfter(text, ";\n") {
		st = withoutComments(st)
		switch {
		case st == "", strings.HasPrefix(st, "SET "): // settings are the session's
		case strings.HasPrefix(st, "INSERT "):
			all += st + "\n"
		default:
			statements = append(statements, strings.TrimSuffix(st, ";"))
		}
	}
	return append(statements, all+"END")
}

func withoutComments(sql string) string {
	var b strings.Builder
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}
