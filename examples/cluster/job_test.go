package main

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/all"
	githubevents "github.com/millrace/millrace/examples/github-events"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/sql/compile"
)

// TestJobsCompile: with other WITH clauses the job is still a job, of 17 tables.
func TestJobsCompile(t *testing.T) {
	var files []control.SQLFile
	err := fs.WalkDir(githubevents.Files(), "ddl", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := githubevents.Files().ReadFile(name)
		files = append(files, control.SQLFile{Name: name, Text: string(b)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := githubevents.Files().ReadFile("job.sql")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tablesOf(string(b))); n != len(githubevents.Topics)+2 {
		t.Errorf("%d tables", n)
	}
	reg, err := all.Registry(all.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	for connector, text := range map[string]string{
		"hive":       intoHive(string(b), "thrift://127.0.0.1:9083"),
		"clickhouse": intoClickHouse(string(b), "clickhouse://127.0.0.1:9000"),
	} {
		if strings.Contains(text, "'connector' = 'filesystem'") || !strings.Contains(text, "'github-"+connector+"'") {
			t.Errorf("%s: not everything was replaced", connector)
		}
		job := append(files[:len(files):len(files)], control.SQLFile{Name: "job.sql", Text: text})
		if err := spec.Compile(job, spec.Vars{}, compile.Options{Registry: reg}).Err(); err != nil {
			t.Errorf("%s: %v", connector, err)
		}
	}
}
