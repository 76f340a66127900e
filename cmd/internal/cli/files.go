package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/jobs/control"
)

// jobFlags are the flags of every command that takes SQL files.
type jobFlags struct {
	ddl []string
	set []string
}

func (j *jobFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&j.ddl, "file", "f", nil, "DDL file or folder at `PATH`, read before the job; may be repeated")
	cmd.Flags().StringArrayVar(&j.set, "set", nil, "`NAME=VALUE` for ${NAME} in the files; may be repeated")
}

// variables are the --set values.
func (j *jobFlags) variables() (map[string]string, error) { return pairs("--set", j.set) }

// read reads the DDL files and then the job files.
func (j *jobFlags) read(jobs []string) ([]control.SQLFile, error) {
	var files []control.SQLFile
	seen := map[string]bool{}
	for _, p := range append(append([]string{}, j.ddl...), jobs...) {
		names, err := sqlFiles(p)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, exitcode.With(exitcode.Input, err)
			}
			files = append(files, control.SQLFile{Name: name, Text: string(text)})
		}
	}
	return files, nil
}

// sqlFiles are the SQL files that a path names: the file itself, the *.sql
// files of a folder, those of its whole tree for "dir/...".
func sqlFiles(path string) ([]string, error) {
	dir, deep := strings.CutSuffix(path, "...")
	if deep {
		path = filepath.Clean(dir)
		if dir == "" {
			path = "."
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usage("no file or folder %s", path)
		}
		return nil, exitcode.With(exitcode.Environment, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var names []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != path && !deep {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(p, ".sql") {
			names = append(names, p)
		}
		return nil
	})
	if err != nil {
		return nil, exitcode.With(exitcode.Environment, err)
	}
	if len(names) == 0 {
		return nil, usage("no .sql file in %s", path)
	}
	sort.Strings(names)
	return names, nil
}

// readAll reads a query from a file or stdin ("-").
func (e *Env) readAll(name string) (control.SQLFile, error) {
	if name == "-" {
		b, err := io.ReadAll(e.Stdin)
		if err != nil {
			return control.SQLFile{}, exitcode.With(exitcode.Environment, fmt.Errorf("reading stdin: %w", err))
		}
		return control.SQLFile{Name: "stdin", Text: string(b)}, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return control.SQLFile{}, exitcode.With(exitcode.Input, err)
	}
	return control.SQLFile{Name: name, Text: string(b)}, nil
}
