package harness

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"fencepost.dev/scenarios"
	"fencepost.dev/topology/endpoint"
)

// runnerVariable makes the test binary a bench of its own: it runs the scenario file of that name, with results beside it.
const runnerVariable = "FENCEPOST_TEST_RUN"

// foreignVariable gives that bench a Valkey that is already there, by its address.
const foreignVariable = "FENCEPOST_TEST_VALKEY"

func TestMain(m *testing.M) {
	if code, served := ServeRole(); served {
		os.Exit(code)
	}
	if file := os.Getenv(runnerVariable); file != "" {
		os.Exit(runner(file))
	}
	if url := os.Getenv(joinVariable); url != "" {
		os.Exit(agent(url))
	}
	goleak.VerifyTestMain(m)
}

// agent is what `bench worker --join` does.
func agent(url string) int {
	if err := Join(context.Background(), url, os.Getenv("FENCEPOST_TOKEN"), ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runner is what `bench run FILE` does, as far as tests need it.
func runner(file string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := scenarios.Open(file, Vocabulary())
	if err == nil {
		options := Options{Scenario: s, Out: resultsOf(file)}
		if address := os.Getenv(foreignVariable); address != "" {
			options.External = map[string]endpoint.Endpoint{"valkey": {
				Addresses: []string{address}, Password: os.Getenv(endpoint.PasswordVariable),
			}}
		}
		_, err = Run(ctx, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func resultsOf(file string) string { return filepath.Join(filepath.Dir(file), "results") }

// scenarioOf gives a scenario of the catalogue with overrides, for a run of a test's own length.
func scenarioOf(t *testing.T, name string, assignments ...string) *scenarios.Scenario {
	t.Helper()
	var overrides []scenarios.Override
	for _, a := range assignments {
		o, err := scenarios.Set(a)
		if err != nil {
			t.Fatal(err)
		}
		overrides = append(overrides, o)
	}
	s, err := scenarios.Open(name, Vocabulary(), overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
