package reports

import (
	"fmt"
	"time"
)

// The words for locks, leases and the resource that they protect.
var (
	_ = tellAs("lock", "acquire", func(op *Operation) string {
		switch op.Outcome {
		case "ok":
			text := "granted " + op.Key
			if ttl := op.Fields["ttl_ns"]; ttl != 0 {
				text += " (ttl " + span(time.Duration(ttl))
				if t := op.Fields["token"]; t != 0 {
					text += fmt.Sprintf(", token %d", t)
				}
				return text + ")"
			}
			return text + token(op)
		case "refused":
			return "refused " + op.Key + ": busy"
		}
		return "asked for " + op.Key + ": " + outcome(op)
	})
	_ = tellAs("lock", "extend", func(op *Operation) string {
		switch op.Outcome {
		case "ok":
			return fmt.Sprintf("extended %s by %s", op.Key, span(time.Duration(op.Fields["ttl_ns"])))
		case "refused":
			return "could not extend " + op.Key + ": not the holder"
		}
		return "tried to extend " + op.Key + ": " + outcome(op)
	})
	_ = tellAs("lock", "release", func(op *Operation) string {
		switch op.Outcome {
		case "ok":
			return "released " + op.Key
		case "refused":
			return "could not release " + op.Key + ": not the holder"
		}
		return "tried to release " + op.Key + ": " + outcome(op)
	})
	_ = tellAs("lock", "lost", func(op *Operation) string { return "learned that it lost " + op.Key })
	_ = tellAs("lock", "expire", func(op *Operation) string { return "its time on " + op.Key + " is over" })
	_ = tellAs("resource", "read", func(op *Operation) string {
		switch op.Outcome {
		case "ok":
			return fmt.Sprintf("read %s at version %d%s", op.Key, op.Fields["version"], token(op))
		case "refused":
			return fmt.Sprintf("was refused a read of %s%s: a higher token came first", op.Key, token(op))
		}
		return "tried to read " + op.Key + token(op) + ": " + outcome(op)
	})
	_ = tellAs("resource", "write", func(op *Operation) string {
		switch op.Outcome {
		case "ok":
			return fmt.Sprintf("wrote %s on top of version %d%s: accepted", op.Key, op.Fields["version"], token(op))
		case "refused":
			return fmt.Sprintf("was refused a write of %s%s: a higher token came first", op.Key, token(op))
		}
		return "tried to write " + op.Key + token(op) + ": " + outcome(op)
	})
)
