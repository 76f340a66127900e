package keyvalue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/connector"
)

// Option keys.
const (
	KeyFormat   = "key.format"
	KeyFields   = "key.fields"
	KeyPrefix   = "key.fields-prefix"
	ValueFormat = "value.format"
	Include     = "value.fields-include"
)

// Values of Include.
const (
	all       = "ALL"
	exceptKey = "EXCEPT_KEY"
)

// Options declares the options of this package for the formats of a connector.
// Tables of a keyed one have their primary key as the key.
func Options(formats []format.Format, keyed bool) []connector.Option {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Spec().Name
	}
	var out []connector.Option
	if keyed {
		out = []connector.Option{
			{Key: KeyFormat, Type: connector.OptEnum, Enum: names, Required: true, Doc: "How keys are encoded: they hold the primary key. Its options are called `key.json.*` and so on."},
			{Key: ValueFormat, Type: connector.OptEnum, Enum: names, Required: true, Doc: "How values are encoded. Its options are called `value.json.*` and so on."},
		}
	} else {
		out = []connector.Option{
			{Key: ValueFormat, Type: connector.OptEnum, Enum: names, Doc: "Another name of `format`; its options are then called `value.json.*` and so on."},
			{Key: KeyFormat, Type: connector.OptEnum, Enum: names, Doc: "How keys are encoded. Its options are called `key.json.*` and so on; what becomes of faulty keys is said by the value's on-error."},
			{Key: KeyFields, Type: connector.OptList, Doc: "The columns that lie in the key, separated by `;`, in the order in which the key's format has them."},
		}
	}
	out = append(out, []connector.Option{
		{Key: KeyPrefix, Doc: "What the names of these columns begin with and the key's fields do not, so that key and value may have fields of the same name. Needs `value.fields-include` `EXCEPT_KEY`."},
		{Key: Include, Type: connector.OptEnum, Enum: []string{all, exceptKey}, Default: all,
			Doc: "`ALL`: the value holds the key's columns as well, and is where they are read from. `EXCEPT_KEY`: they are in the key alone."},
	}...)
	for _, n := range names {
		out = append(out,
			connector.Option{Key: "key." + n + ".*", Doc: "Options of the key's format `" + n + "`, but for on-error."},
			connector.Option{Key: "value." + n + ".*", Doc: "Options of `value.format` `" + n + "`."})
	}
	return out
}

// Validate finds options that contradict each other. keyed tables have their key
// from the primary key, and no key.fields.
func Validate(v connector.Values, formats []format.Format, keyed bool) error {
	if v.Has("format") && v.Has(ValueFormat) {
		return &connector.OptionError{Key: ValueFormat, Message: `"format" and "value.format" are the same option: keep one`}
	}
	switch {
	case v.Has(KeyFields) && !v.Has(KeyFormat):
		return &connector.OptionError{Key: KeyFields, Message: `"key.fields" has no effect without "key.format"`}
	case v.Has(KeyFormat) && !keyed && len(v.List(KeyFields)) == 0:
		return &connector.OptionError{Key: KeyFormat, Message: `"key.format" needs "key.fields": the columns that lie in the key`}
	case v.Has(Include) && !v.Has(KeyFormat):
		return &connector.OptionError{Key: Include, Message: `"value.fields-include" has no effect without "key.format"`}
	case v.Has(KeyPrefix) && v.String(Include) != exceptKey:
		return &connector.OptionError{Key: KeyPrefix, Message: `"key.fields-prefix" needs "value.fields-include" = 'EXCEPT_KEY': a value would hold the columns under other names than the key`}
	}
	if !keyed {
		fields := v.List(KeyFields)
		for i, f := range fields {
			if slices.Contains(fields[:i], f) {
				return &connector.OptionError{Key: KeyFields, OnValue: true, Message: fmt.Sprintf("column %q is named twice", f)}
			}
		}
	}
	for _, side := range []struct{ prefix, option string }{{"key.", KeyFormat}, {"value.", ValueFormat}} {
		if err := validateFormat(v, formats, side.prefix, side.option); err != nil {
			return err
		}
	}
	return nil
}

// validateFormat checks the options of one side as those of 'format' are checked.
func validateFormat(v connector.Values, formats []format.Format, prefix, option string) error {
	for _, f := range formats {
		spec := f.Spec()
		with := map[string]string{"connector": "format"}
		set := v.Family(prefix + spec.Name + ".")
		for _, name := range slices.Sorted(maps.Keys(set)) {
			inner := spec.Name + "." + name
			key := prefix + inner
			switch {
			case v.String(option) != spec.Name:
				return &connector.OptionError{Key: key, Message: fmt.Sprintf("%q has no effect without %q = '%s'", key, option, spec.Name)}
			case prefix == "key." && isPolicy(spec.Name, inner):
				return &connector.OptionError{Key: key, Message: fmt.Sprintf("what becomes of faulty keys is said by the value's %q", inner)}
			}
			with[inner] = set[name]
		}
		if v.String(option) != spec.Name {
			continue
		}
		sub := &connector.Spec{Name: spec.Name, Options: spec.Options, Validate: spec.Validate}
		if _, errs := sub.Resolve(with); len(errs) > 0 {
			e := *errs[0]
			if e.Key != "connector" {
				e.Key = prefix + e.Key
			}
			if e.Unknown {
				e.Message = fmt.Sprintf("unknown option %q of format %q", e.Key, spec.Name)
			}
			return &e
		}
	}
	return nil
}

func isPolicy(name, key string) bool {
	return slices.Contains([]string{name + ".on-error", name + ".ignore-parse-errors"}, key)
}

// find gives the format of a name, and the way to its options.
func find(v connector.Values, formats []format.Format, option, prefix string) (format.Format, format.Options, error) {
	name := v.String(option)
	for _, f := range formats {
		if f.Spec().Name == name {
			return f, format.FromValues(v, prefix), nil
		}
	}
	return nil, nil, &connector.OptionError{Key: option, OnValue: true, Message: fmt.Sprintf("unknown format %q", name)}
}
