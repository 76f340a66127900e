package filesystem

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
)

// Footer keys of Parquet files; docs/format/table-directory.md.
const (
	footerVersion    = "millrace.version"
	footerArtifact   = "millrace.artifact"
	footerInputs     = "millrace.inputs"
	footerRowHash    = "millrace.row_hash"
	footerSchemaHash = "millrace.schema_hash"
)

// setFooter writes what the file holds into it. Invariant 2.
func setFooter(p *parquetfmt.Writer, h connector.Header) {
	p.SetMetadata(footerVersion, "1")
	p.SetMetadata(footerArtifact, h.ID.String())
	var in strings.Builder
	for i, x := range h.Inputs {
		if i > 0 {
			in.WriteByte(' ')
		}
		fmt.Fprintf(&in, "%s:%d:%s", x.Topic, x.Partition, base64.RawStdEncoding.EncodeToString(x.Offsets.AppendTo(nil)))
	}
	p.SetMetadata(footerInputs, in.String())
	p.SetMetadata(footerRowHash, fmt.Sprintf("%016x", h.RowHash))
	p.SetMetadata(footerSchemaHash, fmt.Sprintf("%016x", h.SchemaHash))
}

// ParseInputs reads the value of the footer key "millrace.inputs": the exact
// offsets of each source partition whose rows the file holds.
func ParseInputs(text string) ([]connector.Input, error) {
	var out []connector.Input
	for _, f := range strings.Fields(text) {
		parts := strings.Split(f, ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is not of the form topic:partition:offsets", f)
		}
		var in connector.Input
		id, err := hex.DecodeString(strings.ReplaceAll(parts[0], "-", ""))
		if err != nil || len(id) != len(in.Topic) {
			return nil, fmt.Errorf("%q is no topic id", parts[0])
		}
		copy(in.Topic[:], id)
		p, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is no partition number", parts[1])
		}
		in.Partition = int32(p)
		b, err := base64.RawStdEncoding.DecodeString(parts[2])
		if err != nil {
			return nil, fmt.Errorf("offsets of %s: %w", f, err)
		}
		set, rest, err := offsets.Decode(b)
		if err == nil && len(rest) > 0 {
			err = offsets.ErrEncoding
		}
		if err != nil {
			return nil, fmt.Errorf("offsets of %s: %w", f, err)
		}
		in.Offsets = set
		out = append(out, in)
	}
	return out, nil
}
