package reports

import (
	"fmt"
	"time"

	"fencepost.dev/models"
)

// phrase says what one answered operation did, without its time and client: "granted k1 (ttl 300 ms)". The operation's key
// and error are printable already.
type phrase func(op *Operation) string

// phrases are the words for each kind of operation, by "primitive kind". A primitive's words are in its own file; a kind
// without words is told by its name, outcome and fields.
var phrases = map[string]phrase{}

// tellAs registers the words for one kind, during package initialization only.
func tellAs(primitive, kind string, p phrase) struct{} {
	phrases[primitive+" "+kind] = p
	return struct{}{}
}

// tell says what an operation did.
func tell(op *Operation) string {
	shown := *op
	shown.Key, shown.Error = cleanName(op.Key), clean(op.Error, 160)
	p, ok := phrases[op.Primitive+" "+op.Kind]
	if !ok {
		p = plainly
	}
	text := p(&shown)
	if took := op.Return - op.Call; answered(op) && took > int64(20*time.Millisecond) && !op.Synthetic {
		text += fmt.Sprintf(" (asked %s earlier)", span(time.Duration(took)))
	}
	return text
}

// answered reports whether the client got an answer of any sort.
func answered(op *Operation) bool { return op.Outcome != "unknown" && op.Return != models.Unbounded }

// plainly tells an operation of which nothing more is known than its record.
func plainly(op *Operation) string {
	text := op.Kind
	if op.Key != "" {
		text += " " + op.Key
	}
	return text + ": " + outcome(op)
}

// outcome says what came of an operation, with its error.
func outcome(op *Operation) string {
	text := op.Outcome
	if text == "unknown" {
		text = "no answer"
	}
	if op.Error != "" {
		text += " (" + op.Error + ")"
	}
	return text
}

// token says a fencing token in brackets, if there is one.
func token(op *Operation) string {
	if t := op.Fields["token"]; t != 0 {
		return fmt.Sprintf(" (token %d)", t)
	}
	return ""
}
