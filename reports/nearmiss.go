package reports

import (
	"fmt"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// nearMiss tells, of a run in which nothing went wrong, the first write that the resource refused because a later grant had
// come first: what would have been a violation without the fence. Nil: there is none, or no history to look at.
func nearMiss(m *Material) *tale {
	if m.Input == nil || m.Input.Names == nil || m.Result.Verdict != models.Pass {
		return nil
	}
	in := m.Input
	highest := map[uint32]*history.Operation{} // attempt with the highest token, by key
	for i := range in.Resource {
		op := &in.Resource[i]
		before := highest[op.Key]
		if before != nil && op.Kind == history.Write && op.Outcome == history.Refused && op.Token() < before.Token() {
			late, early := NameOperation(op, in.Names), NameOperation(before, in.Names)
			f := &Finding{
				Key: late.Key,
				At:  op.Return,
				Summary: fmt.Sprintf("%s came back at %s and wrote %s with token %d. The resource had already seen %s's token %d, and refused.",
					late.Client, clock(op.Return, 3), late.Key, op.Token(), early.Client, before.Token()),
				Operations: []Operation{early, late},
			}
			t := &tale{Finding: f, Prevented: true}
			t.build(&m.Result, surroundings([]*Finding{f}, in))
			return t
		}
		if before == nil || op.Token() > before.Token() {
			highest[op.Key] = op
		}
	}
	return nil
}
