package reports

import (
	"errors"
	"io"
)

var errSkeleton = errors.New("reports: not built yet")

// WriteStory writes the page that tells two runs side by side: broken, and its pair that holds. Links lead to their
// reports, relative to the page.
func WriteStory(path string, broken, fixed Material, brokenLink, fixedLink string) error {
	return errSkeleton
}

// StoryTerminal tells the same to a terminal.
func StoryTerminal(w io.Writer, broken, fixed Material, o Options) error { return errSkeleton }
