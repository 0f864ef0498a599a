package reports

import (
	"fmt"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// mostMisses is how many near misses are looked at for the clearest.
const mostMisses = 10

// nearMiss tells, of a run in which nothing went wrong, a write that the resource refused because a later grant had come
// first: what would have been a violation without the fence. Nil: there is none, or no history to look at.
func nearMiss(m *Material) *tale {
	if m.Input == nil || m.Input.Names == nil || m.Result.Verdict != models.Pass {
		return nil
	}
	var misses []*Finding
	seen := map[uint32][]*history.Operation{} // the first attempt with each higher token, by key
	for i := range m.Input.Resource {
		op := &m.Input.Resource[i]
		if op.Kind == history.Write && op.Outcome == history.Refused {
			if f := refusal(op, seen[op.Key], m.Input.Names); f != nil {
				misses = append(misses, f)
			}
		}
		if n := len(seen[op.Key]); n == 0 || op.Token() > seen[op.Key][n-1].Token() {
			seen[op.Key] = append(seen[op.Key], op)
		}
		if len(misses) == mostMisses {
			break
		}
	}
	if len(misses) == 0 {
		return nil
	}
	around := surround(misses, m.Input)
	chosen := misses[0]
	for _, f := range misses {
		if around.clear(f) {
			chosen = f
			break
		}
	}
	t := &tale{Finding: chosen, Prevented: true}
	t.build(&m.Result, around)
	return t
}

// refusal makes a finding of a refused write and the first attempt before it that carried a higher token.
func refusal(late *history.Operation, seen []*history.Operation, names *history.Names) *Finding {
	for _, before := range seen {
		if before.Token() <= late.Token() {
			continue
		}
		return &Finding{
			Key: names.Key(late.Key),
			At:  late.Return,
			Summary: fmt.Sprintf("%s came back at %s and wrote %s with token %d. The resource had seen %s's token %d by then, and refused.",
				names.ClientName(late), clock(late.Return, 3), names.Key(late.Key), late.Token(), names.ClientName(before), before.Token()),
			Operations: []Operation{NameOperation(before, names), NameOperation(late, names)},
		}
	}
	return nil
}
