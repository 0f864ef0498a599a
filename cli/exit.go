package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"fencepost.dev/harness"
	"fencepost.dev/reports"
)

// Exit statuses: a contract that CI jobs rely on.
const (
	exitExpected     = 0   // as expected, thresholds met
	exitContrary     = 1   // not as expected, or a threshold is missed
	exitUsage        = 2   // usage or configuration error; nothing was run
	exitInconclusive = 3   // the run proves nothing
	exitInterrupted  = 130 // SIGINT or SIGTERM; what there is was written
)

// status is an error that only sets the exit status: what there is to say has been said.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// statusOf is the exit status for what a run came to.
func statusOf(s reports.Standing) error {
	switch s {
	case reports.AsExpected:
		return nil
	case reports.Inconclusive, reports.Skipped:
		return status(exitInconclusive)
	}
	return status(exitContrary)
}

// execute runs a command line to its exit status. Errors are one sentence on stderr, without a usage dump.
func execute(root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	told := context.AfterFunc(ctx, func() {
		stop() // a second signal ends us at once, and the guard cleans up
		fmt.Fprintf(stderr, "\n%s: interrupted: ending in order, and what there is is kept; a second Ctrl-C ends at once\n", root.Name())
	})
	defer told() // before stop, which ends ctx too
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceUsage, root.SilenceErrors = true, true
	err := root.ExecuteContext(ctx)
	var s status
	switch {
	case err == nil:
		return exitExpected
	case errors.As(err, &s):
		return int(s)
	}
	fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err)
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, harness.ErrUnproven):
		return exitInconclusive
	}
	return exitUsage
}
