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
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				jobs, err := api.Jobs(ctx)
				if err != nil {
					return err
				}
				return e.result(cmd, fmt.Sprintf("%d jobs", len(jobs)), map[string]any{"jobs": jobs}, func(r *output.Rows) error {
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
							when = "in " + max(time.Until(*next), 0).Round(time.Second).String()
						}
						if err := r.Write(output.Text(j.Name), output.Text(j.State), output.Number(len(j.Tables)), output.Number(lag), output.Number(open), output.Text(when), output.Number(dead)); err != nil {
							return err
						}
					}
					return nil
				}, "JOB", "STATE", "TABLES", "LAG", "OPEN ROWS", "NEXT FILE", "DEAD")
			})
		},
	}
}

func jobsRoll(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "roll JOB",
		Short: "commit now what waits in open files",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				r, err := api.Roll(ctx, args[0])
				if err != nil {
					return err
				}
				return e.done(cmd, fmt.Sprintf("job %s: %d rows in %d files committed", r.Job, r.Rows, r.Files), r)
			})
		},
	}
}

func jobsResume(e *Env) *cobra.Command {
	var req control.ResumeLane
	cmd := &cobra.Command{
		Use:   "resume JOB --lane LANE",
		Short: "let a stopped or quarantined lane go on",
		Args:  cobra.ExactArgs(1),
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
	cmd.Flags().StringVar(&req.Lane, "lane", "", "the lane's name")
	cmd.Flags().BoolVar(&req.SkipLost, "skip-lost", false, "go on behind records that are gone, and count them as lost")
	return cmd
}
