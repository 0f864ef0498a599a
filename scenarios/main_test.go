package scenarios

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// vocabulary is a small world to name things in.
func vocabulary() Vocabulary {
	options := []string{"pool", "deep", "new"}
	return Vocabulary{
		Subjects: []KnownSubject{
			{Name: "lock/valkey", Primitive: "lock", Stores: []string{"valkey"}, Options: options},
			{Name: "flawed/lock/setnx-then-expire", Primitive: "lock", Points: []string{"between-commands"}, Stores: []string{"valkey"}, Options: options},
			{Name: "limiter/token-bucket", Primitive: "limiter", Stores: []string{"valkey"}},
			{Name: "exec:"},
		},
		Workloads: []KnownWorkload{
			{Name: "critical-section", Primitives: []string{"lock", "lease"}, Points: []string{"before-write", "holding", "request-in-flight"},
				Parameters: func() any { return &section{Client: "trusting", Keys: 4, TTL: 10 * time.Second, Wait: time.Second} }},
			{Name: "idle", Primitives: []string{"lock"}, Points: []string{"holding"}},
		},
		Faults: []KnownFault{
			{Name: "pause", Workers: true, Stores: true},
			{Name: "flush", Stores: true},
			{Name: "restart", Workers: true, Stores: true, Options: func() any { return new(restart) }},
		},
		Checks: []KnownCheck{
			{Name: "linearizable", Primitives: []string{"lock", "limiter"}, Severities: []string{"safety", "availability"}},
			{Name: "mutual-exclusion", Primitives: []string{"lock"}},
			{Name: "fencing", Primitives: []string{"lock"}},
			{Name: "lost-update", Primitives: []string{"lock"}},
			{Name: "over-admission", Primitives: []string{"limiter"}},
		},
		Stores: []KnownStore{
			{Name: "valkey", Kinds: []KnownKind{{"standalone", []string{"process", "external"}}, {"sentinel", []string{"process"}}}},
			{Name: "aws", Kinds: []KnownKind{{"emulator", []string{"process"}}}},
		},
		Counters: []string{"granted", "faults", "writes-after-expiry"},
		Metric: func(expression string) (Unit, error) {
			switch {
			case expression == "errors":
				return Share, nil
			case expression == "rate":
				return PerSecond, nil
			case strings.Contains(expression, "p99"):
				return Seconds, nil
			}
			return "", fmt.Errorf("%q is not a metric", expression)
		},
	}
}

// trust is a word that judges itself.
type trust string

func (t *trust) UnmarshalText(text []byte) error {
	switch *t = trust(text); *t {
	case "trusting", "checking":
		return nil
	}
	return fmt.Errorf("%q is neither trusting nor checking", text)
}

func (t trust) MarshalText() ([]byte, error) { return []byte(t), nil }

// section is a workload's parameters, with a field of each sort.
type section struct {
	Client trust         `yaml:"client"`
	Keys   int           `yaml:"keys"`
	TTL    time.Duration `yaml:"ttl"`
	Wait   time.Duration `yaml:"wait"`
	Spread float64       `yaml:"spread"`
	Names  []string      `yaml:"names"`
	Strict *bool         `yaml:"strict"`
	tuning `yaml:",inline"`
	Hidden int
}

type tuning struct {
	Batch uint16 `yaml:"batch"`
}

func (s *section) Validate() error {
	var errs []error
	if s.Keys < 1 {
		errs = append(errs, fmt.Errorf("keys: must be at least 1, is %d", s.Keys))
	}
	if s.TTL < s.Wait/100 {
		errs = append(errs, errors.New("is hopeless"))
	}
	return errors.Join(errs...)
}

type restart struct {
	Persistence *bool         `yaml:"persistence"`
	By          time.Duration `yaml:"by"`
}
