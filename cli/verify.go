package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fencepost.dev/harness"
	"fencepost.dev/models"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
)

func verifyCommand() *cobra.Command {
	v := verification{}
	c := &cobra.Command{
		Use:   "verify [NAME|FILE.yaml …]",
		Short: "Run many scenarios: one summary, one junit.xml",
		Long: `Runs the scenarios named, or all of the catalogue, one after another, and says of each whether it came out as expected.

Exit status: 0 all as expected; 1 one is contrary; 3 some are inconclusive and none is contrary, or nothing ran. What this
machine or topology can't do is skipped, with the reason.`,
		Example: `  bench verify --tags lock
  bench verify --tags lock --controls           also each without its cause: nothing may be found
  bench verify lock-pause --repeat 10
  bench verify --tags lock --out results/ci     suite.json, junit.xml and index.html for CI`,
		ValidArgsFunction: completeScenarios,
		RunE: func(c *cobra.Command, args []string) error {
			overrides, err := v.session.overrides.given(c.Flags())
			if err != nil {
				return err
			}
			chosen, err := choose(args, v.tags, overrides...)
			if err != nil {
				return err
			}
			if chosen, err = distinct(chosen, c.ErrOrStderr()); err != nil {
				return err
			}
			v.flags = c.Flags()
			command := "bench verify"
			for _, name := range args {
				command += " " + shellQuote(name)
			}
			v.suite.Command = commandLine(command, c.Flags(), outputFlags)
			return v.run(c.Context(), chosen, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	v.session.add(c.Flags())
	c.Flags().Lookup("json").Usage = "print suite.json instead of the telling for people"
	c.Flags().StringSliceVar(&v.tags, "tags", nil, "only scenarios with one of these tags (`TAG,...`)")
	c.Flags().IntVar(&v.repeat, "repeat", 1, "run each this number (`N`) of times")
	c.Flags().BoolVar(&v.controls, "controls", false, "run each violation scenario's control too, which must show none of its findings")
	c.Flags().BoolVar(&v.noSkip, "no-skip", false, "a skipped scenario is contrary")
	return c
}

// distinct leaves out a scenario that was named before: results have a directory a scenario. Two different ones of a name can't
// have one.
func distinct(chosen []*scenarios.Scenario, stderr io.Writer) (kept []*scenarios.Scenario, err error) {
	seen := map[string]*scenarios.Scenario{}
	for _, s := range chosen {
		first, again := seen[s.Name]
		switch {
		case !again:
			seen[s.Name] = s
			kept = append(kept, s)
		case !reflect.DeepEqual(first, s):
			return nil, fmt.Errorf("two different scenarios are called %s, and results have a directory a name: rename one", s.Name)
		default:
			fmt.Fprintf(stderr, "%s is named twice and runs once: --repeat N runs each N times\n", s.Name)
		}
	}
	return kept, nil
}

// verification is one call of verify.
type verification struct {
	session  session
	tags     []string
	repeat   int
	controls bool
	noSkip   bool

	flags *pflag.FlagSet
	suite reports.Suite
	out   string
}

func (v *verification) run(ctx context.Context, chosen []*scenarios.Scenario, stdout, stderr io.Writer) error {
	if v.repeat < 1 {
		return fmt.Errorf("--repeat: must be at least 1, is %d", v.repeat)
	}
	v.out = v.session.out
	if v.out == "" {
		v.out = defaultOut("verify")
	}
	if err := harness.MakeResults(v.out); err != nil {
		return err
	}
	v.suite.Schema, v.suite.Version, v.suite.Started, v.suite.NoSkip = reports.SuiteSchema, harness.Version(), time.Now(), v.noSkip
	// What has run is written, whatever ends the rest.
	failed := v.entries(ctx, chosen, stderr)
	v.suite.Elapsed = time.Since(v.suite.Started).Seconds()
	v.suite.CutShort = ctx.Err() != nil || failed != nil
	if err := reports.WriteSuite(v.out, v.suite); err != nil {
		return err
	}
	if err := v.tell(stdout); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return status(exitInterrupted)
	case failed != nil:
		return failed
	}
	return statusOf(v.suite.Standing())
}

func (v *verification) tell(stdout io.Writer) error {
	if v.session.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(v.suite)
	}
	o := terminalOptions(stdout, v.session.quiet)
	o.Dir = v.out
	return reports.SuiteTerminal(stdout, v.suite, o)
}

// entries runs each scenario, and its control if asked to, until one can't be run at all.
func (v *verification) entries(ctx context.Context, chosen []*scenarios.Scenario, stderr io.Writer) error {
	for _, s := range chosen {
		if err := v.entry(ctx, s, s.Name, stderr); err != nil {
			return err
		}
		if !v.controls || s.Control == nil || s.Expect.Pass {
			continue
		}
		control, err := scenarios.Control(s, harness.Vocabulary())
		if err != nil {
			return err
		}
		if err := v.entry(ctx, control, s.Name, stderr); err != nil {
			return err
		}
	}
	return nil
}

// entry runs one scenario, or the control of the one it is of, as often as asked, unless the run is cut short.
func (v *verification) entry(ctx context.Context, s *scenarios.Scenario, of string, stderr io.Writer) error {
	e := reports.Entry{Scenario: of, Summary: s.Summary, Control: s.Name != of, Expected: expectation(s.Expect)}
	defer func() { v.suite.Entries = append(v.suite.Entries, e) }()
	for n := 1; n <= v.repeat && ctx.Err() == nil; n++ {
		r, skipped, err := v.once(ctx, s, of, n, stderr)
		if err != nil {
			return err
		}
		if skipped != "" {
			e.Skipped = skipped
			return nil
		}
		e.Runs = append(e.Runs, r)
	}
	return nil
}

// once runs a scenario once. What can't be done here is skipped with a reason; what can't be decided is inconclusive.
func (v *verification) once(ctx context.Context, s *scenarios.Scenario, of string, n int, stderr io.Writer) (r reports.Repeat, skipped string, err error) {
	options, err := v.session.options(s)
	if err != nil {
		return r, "", err
	}
	dir := s.Name
	if v.repeat > 1 {
		dir = filepath.Join(s.Name, strconv.Itoa(n))
	}
	options.Out = filepath.Join(v.out, dir)
	options.Command = commandLine("bench run "+shellQuote(of), v.flags, ofSuite)
	if s.Name != of {
		options.Command += " --control"
	}
	progress := reports.NewProgress(stderr, terminalOptions(stderr, v.session.quiet))
	options.Progress = func(t reports.Tick) {
		t.Doing = s.Name + suffix(t.Doing)
		progress.Show(t)
	}
	started := time.Now()
	material, err := harness.Run(ctx, options)
	progress.Done()
	r = reports.Repeat{Number: n, Dir: dir, Elapsed: time.Since(started).Seconds()}
	var cannot *harness.CannotError
	switch {
	case errors.As(err, &cannot):
		os.Remove(options.Out) // only if it is empty
		return r, cannot.Error(), nil
	case errors.Is(err, harness.ErrUnproven):
		r.Verdict, r.Standing, r.Reasons = models.Inconclusive, reports.Inconclusive, []string{err.Error()}
	case err != nil:
		return r, "", fmt.Errorf("%s: %w", s.Name, err)
	default:
		r.Verdict, r.Standing, r.Reasons = material.Result.Verdict, material.Result.Standing(), material.Result.Reasons
	}
	if !v.session.quiet {
		fmt.Fprintf(stderr, "%-44s %-13s %-13s %5.1f s\n", s.Name+repetition(n, v.repeat), r.Verdict, r.Standing, r.Elapsed)
	}
	return r, "", nil
}

func suffix(doing string) string {
	if doing == "" {
		return ""
	}
	return ": " + doing
}

func repetition(n, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf(" %d/%d", n, of)
}
