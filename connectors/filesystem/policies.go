package filesystem

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// Kinds of commit policies, in the order in which they are carried out.
const (
	policyMetastore = "metastore"
	policySuccess   = "success-file"
	policyCustom    = "custom"
	policyReadiness = "readiness-topic"
)

// Policies are the ways in which a table's partitions are announced. They are
// carried out in the order of the fields, whatever order they are named in.
type Policies struct {
	Metastore, Success, Command, Readiness bool
}

// Any reports whether a partition is announced at all.
func (p Policies) Any() bool { return p != Policies{} }

// ParsePolicies reads 'sink.partition-commit.policy.kind', "" being none.
func ParsePolicies(s string) (Policies, error) {
	var p Policies
	if s == "" {
		return p, nil
	}
	for kind := range strings.SplitSeq(s, ",") {
		switch kind = strings.TrimSpace(kind); kind {
		case policyMetastore:
			p.Metastore = true
		case policySuccess:
			p.Success = true
		case policyCustom:
			p.Command = true
		case policyReadiness:
			p.Readiness = true
		default:
			return p, &connector.WordError{Word: kind, Among: []string{policyMetastore, policySuccess, policyCustom, policyReadiness}}
		}
	}
	return p, nil
}

// checkPolicy checks the policies of a table of files.
func checkPolicy(s string) error {
	p, err := ParsePolicies(s)
	var word *connector.WordError
	switch {
	case errors.As(err, &word):
		word.Among = word.Among[1:]
	case err == nil && p.Metastore:
		err = errors.New("policy metastore needs connector 'hive'")
	}
	return err
}

// validatePolicies finds policies that lack an option, and options without their policy.
func validatePolicies(v connector.Values) error {
	p, err := ParsePolicies(v.String(keyPolicy))
	if err != nil {
		// Its own check has said so.
		return nil
	}
	for _, need := range []struct {
		on        bool
		kind, key string
		hint      string
	}{
		{p.Command, policyCustom, keyCommand, "'" + keyCommand + "' = '/opt/ready.sh {partition}'"},
		{p.Readiness, policyReadiness, KeyReadiness, "'" + KeyReadiness + "' = 'ready'"},
	} {
		switch has := v.Has(need.key); {
		case need.on && !has:
			return &connector.OptionError{Key: need.key, Missing: true, Message: "policy '" + need.kind + "' needs option '" + need.key + "'", Hint: need.hint}
		case has && !need.on:
			return &connector.OptionError{Key: need.key, Message: "'" + need.key + "' has no effect unless '" + keyPolicy + "' names '" + need.kind + "'"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Family(ReadinessProperties))) {
		key := ReadinessProperties + name
		switch {
		case !p.Readiness:
			return &connector.OptionError{Key: key, Message: "'" + key + "' has no effect unless '" + keyPolicy + "' names '" + policyReadiness + "'"}
		case !v.Has(keyReadyServers):
			return &connector.OptionError{Key: key, Message: "'" + key + "' has no effect without '" + keyReadyServers + "'"}
		}
	}
	if v.Has(keyCommandTimeout) && !p.Command {
		return &connector.OptionError{Key: keyCommandTimeout, Message: "'" + keyCommandTimeout + "' has no effect unless '" + keyPolicy + "' names '" + policyCustom + "'"}
	}
	if v.Duration(keyCommandTimeout) <= 0 {
		return &connector.OptionError{Key: keyCommandTimeout, OnValue: true, Message: "no command can end within 0 seconds"}
	}
	return nil
}

// checkReadiness checks a topic's name by Kafka's rule, and keeps the log's own apart.
func checkReadiness(s string) error {
	bad := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	})
	switch {
	case s == "" || s == "." || s == ".." || bad >= 0 || len(s) > 249:
		return fmt.Errorf("%q is no topic's name: up to 249 letters, digits, '.', '_' and '-'", s)
	case strings.HasPrefix(s, "__"):
		return fmt.Errorf("%q is a name of the log's own topics", s)
	}
	return nil
}

// PolicyDoc is the part of a connector's page about policies custom and readiness-topic.
const PolicyDoc = "### Telling others that a partition is complete\n\n" +
	"Policies are carried out in the order `metastore`, `success-file`, `custom`, `readiness-topic`, whatever order they are named in. When one fails the partition is not announced, rows go on being committed, and all of them are carried out again after 0.2 s to 15 s; late rows have them carried out once more. **Each may happen more than once** for a partition, after a crash or a failure of a later one: at least once, never said to be exactly once.\n\n" +
	"`custom` runs the program of `sink.partition-commit.policy.command`, as the user of the process, in its working directory and with its environment but for `MILLRACE_*`, so that secrets of job files (`MILLRACE_SECRET_*`) stay behind: who may start jobs may run programs. (Flink's `custom` loads a Java class.) It must do no harm when it is run again for the same partition. Partitions are told one after the other, each recorded before the next, and no two runs for a table are under way at once, after a crash of Millrace either: on Linux the command ends with Millrace, and of what it had started the last process is waited for, on any system, for as long as the time-out and then again. (That holds on one machine, for processes that keep the descriptors they were given.) It finds `MILLRACE_JOB`, `MILLRACE_DATABASE`, `MILLRACE_TABLE`, `MILLRACE_PARTITION` (`dt=2024-05-01/hr=08`), `MILLRACE_PARTITION_VALUES` (a JSON object), `MILLRACE_LOCATION`, `MILLRACE_FILES`, `MILLRACE_BYTES`, and `MILLRACE_ROWS`, which is empty where a file does not tell. " +
	"Exit code 0 says that it is done. Any other code, a signal and the time-out are tried again, with the end of the output in the log and in `millrace jobs ls`; a bounded run tries for five minutes, and not again after 64, 78, 126, 127 or a program that cannot be started.\n\n" +
	"`readiness-topic` appends a record to the topic `sink.partition-commit.readiness-topic.name` of the embedded log, durably, or to one of the Kafka cluster of `sink.partition-commit.readiness-topic.properties.bootstrap.servers`, acknowledged by all replicas in sync, before the partition counts as announced. Its key is `database.table/partition`, or `table/partition`, its value JSON: `kind` (`ready`), `job`, `database`, `table`, `partition`, `values`, `version`, `home`, `location`, `rows` (null where a file does not tell), `files`, `bytes`, `watermark_ms` (null without one), `time_ms`. " +
	"A reader that must act once takes the first record of each job, database, table, partition and `version`; the version rises when late rows came."
