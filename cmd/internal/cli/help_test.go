package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelp: every command that does something has an example of itself, and
// every flag with a value names it.
func TestHelp(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Hidden || c.Name() == "help" || c.HasSubCommands() {
			return
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: no example of it in its help", c.CommandPath())
		}
		for _, line := range strings.Split(c.LocalFlags().FlagUsages(), "\n") {
			for _, kind := range []string{" string ", " stringArray ", " int ", " uint ", " int32Slice "} {
				if strings.Contains(line, kind) {
					t.Errorf("%s: name the value of the flag (`NAME` in its usage): %s", c.CommandPath(), strings.TrimSpace(line))
				}
			}
		}
	}
	walk(Root(NewEnv("test")))
}
