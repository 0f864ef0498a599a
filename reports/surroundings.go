package reports

import (
	"slices"
	"strings"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// surroundings is what the recorded run knows of some findings beyond their witnesses, so that they can be told as stories.
type surroundings struct {
	// grants are the operations of every grant that the findings name.
	grants     map[int64][]Operation
	overtakers map[*Finding]overtaker
	// frees are releases by others while the first grant of a finding was in force, which may have freed its object, and the
	// grants that they were made under.
	frees map[*Finding][]Operation
}

// overtaker is who was first to write after a late attempt's grant had been given, and before the attempt itself.
type overtaker struct {
	grant   int64 // 0: nobody
	client  string
	between map[int64]int // attempts of other grants in that time, by grant
}

// surround collects the surroundings of findings, in a few passes over the run. Nil without a run.
func surround(findings []*Finding, in *models.Input) *surroundings {
	if in == nil || in.Names == nil {
		return nil
	}
	s := &surroundings{grants: map[int64][]Operation{}, overtakers: map[*Finding]overtaker{}, frees: map[*Finding][]Operation{}}
	for _, f := range findings {
		for i := range f.Operations {
			if g := f.Operations[i].Fields["grant"]; g != 0 {
				s.grants[g] = nil
			}
		}
		if o := overtakerOf(f, in); o.grant != 0 {
			s.overtakers[f] = o
			s.grants[o.grant] = nil
		}
		s.frees[f] = freesOf(f, in)
	}
	if len(s.grants) == 0 {
		return s
	}
	for _, ops := range [][]history.Operation{in.Operations, in.Resource} {
		for i := range ops {
			g := grantField(&ops[i])
			if kept, wanted := s.grants[g]; wanted && len(kept) < 4*mostAround {
				s.grants[g] = append(kept, NameOperation(&ops[i], in.Names))
			}
		}
	}
	return s
}

// overtakerOf looks at what the resource did between the grant of a finding's last attempt and that attempt.
func overtakerOf(f *Finding, in *models.Input) (first overtaker) {
	late := lastAttempt(f)
	key := slices.Index(in.Names.Keys, f.Key)
	if late == nil || key < 0 {
		return first
	}
	own := late.Fields["grant"]
	from := late.Call
	for i := range f.Operations {
		if op := &f.Operations[i]; op.Fields["grant"] == own {
			from = min(from, op.Return)
		}
	}
	first.between = map[int64]int{}
	for i := range in.Resource {
		op := &in.Resource[i]
		g := int64(op.Grant())
		if op.Key != uint32(key) || op.Call <= from || op.Call >= late.Call || g == own || g == 0 {
			continue
		}
		first.between[g]++
		if first.grant == 0 && op.Kind == history.Write && op.Outcome == history.OK {
			first.grant, first.client = g, in.Names.ClientName(op)
		}
	}
	return first
}

// mostFrees is how many releases by others a tale shows.
const mostFrees = 3

// freesOf looks for releases, answered ok or not at all, that took place between the first grant that a finding names and its
// end, and were made under grants that it doesn't name; and for how those grants came about.
func freesOf(f *Finding, in *models.Input) (frees []Operation) {
	key := slices.Index(in.Names.Keys, f.Key)
	if key < 0 || len(f.Operations) == 0 || lastAttempt(f) != nil {
		return nil
	}
	first := &f.Operations[0]
	if first.Kind != history.Acquire.String() || !answered(first) {
		return nil
	}
	named := map[int64]bool{}
	for i := range f.Operations {
		named[f.Operations[i].Fields["grant"]] = true
	}
	by := map[int64]bool{}
	for i := range in.Operations { // in order of Call
		op := &in.Operations[i]
		if op.Call > f.At || len(frees) == mostFrees {
			break
		}
		if op.Kind == history.Release && op.Key == uint32(key) && (op.Outcome == history.OK || op.Outcome == history.Unknown) &&
			op.Return >= first.Return && !named[int64(op.Grant())] {
			frees = append(frees, NameOperation(op, in.Names))
			by[int64(op.Grant())] = true
		}
	}
	for i := range in.Operations {
		op := &in.Operations[i]
		if op.Call > f.At || len(by) == 0 {
			break
		}
		if op.Kind == history.Acquire && by[int64(op.Grant())] {
			frees = append(frees, NameOperation(op, in.Names))
		}
	}
	return frees
}

// lastAttempt is the last attempt on a resource among a finding's operations; nil if there is none.
func lastAttempt(f *Finding) *Operation {
	for i := len(f.Operations) - 1; i >= 0; i-- {
		if op := &f.Operations[i]; decision(op) && op.Fields["grant"] != 0 {
			return op
		}
	}
	return nil
}

// clear reports whether a finding makes a clear story: one between processes, not between clients of one.
func (s *surroundings) clear(f *Finding) bool {
	var workers []string
	add := func(client string) {
		worker, _, _ := strings.Cut(client, "/")
		if client != "" && !slices.Contains(workers, worker) {
			workers = append(workers, worker)
		}
	}
	for i := range f.Operations {
		add(f.Operations[i].Client)
	}
	if s != nil {
		add(s.overtakers[f].client)
	}
	return len(workers) > 1
}

// grantField is the grant that an operation names; 0: none.
func grantField(op *history.Operation) int64 {
	for _, f := range kindFields[op.Kind] {
		if f.name == "grant" {
			return f.get(op)
		}
	}
	return 0
}
