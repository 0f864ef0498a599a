package faults

import (
	"fmt"
	"slices"
	"strings"
)

// kinds is the table of faults: one line each, in the order in which they are listed.
var kinds = []Fault{
	pause,
	kill,
	restart,
}

// All lists the faults there are.
func All() []Fault { return slices.Clone(kinds) }

// Find gives the fault of that name.
func Find(name string) (Fault, bool) {
	for _, fault := range kinds {
		if fault.Name == name {
			return fault, true
		}
	}
	return Fault{}, false
}

// find is Find with an error that lists what there is.
func find(name string) (Fault, error) {
	fault, ok := Find(name)
	if ok {
		return fault, nil
	}
	names := make([]string, len(kinds))
	for i, known := range kinds {
		names[i] = known.Name
	}
	return Fault{}, fmt.Errorf("there is no fault %q; there are %s", name, strings.Join(names, ", "))
}
