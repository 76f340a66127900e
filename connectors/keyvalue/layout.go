package keyvalue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// Layout is where a table's columns lie in its records.
type Layout struct {
	columns []connector.Column
	value   side
	// key is nil when keys are not read; see written for what is written then.
	key *side
	// upserts: a record without a value deletes the row of its key.
	upserts bool
	written *side // the key that is written, nil: none
}

// side is a record's key or value.
type side struct {
	format  format.Format
	options format.Options
	fields  []types.Field // as the format calls them
	columns []int         // of the table
}

// New reads a table's options; keyed tables have their primary key as the key, others
// the columns of key.fields.
func New(t *connector.Table, formats []format.Format, keyed bool) (*Layout, error) {
	v := t.Options
	l := &Layout{columns: t.Columns, upserts: keyed}
	option, prefix := "format", ""
	if keyed || v.Has(ValueFormat) {
		option, prefix = ValueFormat, "value."
	}
	var err error
	if l.value.format, l.value.options, err = find(v, formats, option, prefix); err != nil {
		return nil, err
	}
	if v.Has(KeyFormat) {
		if err := l.readKey(t, formats, keyed); err != nil {
			return nil, err
		}
	}
	inKey := func(i int) bool { return l.written != nil && slices.Contains(l.written.columns, i) }
	for i, col := range t.Columns {
		if col.Metadata == "" && !(inKey(i) && v.String(Include) == exceptKey) {
			l.value.fields = append(l.value.fields, col.Field)
			l.value.columns = append(l.value.columns, i)
		}
	}
	if l.written == nil && len(t.PrimaryKey) > 0 {
		l.written = &side{format: l.value.format, options: l.value.options}
		for _, i := range t.PrimaryKey {
			l.written.fields = append(l.written.fields, t.Columns[i].Field)
			l.written.columns = append(l.written.columns, i)
		}
	}
	return l, nil
}

// readKey finds the key's columns.
func (l *Layout) readKey(t *connector.Table, formats []format.Format, keyed bool) error {
	v := t.Options
	var names []string
	if !keyed {
		names = v.List(KeyFields)
	} else {
		for _, i := range t.PrimaryKey {
			names = append(names, t.Columns[i].Name)
		}
	}
	k := &side{}
	f, options, err := find(v, formats, KeyFormat, "key.")
	if err != nil {
		return err
	}
	k.format, k.options = f, l.policyOf(f.Spec().Name, options)
	prefix := v.String(KeyPrefix)
	for _, name := range names {
		i := slices.IndexFunc(t.Columns, func(c connector.Column) bool { return c.Name == name && c.Metadata == "" })
		if i < 0 {
			return &connector.OptionError{Key: KeyFields, OnValue: true, Message: fmt.Sprintf("table %s has no physical column %q", t.Name, name)}
		}
		field := t.Columns[i].Field
		if !strings.HasPrefix(name, prefix) || name == prefix {
			return &connector.OptionError{Key: KeyPrefix, OnValue: true, Message: fmt.Sprintf("the name of key column %q does not begin with %q", name, prefix)}
		}
		field.Name = strings.TrimPrefix(name, prefix)
		k.fields, k.columns = append(k.fields, field), append(k.columns, i)
	}
	l.written = k
	if v.String(Include) == exceptKey {
		l.key = k
	}
	return nil
}

// policyOf gives the key's format what the value's says about faulty values.
func (l *Layout) policyOf(name string, o format.Options) format.Options {
	policy, err := l.Policy()
	return func(key string) (string, bool) {
		if key == name+".on-error" && err == nil {
			return policy.String(), true
		}
		return o(key)
	}
}

// Policy is what the table's options say about faulty records and values. The error
// is a *connector.OptionError.
func (l *Layout) Policy() (format.Policy, error) { return l.value.format.Policy(l.value.options) }

// KeysWritten reports whether records are written with a key.
func (l *Layout) KeysWritten() bool { return l.written != nil }
