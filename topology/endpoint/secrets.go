package endpoint

import (
	"fmt"
	"log/slog"
	"strings"
)

// An Endpoint carries a password to the workers. Its own words for itself leave it out, however they are asked for, so that
// no message, panic or log line gives it away. JSON has it: that is how it travels, and only over the plane.

// String says where the endpoint is, without secrets.
func (e Endpoint) String() string {
	text := e.Kind + " at " + strings.Join(e.Addresses, ", ")
	if e.Username != "" {
		text += " as " + e.Username
	}
	if e.TLS != nil {
		text += " over TLS"
	}
	return text
}

// Format makes every verb say what String says.
func (e Endpoint) Format(f fmt.State, _ rune) { fmt.Fprint(f, e.String()) }

// LogValue is what structured logs show.
func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue is what structured logs show of a set: its endpoints without their secrets.
func (s Set) LogValue() slog.Value {
	var attributes []slog.Attr
	for name, e := range s {
		attributes = append(attributes, slog.String(name, e.String()))
	}
	return slog.GroupValue(attributes...)
}
