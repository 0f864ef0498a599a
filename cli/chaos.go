package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fencepost.dev/faults"
	"fencepost.dev/harness"
	"fencepost.dev/topology/endpoint"
)

// Chaos is the chaos command.
func Chaos(args []string, stdout, stderr io.Writer) int {
	if code, served := harness.ServeRole(); served {
		return code
	}
	root := &cobra.Command{
		Use:     "chaos",
		Short:   "The faults there are, and what mends those that a dead run left behind",
		Version: harness.Version(),
		Example: `  chaos list        the faults
  chaos status      runs that died and left something behind
  chaos heal        mend it: resume and end their processes, remove their directories`,
	}
	root.AddCommand(chaosList(), chaosStatus(), chaosHeal())
	return execute(root, args, stdout, stderr)
}

func chaosList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "The faults there are", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			for _, f := range faults.All() {
				fmt.Fprintf(w, "%s\t%s\n", f.Name, f.Summary)
			}
			return w.Flush()
		},
	}
}

func chaosStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Runs that died and left something behind", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			orphans, err := harness.Orphans()
			if err != nil {
				return err
			}
			if len(orphans) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "nothing is left behind")
				return nil
			}
			for _, journal := range orphans {
				fmt.Fprintln(c.OutOrStdout(), journal)
			}
			return status(exitContrary)
		},
	}
}

func chaosHeal() *cobra.Command {
	var passwordFile string
	heal := &cobra.Command{
		Use: "heal", Short: "Mend what dead runs left behind", Args: noArguments,
		Long: `Replays the journals of runs whose process is gone: resumes and ends the processes they left, removes their directories,
finishes their histories, and takes their keys from servers that were not theirs. For a server that wants a password give it
in $` + endpoint.PasswordVariable + ` or --password-file. A run that is alive is left alone.`,
		RunE: func(c *cobra.Command, _ []string) error {
			password, err := readPassword(passwordFile)
			if err != nil {
				return err
			}
			healed, err := harness.Heal(password)
			for _, journal := range healed {
				fmt.Fprintf(c.OutOrStdout(), "mended what %s says\n", journal)
			}
			if err == nil && len(healed) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "nothing is left behind")
			}
			return err
		},
	}
	heal.Flags().StringVar(&passwordFile, "password-file", "", "`file` that holds the password of an external server that a dead run used")
	return heal
}
