package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"fencepost.dev/harness"
	"fencepost.dev/reports"
)

func checkCommand() *cobra.Command {
	var limits limitFlags
	var quiet, asJSON bool
	c := &cobra.Command{
		Use:   "check DIR",
		Short: "Decide again from a recorded history, without any server",
		Long: `Reads what a run recorded in its results directory and decides again. Nothing in the directory is changed. A record that is truncated, damaged, edited, or mixed with
another run's is inconclusive, and the file is named: exit status 3. Copy results directories whole.`,
		Example: `  bench check results/lock-pause-20260131-120000
  bench check DIR --engine porcupine`,
		Args: oneArgument("a results directory"),
		RunE: func(c *cobra.Command, args []string) error {
			limit, err := limits.limit()
			if err != nil {
				return err
			}
			material, err := harness.Check(c.Context(), args[0], limit)
			if err != nil {
				return err
			}
			if asJSON {
				if err := reports.Encode(c.OutOrStdout(), &material.Result); err != nil {
					return err
				}
			} else if err := reports.Terminal(c.OutOrStdout(), *material, terminalOptions(c.OutOrStdout(), quiet)); err != nil {
				return err
			}
			if c.Context().Err() != nil {
				return status(exitInterrupted)
			}
			return statusOf(material.Result.Standing())
		},
	}
	limits.add(c.Flags())
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing but errors, and what --json asks for; the exit status tells")
	c.Flags().BoolVar(&asJSON, "json", false, "print verdict.json instead of the telling for people")
	return c
}

func reportCommand() *cobra.Command {
	var quiet bool
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Render a run's reports again",
		Long: `Writes report.html, report.md and junit.xml anew from verdict.json and the recorded history. The verdict stays as it is: bench check decides again.
A verdict.json that is of another run or was edited, or a record that bench check would refuse, is refused: exit status 3.`,
		Example: "  bench report results/lock-pause-20260131-120000",
		Args:    oneArgument("a results directory"),
		RunE: func(c *cobra.Command, args []string) error {
			pages, err := harness.Render(c.Context(), args[0])
			if err != nil {
				return err
			}
			if quiet {
				return nil
			}
			for _, page := range pages {
				fmt.Fprintln(c.OutOrStdout(), page)
			}
			return nil
		},
	}
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing but errors")
	return c
}
