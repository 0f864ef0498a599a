package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fencepost.dev/harness"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
)

func listCommand() *cobra.Command {
	var tags []string
	var subjectsToo bool
	c := &cobra.Command{
		Use:   "list",
		Short: "The catalogue of scenarios",
		Example: `  bench list
  bench list --tags anti-pattern
  bench list --subjects             the implementations there are to test`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if subjectsToo {
				return listSubjects(c.OutOrStdout())
			}
			chosen, err := choose(nil, tags)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			for _, s := range chosen {
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, expectation(s.Expect), s.Summary)
			}
			return w.Flush()
		},
	}
	c.Flags().StringSliceVar(&tags, "tags", nil, "only scenarios with one of these tags (`TAG,...`)")
	c.Flags().BoolVar(&subjectsToo, "subjects", false, "list the subjects instead")
	return c
}

func listSubjects(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, s := range harness.Subjects() {
		fmt.Fprintf(w, "%s\t%s\n", s.Name, s.Summary)
	}
	return w.Flush()
}

func showCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "show NAME|FILE.yaml",
		Short:             "One scenario explained",
		Example:           "  bench show lock-pause",
		Args:              oneArgument("a scenario"),
		ValidArgsFunction: completeScenarios,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := scenarios.Open(args[0], harness.Vocabulary())
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(s)
			}
			text, err := s.YAML()
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n%s\n\n", reports.Plain(s.Name), reports.Plain(s.Summary))
			if s.Explains != "" {
				fmt.Fprintf(out, "%s\n\n", reports.Plain(strings.TrimSpace(s.Explains)))
			}
			fmt.Fprintf(out, "Expects %s.\n", expectation(s.Expect))
			if s.Pair != "" {
				fmt.Fprintf(out, "Compare:  bench run %s\n", s.Pair)
			}
			if s.Control != nil {
				fmt.Fprintf(out, "Control:  bench run %s --control    the same without the cause\n", args[0])
			}
			fmt.Fprintf(out, "Run it:   bench run %s\n\nWith all defaults filled in:\n\n%s", args[0], reports.Plain(withoutProse(string(text))))
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the resolved scenario as JSON")
	return c
}

// withoutProse leaves out the explanation, which has been told already.
func withoutProse(text string) string {
	var kept []string
	skipping := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "explains:"):
			skipping = true
		case skipping && (strings.HasPrefix(line, " ") || strings.TrimSpace(line) == ""):
		default:
			skipping = false
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// expectation says in words what a scenario is there to show.
func expectation(e scenarios.Expect) string {
	switch {
	case len(e.Not) > 0:
		return "no violation of " + strings.Join(e.Not, ", ")
	case e.Pass:
		return "pass"
	case len(e.Violation) == 0:
		return "violation"
	}
	return "violation: " + strings.Join(e.Violation, ", ")
}

// choose gives the scenarios of the names (all of the catalogue if there are none) that have one of the tags, if there are.
func choose(names, tags []string, overrides ...scenarios.Override) ([]*scenarios.Scenario, error) {
	all := len(names) == 0
	if all {
		names = scenarios.Names()
	}
	v := harness.Vocabulary()
	var chosen []*scenarios.Scenario
	seen := map[string]bool{}
	for _, name := range names {
		s, err := scenarios.Open(name, v)
		if err != nil {
			return nil, err
		}
		for _, tag := range s.Tags {
			seen[tag] = true
		}
		if len(tags) > 0 && !slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(s.Tags, tag) }) {
			continue
		}
		if len(overrides) > 0 {
			if s, err = scenarios.Open(name, v, overrides...); err != nil {
				return nil, err
			}
		}
		chosen = append(chosen, s)
	}
	for _, tag := range tags {
		if all && !seen[tag] {
			return nil, fmt.Errorf("no scenario has the tag %q; there are %s", tag, strings.Join(sortedKeys(seen), ", "))
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("none of the scenarios named has a tag of %s", strings.Join(tags, ", "))
	}
	return chosen, nil
}
