package reports

import "fencepost.dev/history"

// field is one of a kind's own values and what verdict.json calls it. Zero values are left out: they say "none".
type field struct {
	name string
	get  func(*history.Operation) int64
}

// kindFields are the fields of each kind of operation. A kind that is not listed has none.
var kindFields = map[history.Kind][]field{}

// describeFields registers the fields of some kinds, during package initialization only.
func describeFields(fields []field, kinds ...history.Kind) struct{} {
	for _, kind := range kinds {
		kindFields[kind] = append(kindFields[kind], fields...)
	}
	return struct{}{}
}

func fieldsOf(op *history.Operation) map[string]int64 {
	var values map[string]int64
	for _, f := range kindFields[op.Kind] {
		if v := f.get(op); v != 0 {
			if values == nil {
				values = make(map[string]int64, 4)
			}
			values[f.name] = v
		}
	}
	return values
}
