package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/diag"
)

// docsCommand writes the generated part of the documentation. It is for the
// repository, not for users.
func docsCommand(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:    "internal-docs DIR",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			pages, err := GeneratedDocs()
			if err != nil {
				return err
			}
			for name, text := range pages {
				path := filepath.Join(args[0], filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return exitcode.With(exitcode.Environment, err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					return exitcode.With(exitcode.Environment, err)
				}
			}
			return nil
		},
	}
}

// GeneratedDocs are the generated pages by their path below docs. A test
// compares them with what is committed.
func GeneratedDocs() (map[string]string, error) {
	pages := map[string]string{}
	reg, err := connectors(nil, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range reg.Names() {
		c, _ := reg.Lookup(name)
		pages["connectors/"+name+".md"] = connectorPage(c.Spec())
	}
	for _, p := range diag.Pages() {
		pages["errors/"+string(p.Code)+".md"] = p.Markdown()
	}
	pages["errors/README.md"] = diag.Index(diag.Pages())
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		return nil, err
	}
	pages["sql/functions.md"] = string(lib.Docs())
	return pages, nil
}
