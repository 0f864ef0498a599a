package models

// queue gives what was put into it by time, the earliest first. It is a binary heap and keeps its memory.
type queue[T any] struct {
	items []queued[T]
}

type queued[T any] struct {
	at   int64
	what T
}

func (q *queue[T]) push(at int64, what T) {
	q.items = append(q.items, queued[T]{at, what})
	h := q.items
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].at <= at {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = queued[T]{at, what}
}

// before reports whether something is due before t.
func (q *queue[T]) before(t int64) bool { return len(q.items) > 0 && q.items[0].at < t }

func (q *queue[T]) pop() (int64, T) {
	h := q.items
	top := h[0]
	last := h[len(h)-1]
	h = h[:len(h)-1]
	q.items = h
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].at < h[down].at {
			down++
		}
		if last.at <= h[down].at {
			break
		}
		h[i] = h[down]
		i = down
	}
	if len(h) > 0 {
		h[i] = last
	}
	return top.at, top.what
}
