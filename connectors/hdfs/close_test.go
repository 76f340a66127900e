package hdfs

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/colinmarc/hdfs/v2"
)

// closer answers Close by a list, the last answer for ever.
type closer struct {
	answers []error
	calls   int
}

func (c *closer) Close() error {
	c.calls++
	err := c.answers[0]
	if len(c.answers) > 1 {
		c.answers = c.answers[1:]
	}
	return err
}

// TestCloseIsRepeatedAfterOneErrorAlone: "replication in progress" is asked again until
// the NameNode has all blocks, or patience is over; after any other error a second Close
// would commit a length that nobody confirmed.
func TestCloseIsRepeatedAfterOneErrorAlone(t *testing.T) {
	replicating := &os.PathError{Op: "close", Path: "/f", Err: hdfs.ErrReplicating}
	for what, c := range map[string]struct {
		answers []error
		calls   int // 0: several
		kind    Kind
		fails   bool
	}{
		"at once":           {[]error{nil}, 1, 0, false},
		"three times no":    {[]error{replicating, replicating, replicating, nil}, 4, 0, false},
		"another error":     {[]error{io.ErrUnexpectedEOF, nil}, 1, 0, true},
		"no, then an error": {[]error{replicating, io.ErrUnexpectedEOF, nil}, 2, 0, true},
		"never":             {[]error{replicating}, 0, NoDataNodes, true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, began := &closer{answers: c.answers}, time.Now()
				err := complete(t.Context(), context.Background(), w, 15*time.Second)
				if (err != nil) != c.fails || c.calls > 0 && w.calls != c.calls {
					t.Errorf("%d calls: %v", w.calls, err)
				}
				var e *Error
				if c.kind != 0 && (!errors.As(err, &e) || e.Kind != c.kind) {
					t.Errorf("the error is %v", err)
				}
				if took := time.Since(began); c.calls == 0 && (took < 15*time.Second || took > 16*time.Second || w.calls < 20) {
					t.Errorf("%d calls in %v", w.calls, took)
				}
			})
		})
	}
}
