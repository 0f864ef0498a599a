package models

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"fencepost.dev/history"
)

var mutualExclusion = Check{
	Name:       "mutual-exclusion",
	About:      "No two clients are certain at once to hold the same lock.",
	Primitives: []string{"lock", "lease"},
	expires:    true,
	needsCalls: true, // a release may be missing
	Run: func(ctx context.Context, in *Input) Report {
		return excludeMutually(ctx, in, newCertainty(in), overlap)
	},
}

// overlap: later began, by the clock of the run, while earlier was certain.
func overlap(earlier, later stretch) bool { return later.from < earlier.to }

// excludeMutually sweeps the certain stretches of each key in the order in which they begin. Among those that began before,
// the one that ends last decides, or the last of another client.
func excludeMutually(ctx context.Context, in *Input, c certainty, overlap func(earlier, later stretch) bool) Report {
	type held struct {
		stretch
		hold *hold
	}
	var report Report
	var all []held
	for _, h := range c.holds(in) {
		report.Decided++
		for _, s := range h.stretches {
			all = append(all, held{s, h})
		}
	}
	slices.SortStableFunc(all, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.hold.acquire.Key, b.hold.acquire.Key), cmp.Compare(a.from, b.from))
	})
	// last is the stretch that ends last, and next the one that does so among those of other clients than last's.
	var last, next held
	for i, now := range all {
		if i%patience == 0 && ctx.Err() != nil {
			return report.cutShort(outOfTime(ctx))
		}
		if i == 0 || all[i-1].hold.acquire.Key != now.hold.acquire.Key {
			last, next = held{}, held{}
		}
		rival := last
		if last.hold != nil && sameClient(last.hold.acquire, now.hold.acquire) {
			rival = next
		}
		if rival.hold != nil && overlap(rival.stretch, now.stretch) {
			report.add(bothCertain(in.Names, rival.hold, rival.stretch, now.hold, now.stretch))
		}
		switch {
		case last.hold == nil:
			last = now
		case sameClient(last.hold.acquire, now.hold.acquire):
			if now.to > last.to {
				last = now
			}
		case now.to > last.to:
			last, next = now, last
		case next.hold == nil || now.to > next.to:
			next = now
		}
	}
	return report
}

func bothCertain(names *history.Names, a *hold, as stretch, b *hold, bs stretch) Finding {
	first, second := names.ClientName(a.acquire), names.ClientName(b.acquire)
	key := names.Key(a.acquire.Key)
	var p proof
	tell := func(h *hold, s stretch, who string) {
		note := fmt.Sprintf("granted at %s", instant(h.acquire.Return))
		if s.by == h.acquire {
			note = fmt.Sprintf("%s may rely on it from %s until %s", who, instant(s.from), instant(s.to))
		}
		p.show(h.acquire, note)
		if s.by != h.acquire {
			p.show(s.by, fmt.Sprintf("extended: %s may rely on it until %s", who, instant(s.to)))
		}
		if h.end != nil {
			p.show(h.end, "its certainty ends here")
		}
	}
	tell(a, as, first)
	tell(b, bs, second)
	return p.finding(key, bs.from, fmt.Sprintf("%s and %s were both certain to hold %s from %s until %s.",
		first, second, key, instant(bs.from), instant(min(as.to, bs.to))))
}
