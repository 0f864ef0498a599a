package models

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"fencepost.dev/history"
)

var tokenOrder = Check{
	Name:       "token-order",
	About:      "Fencing tokens are unique, and a later grant's is higher.",
	Primitives: []string{"lock", "lease"},
	Run: func(ctx context.Context, in *Input) Report {
		return orderTokens(ctx, in, newTokenRules())
	},
}

// tokenRules compare two grants of one key. They are fields so that a test can break each.
type tokenRules struct {
	missing func(grant *history.Operation) bool
	same    func(a, b *history.Operation) bool // given different grants
	before  func(a, b *history.Operation) bool // a was definitely granted before b was asked for
	rises   func(a, b *history.Operation) bool // given that order
}

func newTokenRules() tokenRules {
	return tokenRules{
		missing: func(grant *history.Operation) bool { return grant.Token() == 0 },
		same:    func(a, b *history.Operation) bool { return a.Token() == b.Token() },
		before:  func(a, b *history.Operation) bool { return a.Return < b.Call },
		rises:   func(a, b *history.Operation) bool { return a.Token() < b.Token() },
	}
}

// orderTokens compares each grant with the one of highest token among all that were definitely granted before it was asked
// for. Grants whose answer got lost have no known token.
func orderTokens(ctx context.Context, in *Input, rules tokenRules) Report {
	var report Report
	if !in.Contract.Tokens {
		return Report{Verdict: Inconclusive, Reason: "the subject gives no fencing tokens, so there is no order of them to judge"}
	}
	byKey := map[uint32][]*history.Operation{}
	for i := range in.Operations {
		op := &in.Operations[i]
		if op.Kind == history.Acquire && op.Outcome == history.OK {
			byKey[op.Key] = append(byKey[op.Key], op)
		}
	}
	for _, key := range sortedKeys(byKey) {
		grants := byKey[key] // by Call
		report.Decided += len(grants)
		byReturn := slices.Clone(grants)
		slices.SortStableFunc(byReturn, func(a, b *history.Operation) int { return cmp.Compare(a.Return, b.Return) })
		seen := map[int64]*history.Operation{}
		var highest *history.Operation
		answered := 0
		for i, grant := range grants {
			if i%patience == 0 && ctx.Err() != nil {
				return report.cutShort(outOfTime(ctx))
			}
			for answered < len(byReturn) && rules.before(byReturn[answered], grant) {
				if earlier := byReturn[answered]; highest == nil || earlier.Token() > highest.Token() {
					highest = earlier
				}
				answered++
			}
			twin := seen[grant.Token()]
			switch {
			case rules.missing(grant):
				report.add(tokenFinding(in.Names, nil, grant, "without a fencing token, which its contract promises"))
				continue
			case twin != nil && rules.same(twin, grant):
				report.add(tokenFinding(in.Names, twin, grant, fmt.Sprintf("with token %d, which another grant has", grant.Token())))
			case highest != nil && !rules.rises(highest, grant):
				report.add(tokenFinding(in.Names, highest, grant, fmt.Sprintf("with token %d after a grant with token %d", grant.Token(), highest.Token())))
			}
			seen[grant.Token()] = grant
		}
	}
	return report
}

func tokenFinding(names *history.Names, earlier, grant *history.Operation, what string) Finding {
	var p proof
	if earlier != nil {
		p.show(earlier, fmt.Sprintf("granted with token %d by %s", earlier.Token(), instant(earlier.Return)))
	}
	p.show(grant, fmt.Sprintf("asked for at %s, granted with token %d", instant(grant.Call), grant.Token()))
	key := names.Key(grant.Key)
	return p.finding(key, grant.Return, fmt.Sprintf("%s was granted %s at %s %s.", names.ClientName(grant), key, instant(grant.Return), what))
}

func sortedKeys[V any](m map[uint32]V) []uint32 {
	keys := make([]uint32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
