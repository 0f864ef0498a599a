package witness

import (
	"context"
	"errors"

	"fencepost.dev/history"
	"fencepost.dev/plane"
)

const registerSubject = "witness.register"

// Serve lets the workers of a run reach r. cancel waits for the attempts that are being decided.
func Serve(conn *plane.Conn, r Register) (cancel func(), err error) {
	return serve(conn, registerSubject, r.Attempt)
}

// Dial is the register that the coordinator serves, as a worker sees it. One request is one attempt: it is never repeated,
// so an attempt whose answer is lost was made once, or not at all, or will yet be. OutcomeOf says what an error means.
func Dial(conn *plane.Conn) Register { return remoteRegister{conn} }

type remoteRegister struct{ conn *plane.Conn }

func (r remoteRegister) Attempt(ctx context.Context, a Attempt) (Decision, error) {
	return ask[Attempt, Decision](ctx, r.conn, registerSubject, a)
}

// OutcomeOf classifies how an attempt on a witness ended, from the client's side.
//
//	no error, accepted                                   ok
//	no error, not accepted                               refused
//	plane.ErrUnsent, plane.ErrNobody                     failed: no witness got it
//	*plane.Remote: the witness's own error               failed: it decides nothing when it fails
//	anything else: timed out, cut short, broken          unknown
func OutcomeOf(accepted bool, err error) history.Outcome {
	var remote *plane.Remote
	switch {
	case err == nil && accepted:
		return history.OK
	case err == nil:
		return history.Refused
	case errors.Is(err, plane.ErrUnsent), errors.Is(err, plane.ErrNobody), errors.As(err, &remote):
		return history.Failed
	default:
		return history.Unknown
	}
}

// serve and ask carry one question and its answer over the plane; each witness is a subject and a pair of types.
func serve[Q, A any](conn *plane.Conn, subject string, decide func(context.Context, Q) (A, error)) (cancel func(), err error) {
	return conn.Serve(subject, func(ctx context.Context, m plane.Message) (any, error) {
		var q Q
		if err := m.Decode(&q); err != nil {
			return nil, err
		}
		return decide(ctx, q)
	})
}

func ask[Q, A any](ctx context.Context, conn *plane.Conn, subject string, q Q) (A, error) {
	var a A
	err := conn.Request(ctx, subject, q, &a)
	return a, err
}
