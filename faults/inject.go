package faults

import (
	"context"
	"errors"

	"fencepost.dev/history"
)

// do injects the line's fault into a claimed target, keeps it in force for as long as the line says, and undoes it. It
// reports whether it was injected. gone: it was not, since the target died; err then says how that showed.
//
// The event's times enclose the fault: At is before the injection began, End after the undoing was seen.
func (p *player) do(ctx context.Context, target Target, caught *catch) (injected, gone bool, err error) {
	undone, err := p.journal(target)
	if err != nil {
		return false, false, err
	}
	event := history.Event{
		Kind: history.EventFault, Fault: p.fault.Name, Target: target.Name(), Process: -1, Node: -1, At: p.env.Now(),
	}
	if placed, ok := target.(Placed); ok {
		event.Process, event.Node = placed.Place()
	}
	undo, err := p.inject(ctx, target)
	if err != nil {
		if unmarked := undone(); unmarked != nil {
			p.log.Error("a fault that was not done stays in the journal", "error", unmarked)
		}
		if !alive(target) {
			return false, true, err
		}
		event.Detail = err.Error()
		_, recorded := p.emit(event)
		return false, false, errors.Join(err, recorded)
	}
	event.Confirmed = true
	inForce := p.env.Now()
	if caught != nil {
		if caught.release() {
			event.Point, event.Client, event.Grant = p.line.When, caught.Client, caught.Grant
		} else {
			err = p.missed(caught)
		}
	}
	event, recorded := p.emit(event)
	p.log.Info("fault in force", "target", target.Name(), "at", history.Since(inForce), "event", event.ID)
	err = errors.Join(err, recorded)

	if undo == nil {
		return true, false, errors.Join(err, undone())
	}
	if err == nil { // else the run is over: only mend
		p.hold(ctx, inForce)
	}
	mending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if failed := undo(mending); failed != nil {
		return true, false, errors.Join(err, failed) // its entry stays in the journal, for the guard
	}
	event.End = p.env.Now()
	_, recorded = p.emit(event)
	p.log.Info("fault undone", "target", target.Name(), "at", history.Since(event.End), "event", event.ID)
	return true, false, errors.Join(err, recorded, undone())
}

// inject runs the fault's Inject to its end, whatever becomes of ctx: half of a fault could not be undone.
func (p *player) inject(ctx context.Context, target Target) (func(context.Context) error, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return p.fault.Inject(ctx, target, p.order)
}

// hold waits for as long as the fault is to be in force.
func (p *player) hold(ctx context.Context, inForce int64) {
	switch {
	case p.line.For > 0:
		p.sleepUntil(ctx, inForce+int64(p.line.For))
	case p.fault.Momentary:
	default:
		<-ctx.Done()
	}
}

// journal writes the fault to the journal before it is done, and gives what marks it undone.
func (p *player) journal(target Target) (undone func() error, err error) {
	if p.env.Journal == nil {
		return func() error { return nil }, nil
	}
	return p.env.Journal.Begin(journalKind, RecordOf(p.fault.Name, target))
}
