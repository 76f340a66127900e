//go:build faults

package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/millrace/millrace/storage/vfs"
)

// filesystem is the operating system's with faults made on purpose. It is in
// no release: only a build with the tag faults has it.
//
// MILLRACE_FAULTS holds rules, separated by ';':
//
//	OPS:PATTERN:N[:ERROR[:COUNT]]  the N-th (from 0) and COUNT-1 further
//	                               operations fail; COUNT is 1 unless given, or 'all'
//	limit:BYTES                    no more than BYTES can be written
//	count:FILE                     at the end, write into FILE how many
//	                               operations were mutating
//
// OPS are names of operations joined by '+', or 'mutating', or 'any'. PATTERN is
// a glob for the base name; one with a '/' is a part of the path instead. ERROR
// is EIO unless given, ENOSPC, EROFS, EACCES; or KILL: the process gets SIGKILL
// instead of doing the operation; or HANG: the operation never returns.
func filesystem() (fsys vfs.FS, done func(), err error) {
	fsys, done = vfs.NewOS(), func() {}
	var rules faultRules
	for text := range strings.SplitSeq(os.Getenv("MILLRACE_FAULTS"), ";") {
		if text == "" {
			continue
		}
		switch verb, arg, _ := strings.Cut(text, ":"); verb {
		case "limit":
			n, err := strconv.ParseInt(arg, 10, 64)
			if err != nil {
				return nil, nil, fmt.Errorf("MILLRACE_FAULTS: %s: %w", text, err)
			}
			fsys = vfs.NewLimited(fsys, n)
		case "count":
			counter := &faultRule{kinds: vfs.OpsMutating, pattern: "*", from: -1}
			rules = append(rules, counter)
			done = func() {
				if err := os.WriteFile(arg, []byte(strconv.FormatInt(counter.seen.Load(), 10)), 0o644); err != nil {
					fmt.Fprintln(os.Stderr, "MILLRACE_FAULTS:", err)
				}
			}
		default:
			r, err := parseFaultRule(text)
			if err != nil {
				return nil, nil, fmt.Errorf("MILLRACE_FAULTS: %s: %w", text, err)
			}
			rules = append(rules, r)
		}
	}
	return vfs.NewFault(fsys, rules), done, nil
}

// What a rule does instead of returning an error.
var (
	errKill = errors.New("SIGKILL")
	errHang = errors.New("hang")
)

// faultRule fails some operations by their number.
type faultRule struct {
	kinds       vfs.OpKind
	pattern     string
	from, count int64
	err         error // or one of the two below
	seen        atomic.Int64
}

// faultRules are asked in order; all of them count.
type faultRules []*faultRule

// Inject implements vfs.Injector.
func (rs faultRules) Inject(op vfs.Op) error {
	var first error
	for _, r := range rs {
		if err := r.inject(op); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (r *faultRule) inject(op vfs.Op) error {
	if r.kinds&op.Kind == 0 || !r.matches(op.Path) && (op.NewPath == "" || !r.matches(op.NewPath)) {
		return nil
	}
	i := r.seen.Add(1) - 1
	if r.from < 0 || i < r.from || i >= r.from+r.count {
		return nil
	}
	switch r.err {
	case errKill:
		// SIGKILL cannot be handled; nothing after this line runs.
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case errHang:
		select {}
	}
	return r.err
}

func (r *faultRule) matches(name string) bool {
	if strings.Contains(r.pattern, "/") {
		return strings.Contains(name, r.pattern)
	}
	ok, _ := path.Match(r.pattern, path.Base(name)) // the pattern was checked when it was read
	return ok
}

func parseFaultRule(text string) (*faultRule, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 3 || len(parts) > 5 {
		return nil, fmt.Errorf("want OPS:PATTERN:N[:ERROR[:COUNT]]")
	}
	kinds := map[string]vfs.OpKind{
		"any": vfs.OpsAll, "mutating": vfs.OpsMutating,
		"create": vfs.OpCreate, "open": vfs.OpOpen, "open-rw": vfs.OpOpenReadWrite, "remove": vfs.OpRemove, "rename": vfs.OpRename,
		"link": vfs.OpLink, "mkdir": vfs.OpMkdir, "sync-dir": vfs.OpSyncDir, "list": vfs.OpList, "stat": vfs.OpStat, "lock": vfs.OpLock,
		"read": vfs.OpRead, "write": vfs.OpWrite, "sync": vfs.OpSync, "truncate": vfs.OpTruncate, "close": vfs.OpClose, "free-space": vfs.OpFreeSpace,
	}
	errs := map[string]error{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EROFS": syscall.EROFS, "EACCES": syscall.EACCES, "KILL": errKill, "HANG": errHang}
	r := &faultRule{pattern: parts[1], count: 1, err: syscall.EIO}
	for name := range strings.SplitSeq(parts[0], "+") {
		k, ok := kinds[name]
		if !ok {
			return nil, fmt.Errorf("no operation %q", name)
		}
		r.kinds |= k
	}
	if _, err := path.Match(r.pattern, ""); err != nil {
		return nil, err
	}
	var err error
	if r.from, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return nil, err
	}
	if len(parts) > 3 {
		e, ok := errs[parts[3]]
		if !ok {
			return nil, fmt.Errorf("no error %q", parts[3])
		}
		r.err = e
	}
	if len(parts) > 4 {
		if parts[4] == "all" {
			r.count = 1 << 62
		} else if r.count, err = strconv.ParseInt(parts[4], 10, 64); err != nil {
			return nil, err
		}
	}
	return r, nil
}
