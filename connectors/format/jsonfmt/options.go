package jsonfmt

import (
	_ "embed" // the table of types
	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/connector"
)

//go:embed types.md
var typesDoc string

// The option keys.
const (
	keyFailOnMissing  = "json.fail-on-missing-field"
	keyTimestamps     = "json.timestamp-format.standard"
	keyDecimalScale   = "json.decimal-scale"
	keyMapNullMode    = "json.map-null-key.mode"
	keyMapNullLiteral = "json.map-null-key.literal"
	keyPlainDecimal   = "json.encode.decimal-as-plain-number"
	keyIgnoreNulls    = "json.encode.ignore-null-fields"
)

var mapNullModes = []string{"FAIL", "DROP", "LITERAL"}

// Format is the format `json`.
type Format struct{}

var _ format.Format = Format{}

// Spec implements format.Format.
func (Format) Spec() connector.FormatSpec {
	return connector.FormatSpec{
		Name:    "json",
		Summary: "JSON objects: one a record, several, or an array of them.",
		Doc:     typesDoc,
		Decode:  true, Encode: true,
		Options: append(format.PolicyOptions("json"),
			connector.Option{Key: keyFailOnMissing, Type: connector.OptBool, Default: "false",
				Doc: "A key that is missing is an error of its column instead of NULL."},
			connector.Option{Key: keyTimestamps, Type: connector.OptEnum, Enum: scalar.Standards, Default: "SQL",
				Doc: "The form of TIMESTAMP and TIMESTAMP_LTZ: `SQL` is 2024-05-01 08:00:00.123 (LTZ with Z), `ISO-8601` is 2024-05-01T08:00:00.123 (LTZ with Z), `ISO-8601-WITH-OFFSET` also takes an offset such as +08:00 for LTZ."},
			connector.Option{Key: keyDecimalScale, Type: connector.OptEnum, Enum: []string{"round", "error"}, Default: "round",
				Doc: "What happens to digits behind the scale of a DECIMAL: rounded half up and counted, or an error of the value."},
			connector.Option{Key: keyMapNullMode, Type: connector.OptEnum, Enum: mapNullModes, Default: "FAIL",
				Doc: "What happens to a NULL key of a MAP that is written."},
			connector.Option{Key: keyMapNullLiteral, Type: connector.OptString, Default: "null",
				Doc: "The key that stands for NULL under `json.map-null-key.mode` `LITERAL`."},
			connector.Option{Key: keyPlainDecimal, Type: connector.OptBool, Default: "false",
				Doc: "Write decimals below 0.000001 without an exponent: 0.000000027 instead of 2.7E-8."},
			connector.Option{Key: keyIgnoreNulls, Type: connector.OptBool, Default: "false",
				Doc: "Leave out fields that are NULL."},
		),
		Validate: func(v connector.Values) error {
			_, err := parseSettings(format.FromValues(v, ""))
			return err
		},
	}
}

// Policy implements format.Format.
func (Format) Policy(o format.Options) (format.Policy, error) { return format.ParsePolicy("json", o) }

// NewDecoder implements format.Format.
func (Format) NewDecoder(c format.DecoderConfig) (format.Decoder, error) { return NewDecoder(c) }

// NewEncoder implements format.Format.
func (Format) NewEncoder(c format.EncoderConfig) (format.Encoder, error) { return NewEncoder(c) }

// Split implements format.Format: a record is a line.
func (Format) Split(format.Options) format.SplitFunc { return format.SplitLines }

// settings are the decoder's options.
type settings struct {
	policy       format.Policy
	failMissing  bool
	standard     scalar.Standard
	inexactFails bool
}

func parseSettings(o format.Options) (s settings, err error) {
	if s.policy, err = format.ParsePolicy("json", o); err != nil {
		return s, err
	}
	if s.failMissing, err = boolOption(o, keyFailOnMissing); err != nil {
		return s, err
	}
	if s.failMissing && s.policy.Nulls() {
		with := "'json.on-error' = '" + s.policy.String() + "'"
		if o.Value("json.ignore-parse-errors", "") != "" {
			with = "'json.ignore-parse-errors' = 'true'"
		}
		return s, &connector.OptionError{Key: keyFailOnMissing,
			Message: "option \"" + keyFailOnMissing + "\" makes a missing field an error, and " + with + " makes that error NULL",
			Hint:    "drop one of the two"}
	}
	if s.standard, err = standardOption(o); err != nil {
		return s, err
	}
	switch v := o.Value(keyDecimalScale, "round"); v {
	case "round":
	case "error":
		s.inexactFails = true
	default:
		return s, format.BadValue(keyDecimalScale, v, "round or error")
	}
	return s, nil
}

func boolOption(o format.Options, key string) (bool, error) {
	switch v := o.Value(key, "false"); v {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, format.BadValue(key, v, "true or false")
	}
}

func standardOption(o format.Options) (scalar.Standard, error) {
	v := o.Value(keyTimestamps, "SQL")
	for i, n := range scalar.Standards {
		if v == n {
			return scalar.Standard(i), nil
		}
	}
	return 0, format.BadValue(keyTimestamps, v, "SQL, ISO-8601 or ISO-8601-WITH-OFFSET")
}
