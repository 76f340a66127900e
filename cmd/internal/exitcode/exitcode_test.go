package exitcode

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want Code
	}{
		{"nothing", nil, OK},
		{"plain", errors.New("x"), Failed},
		{"input", With(Input, errors.New("x")), Input},
		{"input wrapped again", fmt.Errorf("checking: %w", With(Input, errors.New("x"))), Input},
		{"environment", With(Environment, errors.New("x")), Environment},
		{"partial", Printed(Partial, errors.New("x")), Partial},
		{"full disk", fmt.Errorf("writing: %w", syscall.ENOSPC), Environment},
		{"no such file", &fs.PathError{Op: "open", Path: "a", Err: fs.ErrNotExist}, Environment},
		{"an attached code beats the cause", With(Input, &fs.PathError{Op: "open", Path: "a", Err: fs.ErrNotExist}), Input},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
	if With(Input, nil) != nil {
		t.Error("With(nil) is not nil")
	}
	if !IsSilent(fmt.Errorf("a: %w", Printed(Failed, errors.New("b")))) || IsSilent(errors.New("b")) {
		t.Error("IsSilent")
	}
}
