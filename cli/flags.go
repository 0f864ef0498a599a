package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fencepost.dev/harness"
	"fencepost.dev/models"
	"fencepost.dev/scenarios"
	"fencepost.dev/topology/endpoint"
)

// overrideFlags are the flags that stand for fields of the scenario.
type overrideFlags struct {
	set []string
}

// add declares the flags. What was given is read from the flag set, so that a flag that wasn't changes nothing.
func (o *overrideFlags) add(f *pflag.FlagSet) {
	f.String("rate", "", "turns per second (`N`) over all workers, in place of a constant arrival's")
	f.String("for", "", "how long (`DURATION`) load goes on, in place of a constant arrival's")
	f.String("workers", "", "number (`N`) of worker processes")
	f.String("clients", "", "number (`N`) of clients per worker")
	f.String("subject", "", "the implementation under test, such as lock/valkey")
	f.String("topology", "", "the kind (`KIND`) of the Valkey topology, such as standalone")
	f.String("provider", "", "who runs the stores: process, external")
	f.String("seed", "", "number (`N`) that decides everything random")
	f.String("expect", "", "pass or violation, in place of what the scenario expects")
	f.StringArrayVar(&o.set, "set", nil, "any other field: `path=value`, such as faults=[] or workload.ttl=1s")
}

// overrideNames are the flags of add that have a name of their own, in the order in which they apply.
var overrideNames = []string{"subject", "topology", "provider", "workers", "clients", "rate", "for", "seed", "expect"}

// given turns the flags that were given into overrides.
func (o *overrideFlags) given(f *pflag.FlagSet) ([]scenarios.Override, error) {
	var list []scenarios.Override
	for _, name := range overrideNames {
		if flag := f.Lookup(name); flag != nil && flag.Changed {
			override, err := scenarios.Flag(name, flag.Value.String())
			if err != nil {
				return nil, err
			}
			list = append(list, override)
		}
	}
	for _, assignment := range o.set {
		override, err := scenarios.Set(assignment)
		if err != nil {
			return nil, err
		}
		list = append(list, override)
	}
	return list, nil
}

// externalFlags say where a server is that is already there.
type externalFlags struct {
	valkey, username, passwordFile string
	tls                            bool
	ca, serverName                 string
	allow                          bool
}

func (e *externalFlags) add(f *pflag.FlagSet) {
	f.StringVar(&e.valkey, "valkey", "", "`HOST:PORT[,...]` of a Valkey that is already there, with --provider external")
	f.StringVar(&e.username, "username", "", "ACL `user` at the external server; the password is taken from $"+endpoint.PasswordVariable+" or --password-file")
	f.StringVar(&e.passwordFile, "password-file", "", "`file` that holds the external server's password")
	f.BoolVar(&e.tls, "tls", false, "speak TLS to the external server")
	f.StringVar(&e.ca, "tls-ca", "", "`file` with the CA that signed the external server's certificate")
	f.StringVar(&e.serverName, "tls-server-name", "", "`name` that the external server's certificate must have")
	f.BoolVar(&e.allow, "allow-faults", false, "permit faults that a client can cause on external stores; none of those there are today is one")
}

// endpoints gives the external stores, or nil if none was named.
func (e *externalFlags) endpoints() (map[string]endpoint.Endpoint, error) {
	if e.valkey == "" {
		if e.tls || e.ca != "" || e.serverName != "" || e.username != "" || e.passwordFile != "" {
			return nil, errors.New("--tls, --username and --password-file belong to a server that is already there: say which with --valkey HOST:PORT")
		}
		return nil, nil
	}
	if e.username != "" && e.passwordFile == "" && os.Getenv(endpoint.PasswordVariable) == "" {
		return nil, fmt.Errorf("--username %s needs a password: set $%s, or name a file with --password-file", e.username, endpoint.PasswordVariable)
	}
	password, err := readPassword(e.passwordFile)
	if err != nil {
		return nil, err
	}
	server := endpoint.Endpoint{Addresses: strings.Split(e.valkey, ","), Username: e.username, Password: password}
	if e.tls || e.ca != "" || e.serverName != "" {
		server.TLS = &endpoint.TLS{CAFile: e.ca, ServerName: e.serverName}
	}
	return map[string]endpoint.Endpoint{"valkey": server}, nil
}

// readPassword gives the password in the file, or without a file that of the environment.
func readPassword(file string) (string, error) {
	if file == "" {
		return os.Getenv(endpoint.PasswordVariable), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// limitFlags bound what deciding may cost.
type limitFlags struct {
	engine string
	time   time.Duration
	memory string
}

func (l *limitFlags) add(f *pflag.FlagSet) {
	f.StringVar(&l.engine, "engine", "", "who (`ENGINE`) decides linearizability: "+strings.Join(harness.Engines(), ", ")+
		"; without it, porcupine up to 4,000 operations on an object, and stream beyond or where porcupine can't")
	f.DurationVar(&l.time, "check-time", time.Minute, "how long one check may take before it is inconclusive")
	f.StringVar(&l.memory, "check-memory", "1GiB", "how much memory one check may take before it is inconclusive")
}

func (l *limitFlags) limit() (models.Limit, error) {
	memory, err := parseBytes(l.memory)
	if err != nil {
		return models.Limit{}, fmt.Errorf("--check-memory: %w", err)
	}
	if l.time <= 0 {
		return models.Limit{}, fmt.Errorf("--check-time: must be positive, is %s", l.time)
	}
	engine, err := harness.ParseEngine(l.engine)
	if err != nil {
		return models.Limit{}, fmt.Errorf("--engine: %w", err)
	}
	return models.Limit{Time: l.time, Memory: memory, Engine: engine}, nil
}

// parseBytes reads 512MiB, 1GiB, 2GB or a plain number of bytes.
func parseBytes(s string) (int64, error) {
	units := []struct {
		suffix string
		size   float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}
	for _, unit := range units {
		number, found := strings.CutSuffix(s, unit.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if bytes := n * unit.size; err == nil && bytes >= 1 && bytes < math.MaxInt64 {
			return int64(bytes), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is no size: write 512MiB or 1GiB", s)
}

// completeScenarios offers the catalogue to the shell.
func completeScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return scenarios.Names(), cobra.ShellCompDirectiveDefault
}
