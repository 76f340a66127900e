package kafkaproto

// ListTransactions (66), versions 0 to 2: the transactional producers, all or those
// in some states or with some producer ids.
//
//   - 1 adds a filter by how long a transaction is open, 2 one by a pattern of the
//     transactional id (error 128 for a bad one).

import (
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveListTransactions(c *call, req *kmsg.ListTransactionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	var known []string
	for s := topiclog.TransactionEmpty; s <= topiclog.TransactionCompleteAbort; s++ {
		known = append(known, s.String())
	}
	for _, s := range req.StateFilters {
		// Two that Kafka knows and that no transaction is in here.
		if !slices.Contains(known, s) && s != "Dead" && s != "PrepareEpochFence" {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, s)
		}
	}
	var pattern *regexp.Regexp
	if p := req.TransactionalIDPattern; c.version >= 2 && p != nil && *p != "" {
		var err error
		if pattern, err = regexp.Compile("^(?:" + *p + ")$"); err != nil {
			resp.ErrorCode = codeInvalidRegexp
			return resp
		}
	}
	now := time.Now()
	for _, t := range c.s.opts.Store.Transactions() {
		switch {
		case len(req.StateFilters) > 0 && !slices.Contains(req.StateFilters, t.State.String()):
		case len(req.ProducerIDFilters) > 0 && !slices.Contains(req.ProducerIDFilters, t.Producer.ID):
		case c.version >= 1 && req.DurationFilterMillis >= 0 && (t.Started.IsZero() || now.Sub(t.Started).Milliseconds() < req.DurationFilterMillis):
		case pattern != nil && !pattern.MatchString(t.ID):
		default:
			rt := kmsg.NewListTransactionsResponseTransactionState()
			rt.TransactionalID, rt.ProducerID, rt.TransactionState = t.ID, t.Producer.ID, t.State.String()
			resp.TransactionStates = append(resp.TransactionStates, rt)
		}
	}
	return resp
}
