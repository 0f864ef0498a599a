package models

import "fencepost.dev/history"

// bruteForce decides by trying every order that the intervals allow, of every subset of the optional operations. It shares
// nothing with the engines but the spec, and takes factorial time.
func bruteForce[S comparable](spec Spec[S], ops []history.Operation) bool {
	var optional []int
	for i := range ops {
		if ops[i].Flags&history.Optional != 0 {
			optional = append(optional, i)
		}
	}
	for subset := range 1 << len(optional) {
		left := make([]bool, len(ops)) // still to be placed
		for i := range ops {
			left[i] = true
		}
		for bit, i := range optional {
			left[i] = subset>>bit&1 == 1
		}
		if tryOrders(spec, spec.Init(), ops, left) {
			return true
		}
	}
	return false
}

func tryOrders[S comparable](spec Spec[S], s S, ops []history.Operation, left []bool) bool {
	done := true
next:
	for i := range ops {
		if !left[i] {
			continue
		}
		done = false
		for j := range ops { // j must come first if it was answered before i was called
			if left[j] && ops[j].Return < ops[i].Call {
				continue next
			}
		}
		if after, ok := spec.Step(s, &ops[i]); ok {
			left[i] = false
			found := tryOrders(spec, after, ops, left)
			left[i] = true
			if found {
				return true
			}
		}
	}
	return done
}
