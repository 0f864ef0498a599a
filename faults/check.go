package faults

import (
	"context"
	"fmt"
	"reflect"

	"fencepost.dev/scenarios"
)

// Validate checks every line against all that its target's name stands for in the directory, before a run starts.
func Validate(ctx context.Context, lines []scenarios.Fault, directory Directory) error {
	for i, line := range lines {
		fault, options, err := parse(line)
		if err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
		targets, err := directory.Resolve(ctx, line.On)
		if err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
		for _, target := range targets {
			if err := check(fault, options, target); err != nil {
				return fmt.Errorf("faults[%d]: %w", i, err)
			}
		}
	}
	return nil
}

func check(fault Fault, options any, target Target) error {
	if choosy, ok := target.(Choosy); ok {
		if err := choosy.Refuse(fault); err != nil {
			return err
		}
	}
	if !fault.Supports(target) {
		return fmt.Errorf("%s cannot %s, so it can't take the fault %q", target.Name(), fault.Needs, fault.Name)
	}
	if fitting, ok := options.(Fitting); ok {
		return fitting.Fit(target)
	}
	return nil
}

// parse finds the line's fault and its options, which the scenario's loader has decoded; without any they are the defaults.
func parse(line scenarios.Fault) (Fault, any, error) {
	fault, err := find(line.Do)
	if err != nil {
		return Fault{}, nil, err
	}
	for _, field := range []struct {
		name     string
		negative bool
	}{{"at", line.At < 0}, {"every", line.Every < 0}, {"for", line.For < 0}, {"times", line.Times < 0}} {
		if field.negative {
			return Fault{}, nil, fmt.Errorf("the %s of fault %q is negative", field.name, line.Do)
		}
	}
	if fault.Options == nil {
		if line.Options != nil {
			return Fault{}, nil, fmt.Errorf("fault %q has no options", fault.Name)
		}
		return fault, nil, nil
	}
	options := fault.Options()
	if line.Options == nil {
		return fault, options, nil
	}
	if given, want := reflect.TypeOf(line.Options), reflect.TypeOf(options); given != want {
		return Fault{}, nil, fmt.Errorf("the options of fault %q are a %v, not a %v", fault.Name, given, want)
	}
	return fault, line.Options, nil
}
