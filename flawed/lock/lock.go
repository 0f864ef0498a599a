// Package lock holds locks that are wrong on purpose: mistakes that were made in public, each re-created in a file of its own
// that says what is wrong, how it hurts, and where it was seen. Each takes the right lock and changes the one step that
// makes it wrong, so that a difference in verdict has one cause.
//
// Never use them for anything but showing that.
package lock
