package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fencepost.dev/harness"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
)

// session is what the commands that run scenarios have in common.
type session struct {
	overrides overrideFlags
	external  externalFlags
	limits    limitFlags
	out       string
	listen    string
	remote    int
	quiet     bool
	json      bool
	stop      bool // on a violation
}

func (s *session) add(f *pflag.FlagSet) {
	s.overrides.add(f)
	s.external.add(f)
	s.limits.add(f)
	f.StringVar(&s.out, "out", "", "results `directory`: absent or empty; without it, one of its own under results/")
	f.StringVar(&s.listen, "listen", "", "`address` at which workers on other machines may join (bench worker --join)")
	f.IntVar(&s.remote, "remote", 0, "wait for this number (`N`) of agents on other machines and run the workers there")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "print nothing but errors, and what --json asks for; the exit status tells")
	f.BoolVar(&s.json, "json", false, "print verdict.json instead of the telling for people")
}

func runCommand() *cobra.Command {
	var s session
	var control bool
	c := &cobra.Command{
		Use:   "run NAME|FILE.yaml",
		Short: "Run one scenario and decide",
		Example: `  bench run lock-pause
  bench run lock-pause --set 'faults=[]'        the same without its fault: proves nothing, and says so
  bench run lock-baseline --rate 500 --for 10s
  bench run lock-delete-without-owner --for 10m --stop-on-violation
  bench run lock-baseline --provider external --valkey 127.0.0.1:6379
  bench run my-scenario.yaml --out /tmp/result`,
		Args:              oneArgument("a scenario: a name of `bench list`, or a file"),
		ValidArgsFunction: completeScenarios,
		RunE: func(c *cobra.Command, args []string) error {
			overrides, err := s.overrides.given(c.Flags())
			if err != nil {
				return err
			}
			scenario, err := scenarios.Open(args[0], harness.Vocabulary(), overrides...)
			if err != nil {
				return err
			}
			if control {
				if scenario, err = scenarios.Control(scenario, harness.Vocabulary()); err != nil {
					return err
				}
			}
			options, err := s.options(scenario)
			if err != nil {
				return err
			}
			options.Command = commandLine("bench run "+shellQuote(args[0]), c.Flags(), ofSuite)
			return s.runOne(c.Context(), options, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	s.add(c.Flags())
	c.Flags().BoolVar(&s.stop, "stop-on-violation", false, "decide linearizability while the run goes, and end the load when a violation is certain")
	c.Flags().BoolVar(&control, "control", false, "run the scenario's control: the same without the cause")
	return c
}

// options turns the flags into those of a run.
func (s *session) options(scenario *scenarios.Scenario) (harness.Options, error) {
	limit, err := s.limits.limit()
	if err != nil {
		return harness.Options{}, err
	}
	external, err := s.external.endpoints()
	if err != nil {
		return harness.Options{}, err
	}
	if s.remote < 0 {
		return harness.Options{}, fmt.Errorf("--remote: must be at least 1, is %d", s.remote)
	}
	if s.remote > 0 && s.listen == "" {
		return harness.Options{}, fmt.Errorf("--remote %d needs --listen HOST:PORT, an address at which the agents can join", s.remote)
	}
	if s.listen != "" && s.remote == 0 {
		return harness.Options{}, fmt.Errorf("--listen %s needs --remote N, the number of agents to wait for", s.listen)
	}
	out := s.out
	if out == "" {
		out = defaultOut(scenario.Name)
	}
	return harness.Options{
		Scenario: scenario, Out: out, Listen: s.listen, Remote: s.remote,
		External: external, AllowFaults: s.external.allow, Limit: limit, StopOnViolation: s.stop,
	}, nil
}

// defaultOut is a directory under results/ that doesn't exist yet.
func defaultOut(name string) string {
	base := filepath.Join("results", name+"-"+time.Now().Format("20060102-150405"))
	for n := 2; ; n++ {
		if _, err := os.Lstat(base); err != nil {
			return base // it isn't there; if something else is wrong, making it says what
		}
		base = fmt.Sprintf("%s-%d", strings.TrimSuffix(base, fmt.Sprintf("-%d", n-1)), n)
	}
}

// runOne runs, tells, and turns the outcome into an exit status.
func (s *session) runOne(ctx context.Context, options harness.Options, stdout, stderr io.Writer) error {
	progress := reports.NewProgress(stderr, terminalOptions(stderr, s.quiet))
	options.Progress = progress.Show
	options.Notice = func(line string) {
		progress.Done()
		fmt.Fprintln(stderr, line)
	}
	material, err := harness.Run(ctx, options)
	progress.Done()
	if err != nil {
		if s.out == "" {
			os.Remove(options.Out) // made for this run; it goes only if nothing is in it
		}
		return err
	}
	if s.json {
		if err := reports.Encode(stdout, &material.Result); err != nil {
			return err
		}
	} else {
		o := terminalOptions(stdout, s.quiet)
		o.Dir = options.Out
		if err := reports.Terminal(stdout, *material, o); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return status(exitInterrupted)
	}
	return statusOf(material.Result.Standing())
}

// outputFlags only concern what is written. ofSuite are those that one run of a verification repeats without, its seed being
// told by the run itself.
var (
	outputFlags = []string{"out", "json", "quiet"}
	ofSuite     = append([]string{"seed", "tags", "repeat", "controls", "no-skip"}, outputFlags...)
)

// commandLine is the command that repeats a run or a verification: what was given, but for the flags without. Passwords are
// never flags, so there are none in it.
func commandLine(command string, f *pflag.FlagSet, without []string) string {
	words := []string{command}
	f.Visit(func(flag *pflag.Flag) {
		if slices.Contains(without, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if slice, ok := flag.Value.(pflag.SliceValue); ok {
			values = slice.GetSlice()
		}
		for _, v := range values {
			switch {
			case flag.Value.Type() == "bool":
				words = append(words, "--"+flag.Name+"="+v)
			default:
				words = append(words, "--"+flag.Name, shellQuote(v))
			}
		}
	})
	return strings.Join(words, " ")
}

// shellQuote makes a word that a POSIX shell reads back as it is.
func shellQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
