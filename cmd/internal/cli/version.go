package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func versionCommand(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "print the version",
		Example: "  millrace version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.done(cmd, fmt.Sprintf("millrace %s (%s, %s/%s)", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH),
				map[string]string{"version": e.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
		},
	}
}
