package redis

import (
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/tlsfiles"
)

// class is what an answer of the server means for a transaction.
type class uint8

const (
	// classUnknown: the connection broke, or nothing is known of the answer; the
	// transaction may have been done, and is sent again.
	classUnknown class = iota
	// classRetry: the server refused it now and may take it later.
	classRetry
	// classKey: a key holds another type; every other command was done.
	classKey
	// classStop: a person must act.
	classStop
)

// classes are by the code that begins an error of the protocol.
var classes = map[string]class{
	"OOM": classRetry, "READONLY": classRetry, "LOADING": classRetry, "MASTERDOWN": classRetry, "MISCONF": classRetry, "BUSY": classRetry,
	"NOREPLICAS": classRetry, "TRYAGAIN": classRetry, "UNKILLABLE": classRetry, "EXECABORT": classRetry,
	"WRONGTYPE": classKey,
	"NOAUTH":    classStop, "WRONGPASS": classStop, "NOPERM": classStop, "NOPROTO": classStop, "DENIED": classStop,
	"MOVED": classStop, "ASK": classStop, "CROSSSLOT": classStop, "CLUSTERDOWN": classStop,
}

var hints = map[string]string{
	"OOM":        "the server's memory is full: rows wait; raise maxmemory, or set '" + keyTTL + "'",
	"READONLY":   "the server is a replica: rows wait until it is the primary; or name the primary in '" + keyURL + "'",
	"LOADING":    "the server loads its data: rows wait",
	"MASTERDOWN": "the replica has lost its primary: rows wait",
	"MISCONF":    "the server cannot save its data: rows wait; look at its log",
	"NOREPLICAS": "too few replicas are in step (min-replicas-to-write): rows wait",
	"TRYAGAIN":   "a slot is moving to another node: its rows wait until it is there",
	"NOAUTH":     "set '" + keyUser + "' and '" + keyPassword + "', then resume",
	"WRONGPASS":  "check '" + keyUser + "' and '" + keyPassword + "', then resume",
	"NOPERM":     "the user needs WATCH, GET, SET, MULTI, EXEC (in a cluster EVAL) and the commands of the data type, on keys of '" + keyKey + "' and on " + fencePrefix + "*; grant them, then resume",
	"MOVED":      "the key's slot is at another node: of a cluster say '" + keyMode + "' = '" + modeCluster + "'",
}

// codeOf is the code of an error that the server gave, "" when it gave none.
func codeOf(err error) string {
	var e goredis.Error
	if !errors.As(err, &e) || errors.Is(err, goredis.TxFailedErr) || errors.Is(err, goredis.Nil) {
		return ""
	}
	code, _, _ := strings.Cut(e.Error(), " ")
	return code
}

func classOf(err error) class {
	switch code := codeOf(err); {
	case code == "":
		return classUnknown
	case code == "ERR" && strings.Contains(err.Error(), "ERR max number of clients reached"):
		// The server has no code for it.
		return classRetry
	case code == "ERR":
		// A command or an argument that this server does not take.
		return classStop
	default:
		return classes[code]
	}
}

// readRights is what a user needs who looks up.
const readRights = "the user needs HMGET, GET, SMEMBERS, SISMEMBER, SCARD, ZRANGE, ZSCORE or ZCARD, as the data type has them (and SCAN for a table that is kept whole), on keys of '" + keyKey + "'; grant them"

// explainedRead is explained for a lookup.
func explainedRead(err error) error {
	if codeOf(err) == "NOPERM" {
		return fmt.Errorf("%w; %s", err, readRights)
	}
	return explained(err)
}

// explained is err with what to do about it.
func explained(err error) error {
	if h := hints[codeOf(err)]; h != "" {
		return fmt.Errorf("%w; %s", err, h)
	}
	return tlsfiles.Explain(err)
}
