package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/colinmarc/hdfs/v2"
)

// Kind says what stands in the way.
type Kind uint8

const (
	// Other is an error of the NameNode that has no kind of its own.
	Other Kind = iota
	// Permission: the user may not do it.
	Permission
	// Quota: the directory's space or name quota is used up.
	Quota
	// SafeMode: the NameNode changes nothing at present.
	SafeMode
	// Unavailable: no NameNode answered, or none is active.
	Unavailable
	// NoDataNodes: no DataNode took the data, or the one that did went away.
	NoDataNodes
	// Unsupported: encrypted or erasure coded files.
	Unsupported
	// Lease: another client holds the file.
	Lease
)

// Error is a failed operation.
type Error struct {
	// Op is what was done, as "renaming"; Path to what.
	Op, Path string
	Kind     Kind
	// Unknown: the request may have been carried out.
	Unknown bool
	// Hint says what to do about it; "" when there is nothing to say.
	Hint string
	Err  error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: %s", e.Op, e.Path, text(e.Err))
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// text is an error with the first line of what the NameNode said.
func text(err error) string {
	var remote hdfs.Error
	if !errors.As(err, &remote) {
		// The operation and the path are said already.
		var at *fs.PathError
		if errors.As(err, &at) {
			return at.Err.Error()
		}
		return err.Error()
	}
	line, _, _ := strings.Cut(remote.Message(), "\n")
	name := remote.Exception()
	name = name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case line == "":
		return err.Error()
	case name == "" || strings.Contains(line, name):
		return line
	}
	return name + ": " + line
}

// Unwrap returns the cause, and the system error that means the same.
func (e *Error) Unwrap() []error {
	switch e.Kind {
	case Permission:
		return []error{e.Err, fs.ErrPermission}
	case Quota:
		return []error{e.Err, syscall.EDQUOT}
	}
	return []error{e.Err}
}

// Retryable implements connector.Retryable.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case SafeMode, Unavailable, NoDataNodes, Lease:
		return true
	}
	return false
}

// Away implements connector.Away.
func (e *Error) Away() bool {
	return e.Kind == SafeMode || e.Kind == Unavailable || e.Kind == NoDataNodes
}

// exceptions are the NameNode's own names of what it refuses.
var exceptions = map[string]Kind{
	"org.apache.hadoop.security.AccessControlException":                   Permission,
	"org.apache.hadoop.hdfs.protocol.DSQuotaExceededException":            Quota,
	"org.apache.hadoop.hdfs.protocol.NSQuotaExceededException":            Quota,
	"org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException": Quota,
	"org.apache.hadoop.hdfs.server.namenode.SafeModeException":            SafeMode,
	"org.apache.hadoop.ipc.StandbyException":                              Unavailable,
	"org.apache.hadoop.ipc.RetriableException":                            Unavailable,
	"org.apache.hadoop.ipc.ObserverRetryOnActiveException":                Unavailable,
	"org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException":        Lease,
	"org.apache.hadoop.hdfs.protocol.RecoveryInProgressException":         Lease,
	"org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException":        Lease,
	"org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException":    NoDataNodes,
}

// definite are the errors that the library translates: the NameNode answered.
var definite = []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, syscall.ENOTEMPTY}

// answered reports whether the NameNode refused, so that the client is in step
// and the outcome known.
func answered(err error) bool {
	var have *Error
	if errors.As(err, &have) {
		return !have.Unknown
	}
	var remote hdfs.Error
	if errors.As(err, &remote) {
		// After a fatal one the server closes the connection.
		return !strings.HasPrefix(remote.Desc(), "FATAL")
	}
	for _, d := range definite {
		if errors.Is(err, d) {
			return true
		}
	}
	return false
}

// explain makes an Error of what an operation gave.
func (c *cluster) explain(op, name string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Path: c.url(name), Err: err}
	var have *Error
	if errors.As(err, &have) {
		if have.Op != "" {
			return err
		}
		// It knows its kind only.
		e.Kind, e.Unknown, e.Err, e.Hint = have.Kind, have.Unknown, have.Err, c.hint(have.Kind)
		return e
	}
	var remote hdfs.Error
	switch {
	case errors.As(err, &remote):
		e.Kind = exceptions[remote.Exception()]
		// The NameNode has no exception of its own for this one.
		if e.Kind == Other && remote.Method() == "addBlock" && remote.Exception() == "java.io.IOException" {
			e.Kind = NoDataNodes
		}
	case errors.Is(err, fs.ErrPermission):
		e.Kind = Permission
	case answered(err):
	default:
		e.Kind, e.Unknown = Unavailable, true
	}
	e.Hint = c.hint(e.Kind)
	return e
}

func (c *cluster) hint(k Kind) string {
	switch k {
	case Permission:
		return fmt.Sprintf("user %q may not: give it the directory with 'hdfs dfs -chown', or name another '%s'", c.conf.User, keyUser)
	case Quota:
		return "the directory's quota is used up: 'hdfs dfs -count -q' shows it, 'hdfs dfsadmin -setSpaceQuota' or -setQuota raises it; a block is charged whole while it is written"
	case SafeMode:
		return "the NameNode is in safe mode: it is tried again; 'hdfs dfsadmin -safemode get' shows it, -safemode leave ends it"
	case Unavailable:
		return "it is tried again; NameNodes asked: " + strings.Join(c.conf.Addresses, ", ")
	case NoDataNodes:
		return "it is tried again; 'hdfs dfsadmin -report' shows the DataNodes"
	}
	return ""
}
