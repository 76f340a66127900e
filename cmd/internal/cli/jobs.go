package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/compile"
)

// compileRun is how run compiles, offline.
var compileRun = compile.Options{Mode: compile.ModeRun}

func jobsCommand(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "running jobs: list, commit now, let a stopped lane go on",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(jobsLs(e), jobsRoll(e), jobsResume(e))
	return cmd
}

func jobsLs(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "list the jobs of the data directory",
		Long: `Lists the jobs of the data directory. LAG counts records that are not read yet,
OPEN the rows that wait in files not committed yet, NEXT FILE says when the first of
these is due. Lanes that do not run, and tables whose partitions cannot be announced,
are named on stderr with the reason; -o json has every lane and table.`,
		Example: "  millrace jobs ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				jobs, err := api.Jobs(ctx)
				if err != nil {
					return err
				}
				return e.result(cmd, output.Count(len(jobs), "job"), map[string]any{"jobs": jobs}, func(r *output.Rows) error {
					for _, j := range jobs {
						var open, dead, lag int64
						var next *time.Time
						for _, t := range j.Tables {
							open, dead = open+t.OpenRows, dead+t.Dead
							if t.NextFile != nil && (next == nil || t.NextFile.Before(*next)) {
								next = t.NextFile
							}
						}
						for _, l := range j.Lanes {
							lag += l.Lag
						}
						when := ""
						if next != nil {
							when = "in " + output.Wait(time.Until(*next))
						}
						unread := output.Number(lag)
						if j.Started.IsZero() { // nobody looks at the topics
							unread = output.Cell{Text: "-", Right: true}
						}
						if err := r.Write(output.Text(j.Name), output.Text(j.State), output.Number(len(j.Tables)), unread, output.Number(open), output.Text(when), output.Number(dead)); err != nil {
							return err
						}
						for _, t := range j.Tables {
							if t.AnnounceError != "" {
								e.note("job %s: partitions of table %s are complete and cannot be announced, which is tried again: %s", j.Name, t.Table, t.AnnounceError)
							}
						}
						for _, s := range j.Stages {
							if s.SpilledBytes > 0 {
								e.note("job %s: %s has %s of state in memory and %s on disk", j.Name, s.Stage, output.Size(s.StateBytes), output.Size(s.SpilledBytes))
							}
						}
						for _, l := range j.Lanes {
							if l.Error != "" {
								e.note("job %s: lane %s is %s: %s\n  then: millrace jobs resume %s --lane %s", j.Name, l.Lane, l.State, l.Error, j.Name, l.Lane)
							}
						}
					}
					return nil
				}, "JOB", "STATE", "TABLES", "LAG", "OPEN", "NEXT FILE", "DEAD")
			})
		},
	}
}

func jobsRoll(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "roll JOB",
		Short: "commit now what waits in open files",
		Long: `Finishes the files that a running job has open and commits them, and returns when
that is done: their rows are then visible to readers.`,
		Example: "  millrace jobs roll github-events",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				r, err := api.Roll(ctx, args[0])
				if err != nil {
					return err
				}
				return e.done(cmd, fmt.Sprintf("job %s: %s, with the results of %s read, committed", r.Job, output.Count(r.Files, "file"), output.Count(r.Rows, "row")), r)
			})
		},
	}
}

func jobsResume(e *Env) *cobra.Command {
	var req control.ResumeLane
	cmd := &cobra.Command{
		Use:   "resume JOB --lane LANE",
		Short: "let a stopped or quarantined lane go on",
		Long: `A lane that fails again and again is quarantined and tried every ten minutes; one
that needs a decision is stopped. Resume tries it now. Two decisions: --skip-lost goes on
behind records that are gone from the topic, which are counted as lost; --rebuild
writes the rows of finished files again that have vanished before they were visible.`,
		Example: "  millrace jobs resume github-events --lane PushEvent",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Job = args[0]
			if req.Lane == "" {
				return usage("which lane? say --lane; see: millrace jobs ls -o json")
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				if err := api.ResumeLane(ctx, req); err != nil {
					return err
				}
				return e.done(cmd, fmt.Sprintf("job %s: lane %s goes on", req.Job, req.Lane), req)
			})
		},
	}
	cmd.Flags().StringVar(&req.Lane, "lane", "", "the lane's `NAME`, as jobs ls -o json has it")
	cmd.Flags().BoolVar(&req.Rebuild, "rebuild", false, "write the rows of files that have vanished again")
	cmd.Flags().BoolVar(&req.SkipLost, "skip-lost", false, "go on behind records that are gone, and count them as lost")
	return cmd
}
