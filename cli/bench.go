// Package cli is what the commands do, flag by flag. It is importable: another module can register subjects of its own and
// call Bench from its main function.
package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fencepost.dev/harness"
	"fencepost.dev/reports"
)

// Bench is the bench command. It also serves the roles in which a run starts its own executable again (guard, client), so
// main must call it before it does anything else.
func Bench(args []string, stdout, stderr io.Writer) int {
	if code, served := harness.ServeRole(); served {
		return code
	}
	root := &cobra.Command{
		Use:   "bench",
		Short: "Load-test coordination state and prove whether it is correct",
		Long: `bench pushes concurrent traffic through locks and other coordination state, breaks things while it runs, records what
every client saw, and decides from that record: pass, violation (with a small witness), or inconclusive.

Exit status: 0 as expected; 1 not as expected, or a threshold is missed; 2 usage or configuration error, nothing was run;
3 inconclusive, the run proves nothing; 130 interrupted.`,
		Example: `  bench demo                        why a lock needs a fencing token, told in half a minute
  bench list                        the catalogue
  bench run lock-pause              one scenario
  bench verify --tags lock          all of a kind, for CI`,
		Version: harness.Version(),
	}
	root.AddCommand(
		listCommand(), showCommand(), runCommand(), verifyCommand(), demoCommand(),
		checkCommand(), reportCommand(), workerCommand(), versionCommand(),
	)
	return execute(root, args, stdout, stderr)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "What this is a build of",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "bench version %s %s %s/%s\n", harness.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// terminalOptions fits text to where it goes.
func terminalOptions(w io.Writer, quiet bool) reports.Options {
	o := reports.Options{Quiet: quiet}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o
	}
	o.Live = true
	_, plain := os.LookupEnv("NO_COLOR")
	o.Color = !plain && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		o.Width = min(width, 120)
	}
	return o
}
