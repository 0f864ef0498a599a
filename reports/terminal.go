package reports

import "io"

// Options say how text for people is laid out.
type Options struct {
	Color bool
	Width int  // columns; 0: 100
	Quiet bool // write nothing
	// Live: the output is a terminal whose last line can be rewritten. Progress only.
	Live bool
	// Dir is where the pages are, to tell their paths; "": say nothing of them.
	Dir string
}

// Terminal tells a run to a person.
func Terminal(w io.Writer, m Material, o Options) error { return errSkeleton }
