package kafka

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
)

// access is who a table speaks to the cluster as, and what for.
type access struct {
	principal string              // as rules name it
	needs     []kmsg.ACLOperation // on the topics that it reads or writes
	group     string              // empty: none
	txnPrefix string              // empty: none
}

// accessOf is who the properties say; needs is what it does with topics.
func accessOf(v connector.Values, needs ...kmsg.ACLOperation) *access {
	a := &access{principal: "User:ANONYMOUS", needs: needs}
	switch {
	case usesSASL(v):
		if user, _, err := credentials(v); err == nil {
			a.principal = "User:" + user
		}
	case usesTLS(v) && (v.Has(keyKeyFile) || v.Has(keyChainText)):
		if name, err := certificateName(v); err == nil {
			a.principal = "User:" + name
		}
	}
	return a
}

// failed is an error of something asked for on a topic, empty: on none, with the right that
// was missing.
func (a *access) failed(err error, topic, format string, args ...any) error {
	e := failed(err, format, args...)
	e.Hint = a.hint(err, topic)
	return e
}

// hint says which right an error is about and how it is given; empty: it is about none.
// topic is what was asked for.
func (a *access) hint(err error, topic string) string {
	if a == nil {
		return ""
	}
	var denied *kadm.AuthError
	if errors.As(err, &denied) {
		err = denied.Err
	}
	switch {
	case is(err, kerr.TopicAuthorizationFailed) && topic != "":
		needs := a.needs
		if topic == commitsTopic {
			needs = []kmsg.ACLOperation{kmsg.ACLOperationCreate, kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs}
		}
		return a.lacks("topic "+topic, "--topic "+topic, needs...)
	case is(err, kerr.GroupAuthorizationFailed):
		return a.lacks("group "+a.group, "--group "+a.group, kmsg.ACLOperationRead)
	case is(err, kerr.TransactionalIDAuthorizationFailed):
		return a.lacks("the transactional ids that start with '"+keyTxnPrefix+"'", "--transactional-id "+a.txnPrefix+" --resource-pattern-type prefixed",
			kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe)
	case is(err, kerr.ClusterAuthorizationFailed):
		return a.lacks("the cluster", "--cluster", kmsg.ACLOperationIdempotentWrite)
	case is(err, kerr.SaslAuthenticationFailed):
		return "user or password are wrong, or the user has none for '" + keyMechanism + "'"
	}
	return ""
}

// lacks says that rights are missing, and the command that gives them.
func (a *access) lacks(resource, flags string, operations ...kmsg.ACLOperation) string {
	var names []string
	for _, op := range operations {
		names = append(names, operationNames[op])
	}
	all := strings.Join(names, ", ")
	if n := len(names); n > 1 {
		all = strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return fmt.Sprintf("the user needs %s on %s: kafka-acls.sh --add --allow-principal '%s' --operation %s %s",
		all, resource, a.principal, strings.Join(names, " --operation "), flags)
}

// operationNames are the operations in the words of Kafka's tools.
var operationNames = map[kmsg.ACLOperation]string{kmsg.ACLOperationRead: "Read", kmsg.ACLOperationWrite: "Write", kmsg.ACLOperationCreate: "Create",
	kmsg.ACLOperationDescribe: "Describe", kmsg.ACLOperationDescribeConfigs: "DescribeConfigs", kmsg.ACLOperationIdempotentWrite: "IdempotentWrite"}

// may reports whether the brokers allow the user an operation on a topic, or do not say: who
// may do anything with a topic may describe it, and has.
func (d described) may(op kmsg.ACLOperation) bool {
	return d.allowed&(1<<kmsg.ACLOperationDescribe) == 0 || d.allowed&(1<<op) != 0
}

// permitted finds a right that is missing before it is needed.
func (c *conn) permitted(d described, topic string) error {
	for _, op := range c.access.needs {
		if !d.may(op) {
			return c.failed(kerr.TopicAuthorizationFailed, topic, "asking for the right of operation %s on topic %s", operationNames[op], topic)
		}
	}
	return nil
}
