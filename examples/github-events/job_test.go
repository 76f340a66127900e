package githubevents

import (
	"context"
	"testing"

	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/jobs/jobtest"
	"github.com/millrace/millrace/jobs/spec"
)

// TestJob runs job.test.yaml.
func TestJob(t *testing.T) {
	s, err := jobtest.Load("job.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reg, err := all.Registry(all.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	rs, err := jobtest.Run(context.Background(), s, jobtest.Options{Registry: reg, Vars: spec.Vars{}})
	if err != nil {
		t.Fatal(err)
	}
	if len(rs) < 5 {
		t.Errorf("%d tests", len(rs))
	}
	for _, r := range rs {
		if !r.OK {
			t.Errorf("%s:%d: %s: %+v", s.Name, r.Line, r.Name, r.Problems)
		}
	}
}
