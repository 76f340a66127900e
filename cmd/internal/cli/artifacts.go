package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

func fileCommand(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "file",
		Short: "look at files that jobs wrote",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "verify PATH...",
		Short: "read Parquet files back with a second, independent reader",
		Long: `Reads every value of Parquet files with another library than the one that wrote
them, and compares counts and statistics with what is there. A path is a file or
a folder, whose whole tree is read. Exit 1 when a file is not as it should be.`,
		Example: "  millrace file verify lake/",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.fileVerify(cmd, args) },
	})
	return cmd
}

type fileReport struct {
	Path     string   `json:"path"`
	OK       bool     `json:"ok"`
	Rows     int64    `json:"rows"`
	Bytes    int64    `json:"bytes"`
	Problems []string `json:"problems,omitempty"`
}

func (e *Env) fileVerify(cmd *cobra.Command, args []string) error {
	var paths []string
	for _, a := range args {
		found, err := parquetFiles(a)
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		return usage("no .parquet file in %s", strings.Join(args, " "))
	}
	reports := make([]fileReport, 0, len(paths))
	bad := 0
	var rows, bytes int64
	for _, p := range paths {
		r, err := verifyFile(p)
		if err != nil {
			return exitcode.With(exitcode.Environment, err)
		}
		if !r.OK {
			bad++
		}
		rows, bytes = rows+r.Rows, bytes+r.Bytes
		reports = append(reports, r)
	}
	summary := fmt.Sprintf("%s, %s, %s: all as they should be", output.Count(len(reports), "file"), output.Count(rows, "row"), output.Size(bytes))
	if bad > 0 {
		summary = fmt.Sprintf("%d of %d files are not as they should be", bad, len(reports))
	}
	f, err := e.format()
	if err != nil {
		return err
	}
	if f == output.JSON {
		if err := output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: bad == 0, Summary: summary, Result: map[string]any{"files": reports}}); err != nil {
			return err
		}
	} else {
		for _, r := range reports {
			for _, p := range r.Problems {
				fmt.Fprintf(e.Stdout, "%s: %s\n", r.Path, p)
			}
		}
		fmt.Fprintln(e.Stdout, summary)
	}
	if bad > 0 {
		return exitcode.Printed(exitcode.Failed, errors.New(summary))
	}
	return nil
}

// parquetFiles are the Parquet files below a path, staging folders left out.
func parquetFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage("no file or folder %s", path)
	}
	if err != nil {
		return nil, exitcode.With(exitcode.Environment, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var out []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != path && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(p, ".parquet") && !strings.HasPrefix(d.Name(), ".") {
			out = append(out, p)
		}
		return nil
	})
	return out, exitcode.With(exitcode.Environment, err)
}

func verifyFile(path string) (fileReport, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileReport{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileReport{}, err
	}
	rep, err := parquetfmt.Verify(f, info.Size())
	if err != nil {
		return fileReport{}, fmt.Errorf("%s: %w", path, err)
	}
	out := fileReport{Path: path, OK: rep.OK(), Rows: rep.Rows, Bytes: info.Size()}
	for _, p := range rep.Problems {
		out.Problems = append(out.Problems, fmt.Sprint(p))
	}
	return out, nil
}

func logCommand(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "look after the log store's files",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var repair bool
	verify := &cobra.Command{
		Use:   "verify",
		Short: "scan the log store's files and report damage by topic, partition and offsets",
		Long: `Scans every file of the log store in --data, which no process may own meanwhile.
Exit 1 when something is damaged. --repair takes damaged records out, so that
readers go on behind them; what is taken out is named.`,
		Example: "  millrace log verify --data millrace-data",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.logVerify(cmd.Context(), cmd, repair)
		},
	}
	verify.Flags().BoolVar(&repair, "repair", false, "take damaged records out")
	cmd.AddCommand(verify)
	return cmd
}

func (e *Env) logVerify(ctx context.Context, cmd *cobra.Command, repair bool) error {
	dir := filepath.Join(e.data, "log")
	if _, err := os.Stat(dir); err != nil {
		return usage("there is no log store in the data directory %s", e.data)
	}
	rep, err := topiclog.Verify(ctx, topiclog.Options{FS: vfs.NewOS(), Dir: dir}, repair)
	var owned *topiclog.OwnedError
	if errors.As(err, &owned) {
		return exitcode.With(exitcode.Environment, fmt.Errorf("process %d owns the data directory %s; stop it first", owned.PID, e.data))
	}
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	damage := make([]string, 0, len(rep.Damage))
	for _, d := range rep.Damage {
		damage = append(damage, d.String())
	}
	scanned := fmt.Sprintf("%d segments with %d batches, %d batches in journals", rep.Segments, rep.Batches, rep.Recovery.Batches)
	summary := scanned + ": no damage"
	if len(damage) > 0 {
		summary = fmt.Sprintf("%s: %d damaged places, %d offsets lost", scanned, len(damage), rep.Lost)
	}
	if rep.Repaired > 0 {
		summary += fmt.Sprintf("; %d segments rewritten", rep.Repaired)
	}
	f, err := e.format()
	if err != nil {
		return err
	}
	if f == output.JSON {
		err = output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: len(damage) == 0, Summary: summary, Result: map[string]any{"segments": rep.Segments, "batches": rep.Batches, "lost": rep.Lost, "repaired": rep.Repaired, "damage": damage}})
	} else {
		for _, d := range damage {
			fmt.Fprintln(e.Stdout, d)
		}
		_, err = fmt.Fprintln(e.Stdout, summary)
	}
	if err != nil {
		return err
	}
	if len(damage) > 0 {
		return exitcode.Printed(exitcode.Failed, errors.New(summary))
	}
	return nil
}
