package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"fencepost.dev/harness"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
)

func demoCommand() *cobra.Command {
	var out string
	var quiet bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Why a lock needs a fencing token: two runs told side by side",
		Long: `Runs lock-pause, in which a paused worker writes as if it still held its lock, and lock-pause-fenced, in which such
pauses and harder ones do no harm, and tells both. It ends with the paths of the pages it wrote.`,
		Example: "  bench demo",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if out == "" {
				out = defaultOut("demo")
			}
			return demo(c.Context(), out, quiet, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&out, "out", "", "results `directory`: absent or empty")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the paths of the pages")
	return c
}

func demo(ctx context.Context, out string, quiet bool, stdout, stderr io.Writer) error {
	if err := harness.MakeResults(out); err != nil {
		return err
	}
	seed := harness.NewSeed()
	var told [2]*reports.Material
	var links [2]string
	for i, name := range []string{"lock-pause", "lock-pause-fenced"} {
		override, err := scenarios.Flag("seed", fmt.Sprint(seed))
		if err != nil {
			return err
		}
		s, err := scenarios.Open(name, harness.Vocabulary(), override)
		if err != nil {
			return err
		}
		if !quiet {
			fmt.Fprintf(stderr, "%s: %s\n", s.Name, s.Summary)
		}
		progress := reports.NewProgress(stderr, terminalOptions(stderr, quiet))
		told[i], err = harness.Run(ctx, harness.Options{
			Scenario: s, Out: filepath.Join(out, name), Progress: progress.Show,
			Command: "bench run " + name,
		})
		progress.Done()
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return status(exitInterrupted)
		}
		links[i] = filepath.Join(name, "report.html")
	}
	page := filepath.Join(out, "index.html")
	if err := reports.WriteStory(page, *told[0], *told[1], links[0], links[1]); err != nil {
		return err
	}
	if err := reports.StoryTerminal(stdout, *told[0], *told[1], terminalOptions(stdout, quiet)); err != nil {
		return err
	}
	for _, path := range []string{page, filepath.Join(out, links[0]), filepath.Join(out, links[1])} {
		fmt.Fprintln(stdout, path)
	}
	for _, m := range told {
		if err := statusOf(m.Result.Standing()); err != nil {
			return err
		}
	}
	return nil
}
