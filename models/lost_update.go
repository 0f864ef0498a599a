package models

import (
	"context"
	"fmt"

	"fencepost.dev/history"
)

var lostUpdate = Check{
	Name:          "lost-update",
	About:         "No write is accepted whose read has been overtaken by another write.",
	Primitives:    []string{"lock", "lease"},
	Prompt:        true,
	needsAttempts: true, // a write that is missing leaves a version that nobody made
	Run: func(ctx context.Context, in *Input) Report {
		return loseUpdates(ctx, in, newVersionRules())
	},
}

// versionRules say how a resource's version moves. They are fields so that a test can break each.
type versionRules struct {
	stale func(write *history.Operation, current int64) bool
	next  func(op *history.Operation, current int64) int64
}

func newVersionRules() versionRules {
	return versionRules{
		stale: func(write *history.Operation, current int64) bool { return write.Version() != current },
		next: func(op *history.Operation, current int64) int64 {
			switch {
			case op.Outcome != history.OK:
				return current
			case op.Kind == history.Read: // what was read is what is there
				return op.Version()
			default:
				return current + 1
			}
		},
	}
}

// loseUpdates follows the version of each key through the resource's log, in the resource's own order.
func loseUpdates(ctx context.Context, in *Input, rules versionRules) Report {
	type versioned struct {
		version int64
		write   *history.Operation // the last accepted
		reads   map[int64]*history.Operation
	}
	var report Report
	keys := map[uint32]*versioned{}
	for i := range in.Resource {
		op := &in.Resource[i]
		if i%patience == 0 && ctx.Err() != nil {
			return report.cutShort(outOfTime(ctx))
		}
		if !isAttempt(op) {
			continue
		}
		key := keys[op.Key]
		if key == nil {
			key = &versioned{reads: map[int64]*history.Operation{}}
			keys[op.Key] = key
		}
		accepted := op.Outcome == history.OK
		switch {
		case op.Kind == history.Write:
			report.Decided++
			if accepted && rules.stale(op, key.version) {
				report.add(lostWrite(in.Names, key.reads[int64(op.Grant())], key.write, op, key.version))
			}
			if accepted {
				key.write = op
			}
			delete(key.reads, int64(op.Grant()))
		case accepted:
			key.reads[int64(op.Grant())] = op
		}
		key.version = rules.next(op, key.version)
	}
	return report
}

func lostWrite(names *history.Names, read, overtaking, write *history.Operation, current int64) Finding {
	var p proof
	if read != nil {
		p.show(read, fmt.Sprintf("read version %d, on which the late write is based", read.Version()))
	}
	by := ""
	if overtaking != nil {
		p.show(overtaking, fmt.Sprintf("accepted in between: it made version %d", current))
		by = fmt.Sprintf(" and lost the update that %s made at %s", names.ClientName(overtaking), instant(overtaking.Return))
	}
	p.show(write, fmt.Sprintf("accepted, though based on version %d when there was %d", write.Version(), current))
	key := names.Key(write.Key)
	return p.finding(key, write.Return, fmt.Sprintf("%s overwrote version %d of %s at %s from a read of version %d%s.",
		names.ClientName(write), current, key, instant(write.Return), write.Version(), by))
}
