package control

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// RunJob asks the owner to run a job.
type RunJob struct {
	// Files are the job's SQL files, DDL first, the job file last; Path is the
	// absolute path of the latter.
	Files []SQLFile `json:"files"`
	Path  string    `json:"path"`
	// Directory is what relative paths in the files mean.
	Directory string `json:"directory"`
	// Set are the --set values, Env what the files take from the environment, secrets
	// among it. Env is kept in memory only.
	Set          map[string]string `json:"set,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Fresh        bool              `json:"fresh,omitempty"`
	Append       bool              `json:"append,omitempty"`
	Adopt        bool              `json:"adopt,omitempty"`
	DiscardAfter uint64            `json:"discard_after,omitempty"`
	// MaxDead ends the run when more rows are dead; negative: never.
	MaxDead int64 `json:"max_dead"`
}

// RunEvent is something that happened to a job while it runs: one of the fields is
// set.
type RunEvent struct {
	// Notice is a step of the start; Findings are warnings, rendered for people.
	Notice   string `json:"notice,omitempty"`
	Findings string `json:"findings,omitempty"`
	// Started comes once, when the job runs or has nothing to do.
	Started *RunStarted `json:"started,omitempty"`
	// Progress comes every second, and once more at the end with Report.
	Progress *Progress `json:"progress,omitempty"`
	Report   *Report   `json:"report,omitempty"`
}

// RunStarted says what became of the request.
type RunStarted struct {
	Job string `json:"job"`
	// Finished: the job had ended before; nothing runs.
	Finished bool `json:"finished,omitempty"`
}

// Progress is a job at one moment.
type Progress struct {
	Job           string        `json:"job"`
	Seconds       float64       `json:"seconds"`
	RowsPerSecond float64       `json:"rows_per_second"`
	Read          int64         `json:"read"`
	Written       int64         `json:"written"`
	Folded        int64         `json:"folded"`
	Filtered      int64         `json:"filtered"`
	Dead          int64         `json:"dead"`
	Late          int64         `json:"late"`
	Open          int64         `json:"open"`
	Lag           int64         `json:"lag_records"`
	NextFileIn    time.Duration `json:"next_file_in_ns"`
	Recovering    bool          `json:"recovering"`
	// Trouble names lanes that do not run, with why.
	Trouble []string `json:"trouble,omitempty"`
}

// Report is `run --report`.
type Report struct {
	Job         string        `json:"job"`
	Seconds     float64       `json:"seconds"`
	CPUSeconds  float64       `json:"cpu_seconds"`
	MaxRSSBytes int64         `json:"max_rss_bytes"`
	Tables      []TableReport `json:"tables"`
	Ledger      []TableLedger `json:"ledger"`
}

// TableReport is what one table got.
type TableReport struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	Files int64  `json:"files"`
}

// Run implements API.
func (c *Client) Run(ctx context.Context, req RunJob, f func(*RunEvent) error) error {
	return c.frames(ctx, "/v1/job/run", req, func(b []byte) error {
		var e RunEvent
		if err := json.Unmarshal(b, &e); err != nil {
			return fmt.Errorf("%w: %w", ErrBroken, err)
		}
		return f(&e)
	})
}

// StopJob implements API.
func (c *Client) StopJob(ctx context.Context, job string) error {
	_, err := call[struct{}](ctx, c, "/v1/job/stop", job)
	return err
}
