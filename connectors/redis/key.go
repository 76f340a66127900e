package redis

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// keyTemplate is how a row's key is made: text, column, text, column, text.
type keyTemplate struct {
	// texts[i] stands before columns[i]; the last one stands at the end.
	texts   [][]byte
	columns []int
}

// parseKey compiles a template over the columns of the primary key that are no
// member. Each of them must be there: rows that differ must have other keys.
func parseKey(template string, t *connector.Table, keys []int) (*keyTemplate, error) {
	bad := func(format string, args ...any) error {
		return &connector.OptionError{Key: keyKey, OnValue: true, Message: fmt.Sprintf(format, args...)}
	}
	k := &keyTemplate{}
	rest := template
	for {
		text, more, ok := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, bad("a } without its { in %q", template)
		}
		k.texts = append(k.texts, []byte(text))
		if !ok {
			break
		}
		name, after, closed := strings.Cut(more, "}")
		if !closed {
			return nil, bad("a { without its } in %q", template)
		}
		at := slices.IndexFunc(keys, func(c int) bool { return t.Columns[c].Name == name })
		switch {
		case at < 0:
			return nil, bad("{%s} in %q is no column of the primary key that a key can be made of", name, template)
		case len(k.columns) > 0 && text == "":
			return nil, bad("nothing stands between two columns in %q: keys of different rows could be equal", template)
		case slices.Contains(k.columns, keys[at]):
			return nil, bad("{%s} stands in %q twice", name, template)
		}
		k.columns = append(k.columns, keys[at])
		rest = after
	}
	for _, c := range keys {
		if !slices.Contains(k.columns, c) {
			return nil, bad("%q lacks {%s}, a column of the primary key: rows that differ in it would have one key", template, t.Columns[c].Name)
		}
	}
	if len(k.columns) == 0 && len(k.texts[0]) == 0 {
		return nil, bad("the key is empty")
	}
	return k, nil
}

// defaultKey is the template of a table that names none.
func defaultKey(t *connector.Table, keys []int) string {
	var b strings.Builder
	b.WriteString(t.Name)
	for _, c := range keys {
		b.WriteString(":{" + t.Columns[c].Name + "}")
	}
	return b.String()
}

// append appends the key of a row.
func (k *keyTemplate) append(dst []byte, b *batch.Batch, row int) []byte {
	for i, c := range k.columns {
		dst = append(dst, k.texts[i]...)
		dst = appendText(dst, &b.Cols[c], row)
	}
	return append(dst, k.texts[len(k.columns)]...)
}

// ambiguous finds a value that holds the text that ends it, so that the key of the
// row could be another row's. The last column needs nothing to end it.
func (k *keyTemplate) ambiguous(b *batch.Batch, row int, scratch []byte) (column int, sep []byte, out []byte) {
	for i := 0; i+1 < len(k.columns); i++ {
		v := &b.Cols[k.columns[i]]
		if v.Type.Physical() != types.PhysBytes {
			continue
		}
		sep := k.texts[i+1]
		scratch = appendText(scratch[:0], v, row)
		n := len(scratch)
		if scratch = append(scratch, sep...); bytes.Index(scratch, sep) < n {
			return k.columns[i], sep, scratch
		}
	}
	return -1, nil, scratch
}
