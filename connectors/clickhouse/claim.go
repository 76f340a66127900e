package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/millrace/millrace/runtime/connector"
)

// A table that is written by method replace is one job's. The server itself says whose:
//
//	CREATE TABLE _mr_owner_<table> (`job_<uuid>` UInt8) ENGINE = TinyLog
//
// Its one column is the record, so that the statement makes it whole or finds another
// one. It lies on the server that the job is connected to: of a replicated table each
// replica has one of its own, made when a job meets that replica first.

const (
	ownerPrefix = "_mr_owner_"
	ownerColumn = "job_"
)

// tableExists is the server's code for a name that is taken.
const tableExists = 57

// claim makes the table this job's, or says whose it is.
func (s *sink) claim(ctx context.Context) error {
	mine := s.owner.Job.String()
	for range 3 {
		owner, err := s.ownerNow(ctx)
		if err != nil || owner == mine {
			return err
		}
		if owner != "" {
			if !s.owner.Adopt {
				return &connector.OwnedError{Location: s.location() + ", which is written with '" + keyMethod + "' = '" + methodReplace + "',", Owner: "job " + owner}
			}
			if err := s.disown(ctx); err != nil {
				return err
			}
		}
		err = s.server.exec(ctx, "CREATE TABLE "+s.ownerTable()+" ("+quoteName(ownerColumn+mine)+" UInt8) ENGINE = TinyLog")
		var e *ch.Exception
		if err != nil && !(errors.As(err, &e) && e.Code == tableExists) {
			return fmt.Errorf("claiming table %s: %w", s.server.name(), err)
		}
		// Somebody may have been faster.
	}
	return s.claimed(ctx)
}

// claimed returns an error unless the table is this job's.
func (s *sink) claimed(ctx context.Context) error {
	owner, err := s.ownerNow(ctx)
	switch {
	case err != nil:
		return err
	case owner == "":
		// Another replica, or somebody dropped the record.
		return s.claim(ctx)
	case owner != s.owner.Job.String():
		return fmt.Errorf("%w: table %s was taken over by job %s", connector.ErrFenced, s.location(), owner)
	}
	return nil
}

// ownerNow is the job whose the table is; "": nobody's yet.
func (s *sink) ownerNow(ctx context.Context) (string, error) {
	names, err := s.server.strings(ctx, "SELECT name FROM system.columns WHERE database = "+quoteText(s.opts.database)+" AND table = "+quoteText(ownerPrefix+s.opts.table))
	if err != nil {
		return "", fmt.Errorf("asking whose table %s is: %w", s.server.name(), err)
	}
	if len(names) == 0 {
		return "", nil
	}
	return strings.TrimPrefix(names[0], ownerColumn), nil
}

// disown takes the table from the job that has it: its record, and all stages, so that
// an ALTER of a process that hangs finds none.
func (s *sink) disown(ctx context.Context) error {
	if err := s.server.exec(ctx, "DROP TABLE IF EXISTS "+s.ownerTable()); err != nil {
		return fmt.Errorf("taking table %s over: %w", s.server.name(), err)
	}
	return s.dropStagesOf(ctx, "")
}

func (s *sink) ownerTable() string {
	return quoteName(s.opts.database) + "." + quoteName(ownerPrefix+s.opts.table)
}

// stagePrefix starts the names of tables that a content is loaded into.
const stagePrefix = "_mr_stage_"

// stageName is a table that nobody else has, and no query of before.
func (s *sink) stageName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	return quoteName(s.opts.database) + "." + quoteName(fmt.Sprintf("%s%s_%s_e%d_%d", stagePrefix, s.opts.table, s.stageJob(), s.staging.Epoch(), s.tries))
}

// stageJob is what the names of this job's stages have of it.
func (s *sink) stageJob() string { return s.owner.Job.String()[:8] }

// unquoted is the table's name of a quoted one.
func unquoted(name string) string {
	_, table, _ := strings.Cut(name, ".`")
	return strings.NewReplacer("\\`", "`", `\\`, `\`).Replace(strings.TrimSuffix(table, "`"))
}

// dropStages drops what earlier tries, and earlier processes of the job, have left.
func (s *sink) dropStages(ctx context.Context) error { return s.dropStagesOf(ctx, s.stageJob()) }

// dropStagesOf drops the stages of a job, "": of all.
func (s *sink) dropStagesOf(ctx context.Context, job string) error {
	prefix := stagePrefix + s.opts.table + "_"
	names, err := s.server.strings(ctx, "SELECT name FROM system.tables WHERE database = "+quoteText(s.opts.database)+" AND startsWith(name, "+quoteText(prefix+job)+")")
	if err != nil {
		return fmt.Errorf("looking for tables that were left: %w", err)
	}
	for _, n := range names {
		if !stageOf.MatchString(strings.TrimPrefix(n, prefix)) {
			continue // of a table whose name begins like this one's
		}
		if err := s.server.exec(ctx, "DROP TABLE IF EXISTS "+quoteName(s.opts.database)+"."+quoteName(n)); err != nil {
			return fmt.Errorf("dropping %s: %w", n, err)
		}
	}
	return nil
}

var stageOf = regexp.MustCompile(`^[0-9a-f]{8}_e\d+_\d+$`)
