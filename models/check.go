package models

import (
	"context"
)

// Check judges a recorded history by one rule. Run does not modify its Input and is safe to call concurrently. A cancelled
// context or an exhausted Limit gives Inconclusive with a reason, never a pass; a panic inside is turned into Inconclusive by
// Judge.
type Check struct {
	// Name is how scenarios call it, such as "mutual-exclusion".
	Name string
	// About says in a sentence what holds if it passes.
	About string
	// Primitives lists those it applies to.
	Primitives []string
	// Severities are those that its findings have, for expectations that name one; nil: its findings have none.
	Severities []Severity
	// Prompt: it assumes that clients act promptly where the resource is unfenced or the store is away; a long stall makes a
	// violation of it inconclusive in a scenario that expects it to pass (docs/semantics.md, "Stalls").
	Prompt bool
	// expires: it rests on time-to-lives, and so on the real-time clocks of stores.
	expires bool
	// needsCalls and needsAttempts: what is missing of the clients' operations, or of the witness's log, can make an honest
	// subject look like one that broke it. A violation of any other check stands on what is there.
	needsCalls, needsAttempts bool

	Run func(context.Context, *Input) Report
}
