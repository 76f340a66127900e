package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/sql/diag"
)

// ConfigFile is read when -c names no other.
const ConfigFile = "millrace.yaml"

// settings fills the flags that were not given: first from MILLRACE_<FLAG>,
// then from the configuration file. In the file a key is a flag's name; one
// below a command's name is that command's alone:
//
//	data: /var/lib/millrace
//	run:
//	  max-dead: 1000
func (e *Env) settings(cmd *cobra.Command) error {
	if err := e.fromEnvironment(cmd); err != nil {
		return err
	}
	name, asked := e.config, e.config != ""
	if !asked {
		name = ConfigFile
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return nil
	}
	if err != nil {
		return exitcode.With(exitcode.Input, err)
	}
	return exitcode.With(exitcode.Input, applyConfig(cmd, name, text))
}

// applyConfig sets flags from a configuration file; every fault names its
// place.
func applyConfig(cmd *cobra.Command, name string, text []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return nil // empty
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d:%d: want keys and values, such as data: ./millrace-data", name, root.Line, root.Column)
	}
	known := knownFlags(cmd.Root())
	return applyMap(cmd, name, root, nil, known)
}

// knownFlags are the flags of the whole tree, by name, so that a key of
// another command is no mistake.
func knownFlags(cmd *cobra.Command) map[string]bool {
	known := map[string]bool{}
	add := func(f *pflag.Flag) { known[f.Name] = true }
	cmd.Flags().VisitAll(add)
	cmd.PersistentFlags().VisitAll(add)
	for _, c := range cmd.Commands() {
		for n := range knownFlags(c) {
			known[n] = true
		}
	}
	return known
}

// applyMap applies the keys of a mapping that stands below the commands of
// path.
func applyMap(cmd *cobra.Command, name string, m *yaml.Node, path []string, known map[string]bool) error {
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		at := fmt.Sprintf("%s:%d:%d", name, key.Line, key.Column)
		if value.Kind == yaml.MappingNode {
			below := append(append([]string{}, path...), key.Value)
			if c, _, err := cmd.Root().Find(below); err != nil || !strings.HasSuffix(c.CommandPath(), " "+strings.Join(below, " ")) {
				return fmt.Errorf("%s: there is no command %q", at, strings.Join(below, " "))
			}
			if err := applyMap(cmd, name, value, below, known); err != nil {
				return err
			}
			continue
		}
		if !known[key.Value] {
			err := fmt.Errorf("%s: unknown key %q", at, key.Value)
			names := make([]string, 0, len(known))
			for n := range known {
				names = append(names, n)
			}
			if near, ok := diag.Nearest(key.Value, names); ok {
				err = fmt.Errorf("%w; did you mean %q?", err, near)
			}
			return err
		}
		if value.Kind != yaml.ScalarNode {
			return fmt.Errorf("%s: %s wants one value", at, key.Value)
		}
		_, own, _ := strings.Cut(cmd.CommandPath(), " ")
		if len(path) > 0 && own != strings.Join(path, " ") && !strings.HasPrefix(own, strings.Join(path, " ")+" ") {
			continue // of another command
		}
		f := cmd.Flags().Lookup(key.Value)
		if f == nil || f.Changed {
			continue
		}
		if err := cmd.Flags().Set(key.Value, value.Value); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}
