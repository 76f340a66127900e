package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/connector"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// checkSink checks what a table needs when it is written.
func (b *Binder) checkSink(ins *Insert) {
	b.checkWritten(ins.Table, ins.Input, ins.Span)
	b.checkReplaced(ins)
	if ins.checkUpdates(b) && ins.Overwrite && ChangelogOf(ins.Input).By != nil {
		b.errorf(diag.CodeBadTable, ins.Span, "INSERT OVERWRITE of rows that change")
	}
}

func (b *Binder) checkWritten(t *catalog.Table, input Node, at diag.Span) {
	if t.Spec == nil {
		return
	}
	if t.Spec.Changelog == connector.Upsert && len(t.PrimaryKey) == 0 {
		b.errorf(diag.CodeBadKey, at, "connector %q writes by primary key, and %q has none", t.Spec.Name, t.Name).
			WithNote(t.Span, "the table is declared here").
			WithHelp("add PRIMARY KEY (...) NOT ENFORCED")
	}
	if len(t.PartitionKeys) > 0 {
		b.checkPartitionCommit(t, input, at)
	}
}

const (
	policyKey  = "sink.partition-commit.policy.kind"
	triggerKey = "sink.partition-commit.trigger"
	zoneKey    = "sink.partition-commit.watermark-time-zone"
)

// commitPolicy is the policy to suggest: a metastore is told where there is one.
func commitPolicy(t *catalog.Table) string {
	const all = "metastore,success-file"
	for _, o := range t.Spec.Options {
		if o.Key == policyKey && o.Check != nil && o.Check(all) == nil {
			return all
		}
	}
	return "success-file"
}

// checkPartitionCommit makes sure that table partitions are announced at all,
// when they can be, and in the right zone.
func (b *Binder) checkPartitionCommit(t *catalog.Table, input Node, at diag.Span) {
	has := func(key string) bool { return t.Declares(key) }
	if !has(policyKey) {
		return
	}
	if t.Values.String(policyKey) == "" {
		b.errorf(diag.CodePartitionCommitPolicy, t.Span, "table %q is partitioned and never says when a partition is complete", t.Name).
			WithNote(at, "it is written here").
			WithHelp("add '%s' = '%s', and '%s' = 'partition-time' with a delay", policyKey, commitPolicy(t), triggerKey)
	}
	if !has(triggerKey) || t.Values.String(triggerKey) != "partition-time" {
		return
	}
	for _, s := range Scans(input) {
		if s.Watermark == nil && !b.Batch {
			b.errorf(diag.CodeBadOption, optionSpan(t, triggerKey), "partitions of %q commit by event time, and table %q has no WATERMARK", t.Name, s.Table.Name).
				WithNote(s.Table.Span, "the table is declared here").
				WithHelp("declare WATERMARK FOR ... in %q, or use '%s' = 'process-time'", s.Table.Name, triggerKey)
			return
		}
		if s.Watermark == nil || !has(zoneKey) || !t.Values.Has(zoneKey) || s.Watermark.Type().Kind != rt.TimestampLTZ {
			continue
		}
		z, err := rt.LoadZone(t.Values.String(zoneKey))
		if err == nil && b.Zone != nil && z.Location().String() != b.Zone.Location().String() {
			b.errorf(diag.CodeZoneConflict, optionSpan(t, zoneKey), "'%s' is %s and the session zone is %s: partitions would commit hours off", zoneKey, z, b.Zone).
				WithHelp("leave the option out: it follows the session zone for TIMESTAMP_LTZ").
				WithHelp("or SET 'table.local-time-zone' = '%s'", z)
			return
		}
	}
}

func optionSpan(t *catalog.Table, key string) diag.Span {
	if o := t.Option(key); o != nil {
		return o.Value.Span()
	}
	return t.Span
}

// topicUse is how the rows of a topic reach a table.
type topicUse struct {
	scan          *Scan
	direct, keyed bool
	at            diag.Span
}

// topicKey is a topic and where its rows go: a table, or "" for the result of a query.
type topicKey struct{ table, topic string }

// topicUses are the uses of topics in the order they were met.
type topicUses struct {
	of    map[topicKey]*topicUse
	order []topicKey
}

func (t *topicUses) add(n Node, table string, at diag.Span) {
	visitScans(n, false, func(s *Scan, keyed bool) {
		k := topicKey{table, TopicOf(s.Table)}
		u := t.of[k]
		if u == nil {
			u = &topicUse{scan: s}
			t.of[k] = u
			t.order = append(t.order, k)
		}
		u.direct, u.keyed, u.at = u.direct || !keyed, u.keyed || keyed, at
	})
}

// CheckTopics reports topics that reach one table both directly and through
// an exchange: the two ways would commit apart.
func CheckTopics(inserts []*Insert, diags *diag.List) {
	uses := topicUses{of: map[topicKey]*topicUse{}}
	for _, ins := range inserts {
		// What overwrites goes through an exchange in any case.
		if !ins.Overwrite {
			uses.add(ins.Input, ins.Table.Name, ins.Span)
		}
	}
	for _, k := range uses.order {
		if u := uses.of[k]; u.direct && u.keyed {
			diags.Errorf(diag.CodeTopicBothWays, u.at, "rows of %q reach table %q both directly and through an aggregate", k.topic, k.table).
				WithNote(u.scan.Table.Span, "table %q reads it", u.scan.Table.Name).
				WithHelp("write the two results to two tables")
		}
	}
}

// CheckQueryTopics is CheckTopics for the result of a query at a place. It
// tells whether it reported something.
func CheckQueryTopics(n Node, at diag.Span, diags *diag.List) bool {
	uses, found := topicUses{of: map[topicKey]*topicUse{}}, false
	uses.add(n, "", at)
	for _, k := range uses.order {
		if u := uses.of[k]; u.direct && u.keyed {
			found = true
			diags.Errorf(diag.CodeTopicBothWays, u.at, "rows of %q reach the result both directly and through an aggregate", k.topic).
				WithNote(u.scan.Table.Span, "table %q reads it", u.scan.Table.Name).
				WithHelp("run the two queries apart")
		}
	}
	return found
}

func visitScans(n Node, keyed bool, f func(*Scan, bool)) {
	switch x := n.(type) {
	case *Scan:
		f(x, keyed)
	case *Aggregate, *Wide, *Normalize, *Sort, *Join, *SetOperation, *Over, *Rank:
		keyed = true
	}
	for _, in := range n.Inputs() {
		visitScans(in, keyed, f)
	}
}

// TopicOf names what a table reads: its topic or path, else the table itself.
func TopicOf(t *catalog.Table) string {
	for _, key := range []string{"topic", "path"} {
		if o := t.Option(key); o != nil {
			return o.Value.Value
		}
	}
	return t.Name
}

// notOnWindow lists partition columns that depend on more than the window.
func notOnWindow(t *catalog.Table, cols []Column) []string {
	var out []string
	for _, c := range cols {
		if slices.Contains(t.PartitionKeys, c.Name) && c.Window == nil && !c.WindowOnly {
			out = append(out, c.Name)
		}
	}
	return out
}
