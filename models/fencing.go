package models

import (
	"context"
	"fmt"
	"sort"

	"fencepost.dev/history"
)

var fencing = Check{
	Name: "fencing",
	About: "The resource never accepts an attempt with a token lower than one it has seen, or with one it has seen under " +
		"another grant; where there are no tokens, never one of a grant that another followed there.",
	Primitives: []string{"lock", "lease"},
	Prompt:     true,
	Run: func(ctx context.Context, in *Input) Report {
		return fence(ctx, in, newFenceRules())
	},
}

// fenceRules compare an attempt that was accepted with what the resource had seen. They are fields so that a test can break
// each.
type fenceRules struct {
	// lower: it carries a token below the highest seen.
	lower func(attempt, highest *history.Operation) bool
	// shared: its token was seen under another grant.
	shared func(attempt, seen *history.Operation) bool
	// outlived: neither carries a token, and the grant of the one seen was asked for after this one's had been given. So
	// this one's was over before.
	outlived func(attemptGrant, seenGrant *history.Operation) bool
}

func newFenceRules() fenceRules {
	return fenceRules{
		lower:    func(attempt, highest *history.Operation) bool { return attempt.Token() < highest.Token() },
		shared:   func(attempt, seen *history.Operation) bool { return attempt.Grant() != seen.Grant() },
		outlived: func(attemptGrant, seenGrant *history.Operation) bool { return attemptGrant.Return < seenGrant.Call },
	}
}

// fenced is what the resource has seen of one key.
type fenced struct {
	highest *history.Operation           // the attempt with the highest token
	tokens  map[int64]*history.Operation // the first attempt with each
	latest  *history.Operation           // the attempt whose grant was asked for last, of those without a token
	leads   []*history.Operation         // all that were latest, in order
}

// fence goes through the resource's log in its own order. Attempts under no grant, such as the harness's final reads, are not
// anybody's to fence.
func fence(ctx context.Context, in *Input, rules fenceRules) Report {
	var report Report
	acquires := map[history.GrantID]*history.Operation{}
	for i := range in.Operations {
		if op := &in.Operations[i]; op.Kind == history.Acquire && (op.Outcome == history.OK || op.Outcome == history.Unknown) {
			acquires[op.Grant()] = op
		}
	}
	keys := map[uint32]*fenced{}
	for i := range in.Resource {
		attempt := &in.Resource[i]
		if i%patience == 0 && ctx.Err() != nil {
			return report.cutShort(outOfTime(ctx))
		}
		if !isAttempt(attempt) || attempt.Grant() == 0 {
			continue
		}
		grant := acquires[attempt.Grant()]
		if grant == nil && attempt.Token() == 0 {
			continue // by neither can its place be told
		}
		report.Decided++
		seen := keys[attempt.Key]
		if seen == nil {
			seen = &fenced{tokens: map[int64]*history.Operation{}}
			keys[attempt.Key] = seen
		}
		accepted := attempt.Outcome == history.OK
		if attempt.Token() != 0 {
			first := seen.tokens[attempt.Token()]
			switch {
			case accepted && seen.highest != nil && rules.lower(attempt, seen.highest):
				report.add(staleAttempt(in.Names, acquires, attempt, seen.highest,
					fmt.Sprintf("with token %d after token %d had been seen", attempt.Token(), seen.highest.Token())))
			case accepted && first != nil && rules.shared(attempt, first):
				report.add(staleAttempt(in.Names, acquires, attempt, first,
					fmt.Sprintf("with token %d, which had been seen under another grant", attempt.Token())))
			}
			if first == nil {
				seen.tokens[attempt.Token()] = attempt
			}
			if seen.highest == nil || attempt.Token() > seen.highest.Token() {
				seen.highest = attempt
			}
			continue
		}
		if accepted && seen.latest != nil && rules.outlived(grant, acquires[seen.latest.Grant()]) {
			// The first grant that followed tells the story best: it is the one that the late holder made way for.
			first := sort.Search(len(seen.leads), func(i int) bool { return rules.outlived(grant, acquires[seen.leads[i].Grant()]) })
			report.add(staleAttempt(in.Names, acquires, attempt, seen.leads[first], "under a grant that another had followed there"))
		}
		if seen.latest == nil || grant.Call > acquires[seen.latest.Grant()].Call {
			seen.latest = attempt
			seen.leads = append(seen.leads, attempt)
		}
	}
	return report
}

// isAttempt reports whether an operation of the resource's log is one that was decided.
func isAttempt(op *history.Operation) bool {
	return (op.Kind == history.Read || op.Kind == history.Write) && (op.Outcome == history.OK || op.Outcome == history.Refused)
}

func staleAttempt(names *history.Names, acquires map[history.GrantID]*history.Operation, attempt, seen *history.Operation, why string) Finding {
	var p proof
	if grant := acquires[attempt.Grant()]; grant != nil {
		p.show(grant, fmt.Sprintf("the grant that the late %s was made under, given by %s", attempt.Kind, instant(grant.Return)))
	}
	if grant := acquires[seen.Grant()]; grant != nil {
		p.show(grant, "the grant that had followed it, asked for at "+instant(grant.Call))
	}
	p.show(seen, fmt.Sprintf("the resource saw the later grant here, as its attempt number %d", seen.Sequence()))
	p.show(attempt, fmt.Sprintf("accepted all the same, as attempt number %d", attempt.Sequence()))
	key := names.Key(attempt.Key)
	return p.finding(key, attempt.Return, fmt.Sprintf("The resource accepted a %s of %s from %s at %s %s.",
		attempt.Kind, key, names.ClientName(attempt), instant(attempt.Return), why))
}
